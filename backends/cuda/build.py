"""Generated kernels compiled for a GPU; none is needed for that.

All missing kernels of a module are compiled at once, by NVRTC where its Python bindings are installed, else
by nvcc. What came out is kept on disk, found again by source, compiler, options and architecture, with what
each kernel takes of the machine.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hlotool.backends.cuda.cache import Entry, KernelCache
from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.compilers import Compiler, find_compiler, objection
from hlotool.errors import BackendUnavailable


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
