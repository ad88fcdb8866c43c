"""What is only in memory, as files: the workers of a call are processes, and read what they work on.

The files live as long as this process, so that what a report says to do next finds them. What only they need
is imported with the first of them: every command line imports this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotool.parser.jax_stages import is_stage, stage_proto
from hlotool.system.files import passing_folder
from hlotool.system.urls import taken_in

if TYPE_CHECKING:
    from hlotool.ir.module import Module

#: Where programs are: a dump directory, a file of HLO, an archive, a log; or a program itself, also one that
#: JAX has traced, lowered or compiled.
Program: TypeAlias = "str | os.PathLike[str] | Module | Any"
#: Arguments or results: a file, a folder, or `SCRIPT.py:FUNCTION`; or the arrays themselves, tuples nested.
Values: TypeAlias = "str | os.PathLike[str] | Sequence[Any]"


def path_of(program: Program) -> str:
    """The path of a program; one that is in memory is written to a file."""
    if isinstance(program, str | os.PathLike):
        return taken_in(os.fspath(program))
    if is_stage(program):
        from hlotool.parser.proto.module import parse_module_proto

        content = stage_proto(program)
        return _written(f"{_file_name(parse_module_proto(content).name)}.hlo.pb", content)
    # `m.path`, of a program that was read, is the text before whatever has been done to it since.
    return _written(f"{_file_name(program.name)}.hlo", program.to_text().encode("utf-8", "surrogateescape"))


def _file_name(name: str) -> str:
    """The name of a module as that of a file."""
    return re.sub(r"[^\w.+=-]|^\.+", "_", name)[:100] or "module"


def paths_of(programs: Program | Sequence[Program]) -> list[str]:
    """The paths of one program or of several."""
    if isinstance(programs, list | tuple):
        return [path_of(program) for program in programs]
    return [path_of(programs)]


def values_path(values: Values | None) -> str | None:
    """The file of arguments or results; those in memory are written to one."""
    if values is None or isinstance(values, str | os.PathLike):
        return None if values is None else taken_in(os.fspath(values))
    import numpy as np

    from hlotool.inputs.given import npz_bytes

    return _written("values.npz", npz_bytes([_arrays(value, np) for value in values]))


def _arrays(value: Any, np: Any) -> Any:
    return tuple(_arrays(part, np) for part in value) if isinstance(value, tuple) else np.asarray(value)


def _written(name: str, content: bytes) -> str:
    """A file of that name and content; the same content is the same file."""
    import hashlib

    folder = _folder() / hashlib.blake2b(content, digest_size=8).hexdigest()
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return str(path)


#: Of this process, made when it is needed.
_folder = cache(passing_folder)
