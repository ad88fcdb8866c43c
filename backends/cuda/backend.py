"""The backend `cuda`: fusions formed, kernels generated, compiled for a GPU and kept on disk, and run."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.cublas import Cublas, find_library
from hlotool.backends.cuda.device import Device, Function, open_device
from hlotool.backends.cuda.kernel_backend import KernelBackend, KernelExecutable
from hlotool.backends.cuda.loading import CudaLoading
from hlotool.backends.cuda.machine import Memory, Resident
from hlotool.backends.cuda.toolchain import Compiler, find_compiler, objection
from hlotool.backends.numpy.executables import check_arguments
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.errors import BackendUnavailable
from hlotool.ir.module import Module
from hlotool.system.cache import cache_folder
from hlotool.system.user_input import size_text

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


#: Bytes of the device that a program leaves allocated for the next one.
_KEPT = 1 << 30


class CudaExecutable(KernelExecutable):
    """A module on a GPU."""

    def __init__(self, module: Module, backend: CudaBackend, fuses: bool) -> None:
        super().__init__(module, backend, fuses)
        self._backend = backend
        self._loading: CudaLoading

    @property
    def notes(self) -> tuple[str, ...]:
        """What the host executes instead of a kernel, and what the last run moved there for want of room."""
        spilled = self._loading.spilled
        note = f"the device was full: {size_text(spilled)} moved to the host"
        return (*super().notes, note) if spilled else super().notes

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`."""
        result = super().run(arguments, probe)
        # Other processes may need the device, too.
        self._backend.memory.device.release(_KEPT)
        return result

    def prepare(self, arguments: Sequence[Value]) -> Prepared:
        """The program with its arguments on the device, to run and time it there.

        Raises:
            InputDataError: an argument does not fit its parameter.
            BackendFailed: they do not fit into the device's memory, or it died.
        """
        values = self._loading.residents(check_arguments(self.module, arguments))
        return Prepared(self._backend.memory, self._plan, values)


class CudaBackend(KernelBackend):
    """Runs generated kernels on a GPU.

    Args:
        name: as on the command line.
        number: of the device.
        compiler: `nvrtc` or `nvcc`; what is there if empty.
        fuses: operations are fused first.
        waits: every kernel is waited for, so that errors name the right instruction.
        calls_libraries: cuBLAS multiplies large matrices, where it is installed.
        precision: of narrow floats inside of fusions.

    Attributes:
        memory: of the device.

    Raises:
        BackendUnavailable: pycuda, the driver, the device or a compiler is missing, or too old for
            the others.
    """

    def __init__(
        self,
        name: str = "cuda",
        number: int = 0,
        compiler: str = "",
        *,
        fuses: bool = True,
        waits: bool = False,
        calls_libraries: bool = True,
        precision: Precision = Precision.HLO,
    ) -> None:
        super().__init__(name, fuses, precision, calls_libraries)
        self.waits = waits
        self._device: Device = open_device(number)
        self._compiler = find_compiler(compiler, self._device.architecture, self._device.cuda)
        self.memory = Memory(self._device)

    @property
    def version(self) -> str:
        """`cuda (sm_90, pycuda 2026.1, driver for CUDA 13.0, NVRTC 13.0)`."""
        device = self._device
        return f"{self.name} ({device.architecture}, {device.versions}, {self._compiler.version})"

    @property
    def device(self) -> str:
        """As the driver calls it."""
        return self._device.name

    @property
    def has_library(self) -> bool:
        """Whether cuBLAS multiplies large matrices."""
        return self._calls_libraries and find_library(self._device.cuda[0]) is not None

    @cached_property
    def library(self) -> Cublas:
        """cuBLAS on the device."""
        found = find_library(self._device.cuda[0])
        assert found is not None
        return Cublas(found, self._device)

    def loading(self) -> CudaLoading:
        """The kernels of one module on this device."""
        return CudaLoading(self)

    def load(self, kernels: Iterable[Kernel]) -> dict[str, Function]:
        """Kernels by name, compiled where they have not been before, and loaded."""
        compiled = compile_kernels(kernels, self._device.architecture, self._compiler)
        functions: dict[str, Function] = {}
        for cubin in {c.cubin for c in compiled.values()}:
            names = [name for name, c in compiled.items() if c.cubin == cubin]
            functions |= self._device.load(cubin.read_bytes(), names, self._compiler.version)
        return functions

    def _executable(self, module: Module) -> CudaExecutable:
        return CudaExecutable(module, self, self._fuses)


class Prepared:
    """A program with its arguments on the device.

    Args:
        memory: of the device.
        plan: of the program.
        values: its arguments as residents.
    """

    def __init__(self, memory: Memory, plan: Plan, values: Sequence[Any]) -> None:
        self._memory = memory
        self._plan = plan
        self._values = values
        for value in values:
            _send(value)

    def run(self) -> Any:
        """Queue one execution; the result stays on the device (`to_arrays` brings it down).

        Arguments are not modified: what the program would update in place is copied.
        """
        with np.errstate(all="ignore"):
            return self._plan(list(self._values), Run())

    def time(self, repeats: int, inner: int = 1) -> list[float]:
        """Milliseconds of one execution by the device's clock, measured `repeats` times.

        Args:
            repeats: how many measurements.
            inner: executions within each, so that what the host does between them does not count for as much.
        """
        device = self._memory.device

        def work() -> None:
            for _ in range(inner):
                self.run()

        return [device.time(work) / inner for _ in range(repeats)]


def _send(value: Any) -> None:
    if isinstance(value, tuple):
        for part in value:
            _send(part)
    elif isinstance(value, Resident):
        value.storage.on_device()
