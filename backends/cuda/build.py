"""Generated kernels compiled for a GPU, which needs none, and kept on disk by what they were made from."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.toolchain import Compiler, find_compiler, objection
from hlotool.errors import BackendUnavailable
from hlotool.system.cache import cache_folder

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a compiled kernel lies.

    Attributes:
        library: the file that holds it, perhaps among others.
        details: numbers that the compiler said of it, such as registers.
    """

    library: Path
    details: Mapping[str, int] = field(default_factory=dict)


class KernelCache:
    """Libraries, and for each kernel which of them holds it.

    Files are written under other names first and then moved, so that several processes can share the folder.

    Args:
        key: of everything besides the source that a compiled kernel depends on.
        folder: another place than the cache folder.
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self.folder = (folder or cache_folder() / "kernels") / key

    def find(self, kernel: str) -> Entry | None:
        """The entry of a kernel, if there is one that can be read."""
        try:
            known = json.loads((self.folder / f"{kernel}.json").read_text(encoding="utf-8"))
            entry = Entry(self.folder / known["library"], known["details"])
        except (OSError, ValueError, KeyError):
            return None
        if not entry.library.exists():
            return None
        _logger.debug("kernel %s: compiled before, in %s", kernel, entry.library)
        return entry

    def add(self, library: Path, details: Mapping[str, Mapping[str, int]]) -> dict[str, Entry]:
        """Move a library into the cache.

        Args:
            library: a file on the same file system.
            details: of each kernel that it holds.
        """
        place = self.folder / library.name
        library.replace(place)
        for kernel, known in details.items():
            pending = self.folder / f"{kernel}.{os.getpid()}.tmp"
            pending.write_text(json.dumps({"library": place.name, "details": known}), encoding="utf-8")
            pending.replace(self.folder / f"{kernel}.json")
        return {kernel: Entry(place, known) for kernel, known in details.items()}


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes of the machine, as ptxas says it.

    Attributes:
        registers: of a thread.
        spill_stores: bytes of registers that a thread writes to memory for want of room.
        spill_loads: bytes that it reads back.
        stack: bytes of a thread's stack frame.
        shared: bytes of shared memory of a block.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel ready to be loaded.

    Attributes:
        cubin: the file that holds it, with others.
        resources: what it takes of the machine.
    """

    cubin: Path
    resources: Resources


def compile_kernels(
    kernels: Iterable[Kernel],
    architecture: str,
    compiler: Compiler | None = None,
    folder: Path | None = None,
) -> dict[str, Compiled]:
    """Kernels by name, compiled unless they have been before; without a GPU.

    Args:
        kernels: to compile.
        architecture: for which GPUs, such as `sm_90`.
        compiler: the one that `find_compiler` finds if None.
        folder: of the compiled kernels; the cache folder if None.

    Raises:
        BackendUnavailable: there is no compiler, or it does not know the architecture.
        BackendCrashed: it refuses a kernel, or dies.
        BackendTimeout: it takes too long.
    """
    by_name = {kernel.name: kernel for kernel in kernels}
    if not by_name:
        return {}
    compiler = compiler or find_compiler(architecture=architecture)
    if said := objection(compiler, architecture):
        raise BackendUnavailable(f"backend cuda: {said}")
    made_from = [compiler.version, architecture, prelude(), *compiler.options]
    cache = KernelCache(hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:20], folder)
    found = {name: cache.find(name) for name in by_name}
    entries = {name: entry for name, entry in found.items() if entry is not None}
    if missing := [by_name[name] for name in by_name if name not in entries]:
        entries |= _compile(missing, architecture, compiler, cache)
    return {name: Compiled(entry.library, Resources(**entry.details)) for name, entry in entries.items()}


def _compile(
    kernels: Sequence[Kernel], architecture: str, compiler: Compiler, cache: KernelCache
) -> dict[str, Entry]:
    # The launchers make it run on a CPU, too, where the driver is a stand-in for tests.
    on_cpu = ["#ifndef __CUDACC__", *(kernel.launcher for kernel in kernels), "#endif\n"]
    source = "\n".join([prelude(), *(kernel.source for kernel in kernels), *on_cpu])
    cubin, log = compiler.compile(source, architecture)
    resources = parse_resources(log)
    cache.folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(source.encode()).hexdigest()[:20] + ".cubin"
    with tempfile.TemporaryDirectory(dir=cache.folder) as folder:
        made = Path(folder) / name
        made.write_bytes(cubin)
        nothing = Resources(0, 0, 0, 0, 0)
        return cache.add(made, {k.name: asdict(resources.get(k.name, nothing)) for k in kernels})


_FUNCTION = re.compile(r"Compiling entry function '(\w+)'")
_NUMBERS: Mapping[str, re.Pattern[str]] = {
    "registers": re.compile(r"Used (\d+) registers"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
    "stack": re.compile(r"(\d+) bytes stack frame"),
    "shared": re.compile(r"(\d+) bytes smem"),
}


def parse_resources(log: str) -> dict[str, Resources]:
    """What `ptxas -v` says, by kernel."""
    _, *parts = _FUNCTION.split(log)
    return {name: _resources(text) for name, text in zip(parts[::2], parts[1::2])}


def _resources(text: str) -> Resources:
    found = {key: pattern.search(text) for key, pattern in _NUMBERS.items()}
    return Resources(**{key: int(match[1]) if match else 0 for key, match in found.items()})
