"""One program of a dump of XLA:GPU, with all that it takes to execute it.

Beside `PREFIX.sm_9.0a_gpu_after_optimizations.txt` lie the PTX (`PREFIX.N.ptx`, or `PREFIX.ptx`), the steps
(`PREFIX.thunk_sequence.txt`, and `PREFIX.thunk_metadata.txt` since jaxlib 0.9) and the buffer assignment.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from hlotool.backends.gpu_ptx.assignment import Assignment
from hlotool.backends.gpu_ptx.program import Kernel, parse_ptx
from hlotool.backends.gpu_ptx.tensor_maps import MAP_BYTES, TensorMap, excerpt, tensor_maps
from hlotool.backends.gpu_ptx.thunks import Thunk, count_steps, instruction_names, parse_thunks
from hlotool.backends.gpu_ptx.unnamed import name_steps
from hlotool.errors import Location, Unsupported
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

_AFTER = re.compile(r"(?P<prefix>.+?)\.(?P<stage>[^.]*(?:\.\d+\w*)?_?gpu_after_optimizations)\.txt$")

_STEPS = "thunk_sequence.txt"
_TENSORS = "triton-to-llvm.txt"


@dataclass(frozen=True, slots=True)
class GpuDump:
    """A program.

    Attributes:
        module: after all passes.
        assignment: where its values lie.
        steps: what is executed.
        kernels: by name.
        tensors: of kernels that copy tiles, by name: their parameters that describe tensors, by number.
    """

    module: Module
    assignment: Assignment
    steps: list[Thunk]
    kernels: Mapping[str, Kernel]
    tensors: Mapping[str, Mapping[int, TensorMap]]


def program_at(path: str | None) -> str:
    """The program after all passes, with PTX, that the HLO in the file `path` is, or that was made of it.

    Empty where there is none.
    """
    if path is None or not Path(path).is_file():
        return ""
    folder = Path(path).parent
    for file in folder.glob("*gpu_after_optimizations.txt"):
        found = _AFTER.match(str(file))
        if found and path.startswith(f"{found['prefix']}.") and Path(f"{found['prefix']}.{_STEPS}").is_file():
            return str(file)
    return ""


def copy_dump(path: str, folder: Path) -> None:
    """Copy the files of the program after all passes in `path`."""
    match = _AFTER.match(path)
    assert match is not None
    folder.mkdir(parents=True, exist_ok=True)
    for file in Path(path).parent.glob(f"{escape(Path(match['prefix']).name)}.*"):
        if file.is_file():
            shutil.copy(file, folder / file.name)
    for file in Path(path).parent.glob(f"*.{_TENSORS}"):
        # Megabytes, of which these lines are read.
        with suppress(ValueError):
            (folder / file.name).write_text(excerpt(file.read_text(encoding="utf-8")), encoding="utf-8")


def read_dump(path: str) -> GpuDump:
    """The program whose HLO after all passes is in the file `path`.

    Args:
        path: of the file; the others lie beside it.

    Raises:
        Unsupported: something of it is missing, or the PTX has what is not known.
        DumpError: a file of it is damaged.
        InputError: the text is no HLO.
    """
    match = _AFTER.match(path)
    if match is None:
        raise Unsupported("it is no program after all passes of XLA:GPU", location=Location(path))
    prefix, stage = match["prefix"], match["stage"]
    module = parse_module(Path(path).read_text(encoding="utf-8"), path)
    steps = f"{prefix}.{_STEPS}"
    metadata = Path(f"{prefix}.thunk_metadata.txt")
    names = instruction_names(metadata.read_text(encoding="utf-8")) if metadata.is_file() else {}
    thunks = parse_thunks(_read(steps, path), names, steps)
    if not names:
        name_steps(thunks, module)
        count_steps(thunks)
    placed = f"{prefix}.{stage}-buffer-assignment.txt"
    kernels = _kernels(prefix)
    return GpuDump(
        module,
        Assignment(_read(placed, path), module, placed),
        thunks,
        kernels,
        {name: _tensors(module, each, path) for name, each in kernels.items() if _copies_tiles(each)},
    )


def _copies_tiles(kernel: Kernel) -> bool:
    return any(parameter.size == MAP_BYTES for parameter in kernel.parameters)


def _tensors(module: Module, kernel: Kernel, path: str) -> dict[int, TensorMap]:
    name = f"{module.name}.{kernel.name}.{_TENSORS}"
    text = _read(str(Path(path).with_name(name)), path)
    try:
        return tensor_maps(text)
    except ValueError as error:
        raise Unsupported(f"{name}: {error}", location=Location(path)) from error


def _read(name: str, path: str) -> str:
    file = Path(name)
    if not file.is_file():
        raise Unsupported(f"{file.name} is not in the dump", location=Location(path))
    return file.read_text(encoding="utf-8")


def _kernels(prefix: str) -> dict[str, Kernel]:
    """Of all PTX files of the program."""
    folder, name = Path(prefix).parent, Path(prefix).name
    found: dict[str, Kernel] = {}
    for file in sorted(folder.glob(f"{escape(name)}*.ptx")):
        if re.fullmatch(r"(?:\.\d+)?\.ptx", file.name[len(name) :]):
            text = file.read_text(encoding="utf-8")
            if text.strip():
                found |= parse_ptx(text, str(file)).kernels
    return found
