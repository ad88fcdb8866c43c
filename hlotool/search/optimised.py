"""What a compiler makes of a program: the HLO after its passes."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Protocol, runtime_checkable

from hlotool.backends.base import Backend
from hlotool.backends.registry import get_backend
from hlotool.cache.passing import brief_folder
from hlotool.dump.directory import open_dump
from hlotool.dump.loading import load_stage
from hlotool.errors import Unsupported
from hlotool.ir.module import Module
from hlotool.replay.program import compile_program

#: The ends of a compilation are written always.
_NO_PASS = "^$"
_EVERY_PASS = ".*"


@runtime_checkable
class DumpingBackend(Protocol):
    """A backend that can have its compiler write the program after each pass."""

    def dumping(self, folder: Path, passes: str = ".*") -> Backend:
        """The same backend, which leaves a dump in `folder`."""


def optimised(module: Module, spec: str, dump: Path | None = None) -> Module:
    """The program that the passes of a compiler make of another one.

    Args:
        module: the program.
        spec: of the backend that compiles it.
        dump: folder for the program after each pass; None keeps none.

    Raises:
        BackendFailed: the compiler died of it.
        Unsupported: it refuses the program, or the backend cannot show what it makes of one.
        UsageError: no such backend.
    """
    backend = get_backend(spec)
    if not isinstance(backend, DumpingBackend):
        raise Unsupported(f"backend {spec} does not show what it makes of a program")
    with nullcontext(dump) if dump is not None else brief_folder() as folder:
        compile_program("", "", module, backend.dumping(folder, _NO_PASS if dump is None else _EVERY_PASS))
        owners = [owner for owner in open_dump(folder).modules if owner.after is not None]
        if not owners:
            raise Unsupported(f"backend {spec} wrote no optimised program")
        owner = max(owners, key=lambda each: len(load_stage(each, each.stages[0]).entry.instructions))
        assert owner.after is not None
        return load_stage(owner, owner.after)
