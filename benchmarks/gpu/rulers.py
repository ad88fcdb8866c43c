"""What a backend is measured with: its clock, its bounds, what its kernels use. For `cuda`: `cuda_ruler`."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.cuda.kernel_backend import KernelExecutable
from hlotool.backends.registry import get_backend, parse_spec
from hlotool.errors import UsageError
from hlotool.ir.arrays import Array

#: Something to be timed.
Work: TypeAlias = Callable[[], object]

#: The name of what bounds everything that moves memory.
COPY = "copy on the device"
#: A case is to keep the device busy for so many seconds, far longer than it takes the host to launch a
#: kernel.
LONG_ENOUGH = 100e-6
#: A case is to move so many times the bytes of the largest cache, which then holds next to nothing that it
#: reads.
_CACHES = 4
#: Of `mallopt`: fill new memory with the complement of a byte.
_M_PERTURB = -6
#: A byte that is zero but not the number 0, which switches this off.
_ZERO = 0x100


@dataclass(frozen=True, slots=True)
class Resources:
    """What the kernels of a program use; of each the most.

    Attributes:
        registers: of a thread.
        spilled: bytes of a thread that did not fit into registers.
    """

    registers: int
    spilled: int


@dataclass(frozen=True, slots=True)
class Basic:
    """A property of the machine, not of a program.

    Attributes:
        name: what was measured.
        seconds: median.
        moved: bytes; 0 where nothing is moved.
    """

    name: str
    seconds: float
    moved: int = 0


class Ruler(Protocol):
    """Measures one backend.

    Attributes:
        backend: its spec.
        device: that it computes on.
        is_hardware: times say something about a GPU.
        cache: bytes of its largest cache; 0 where that is unknown.
    """

    backend: str
    device: str
    is_hardware: bool
    cache: int

    def compile(self, text: str) -> KernelExecutable:
        """The program on this backend."""

    def bind(self, executable: KernelExecutable, arguments: Sequence[Array]) -> Callable[[], Any]:
        """Executes a program once on arguments that stay on the device, as does what it returns."""

    def arrays(self, result: Any) -> Value:
        """Such a result, brought to the host."""

    def seconds(self, work: Work, count: int) -> float:
        """That one of `count` executions in a row takes on the device."""

    def wait(self) -> None:
        """Until everything started is done."""

    def poisoned(self) -> AbstractContextManager[None]:
        """Meanwhile memory for results is filled with ones before it is used."""

    def resources(self, executable: KernelExecutable) -> Resources | None:
        """Of its kernels; None where there are none."""

    def ceiling(self, size: int, count: int = 1) -> Basic:
        """How fast memory of so many bytes can be copied, so often in a row."""

    def basics(self, size: int) -> Iterator[Basic]:
        """Other properties of the machine; transfers are of so many bytes."""


def median(work: Work, ruler: Ruler, repeats: int = 30, count: int = 1) -> float:
    """Seconds of one execution, of `count` in a row."""
    for _ in range(3):
        work()
    return statistics.median(ruler.seconds(work, count) for _ in range(repeats))


def case_size(ceiling: Basic, cache: int) -> int:
    """Bytes that a case has to move for its time to be that of a device's memory; more only costs time."""
    return max(_CACHES * cache, round(LONG_ENOUGH * ceiling.moved / ceiling.seconds))


class EmulatorRuler:
    """Measures `cuda-emu` by the clock on the wall; see `Ruler`."""

    backend = "cuda-emu"
    is_hardware = False
    cache = 0

    def __init__(self) -> None:
        self._backend: Any = get_backend(self.backend)
        self.device = self._backend.version

    def compile(self, text: str) -> KernelExecutable:
        return compiled(self._backend, text)

    def bind(self, executable: KernelExecutable, arguments: Sequence[Array]) -> Callable[[], Any]:
        return partial(executable.run, arguments)

    def arrays(self, result: Any) -> Value:
        value: Value = result
        return value

    def seconds(self, work: Work, count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            work()
        return (time.perf_counter() - start) / count

    def wait(self) -> None:
        """Nothing is ever under way."""

    @contextmanager
    def poisoned(self) -> Iterator[None]:
        library = ctypes.CDLL(None)
        library.mallopt(_M_PERTURB, _ZERO)
        try:
            yield
        finally:
            library.mallopt(_M_PERTURB, 0)

    def resources(self, executable: KernelExecutable) -> Resources | None:
        return None

    def ceiling(self, size: int, count: int = 1) -> Basic:
        source = np.ones(size, np.uint8)
        target = np.empty_like(source)
        return Basic(COPY, median(lambda: np.copyto(target, source), self, count=count), 2 * size)

    def basics(self, size: int) -> Iterator[Basic]:
        return iter(())


def compiled(backend: Any, text: str) -> KernelExecutable:
    """A program on a backend of generated kernels, from its text."""
    from hlotool.parser.reader import parse_module

    executable = backend.compile(parse_module(text))
    assert isinstance(executable, KernelExecutable)
    return executable


def open_ruler(backend: str) -> Ruler:
    """The ruler of a backend.

    Raises:
        UsageError: there is none.
        BackendUnavailable: something that the backend needs is missing.
    """
    if backend == EmulatorRuler.backend:
        return EmulatorRuler()
    if parse_spec(backend).name == "cuda":
        from benchmarks.gpu.cuda_ruler import CudaRuler

        return CudaRuler(backend)
    raise UsageError(f"no way to measure backend {backend}")
