"""Measures the backend `cuda` on its device: by the device's clock, with what the driver says of kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.gpu.rulers import COPY, Basic, Resources, Work, compiled, median
from hlotool.backends.base import Value
from hlotool.backends.cuda.backend import CudaBackend, CudaExecutable, compile_kernels
from hlotool.backends.cuda.codegen.schedules import THREADS
from hlotool.backends.cuda.device import Allocation, open_device
from hlotool.backends.cuda.kernel_backend import KernelExecutable
from hlotool.backends.cuda.machine import to_arrays
from hlotool.backends.cuda.toolchain import find_compiler
from hlotool.backends.registry import get_backend, parse_spec
from hlotool.ir.arrays import Array

#: So many bytes are set, so often, while the host queues what is to be timed: a large GPU takes a
#: millisecond, the host for 20 programs of a launch or two about as long. So the clock sees the device work,
#: not wait for the host.
_LEAD, _LEADS = 1 << 30, 4
#: Bytes that are drawn for a copy; the rest repeats them.
_DRAWN = 1 << 24
#: Launches that are averaged.
_LAUNCHES = 1000
#: A program that does next to nothing.
_SMALL = "HloModule small\nENTRY main {\n  x = f32[1] parameter(0)\n  ROOT y = f32[1] add(x, x)\n}\n"
#: What the driver of the tests calls its device.
STAND_IN = "stand-in"


class CudaRuler:
    """Measures `cuda` by the device's clock; see `Ruler`.

    Args:
        backend: its spec.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        found = get_backend(backend)
        assert isinstance(found, CudaBackend)
        self._backend = found
        self._device = open_device()
        self.device = f"{self._device.name}, {found.version}"
        self.is_hardware = self._device.name != STAND_IN
        self.cache = _cache_size()
        name = parse_spec(backend).options.get("compiler", "")
        self._compiler = find_compiler(name, self._device.architecture, self._device.cuda)

    def compile(self, text: str) -> KernelExecutable:
        return compiled(self._backend, text)

    def bind(self, executable: KernelExecutable, arguments: Sequence[Array]) -> Callable[[], Any]:
        assert isinstance(executable, CudaExecutable)
        return executable.prepare(arguments).run

    def arrays(self, result: Any) -> Value:
        value: Value = to_arrays(result)
        return value

    def seconds(self, work: Work, count: int) -> float:
        def all_of_it() -> None:
            for _ in range(count):
                work()

        if self.is_hardware:
            lead, size = self._lead
            for _ in range(_LEADS):
                self._device.fill(lead, 0, size)
        return self._device.time(all_of_it) / 1e3 / count

    @cached_property
    def _lead(self) -> tuple[Allocation, int]:
        """Memory to set, and its bytes: less on a small device."""
        size = min(_LEAD, self._device.memory // 16)
        return self._device.allocate(size), size

    def wait(self) -> None:
        self._device.synchronize()

    @contextmanager
    def poisoned(self) -> Iterator[None]:
        allocate = self._device.allocate

        def filled(size: int) -> Any:
            allocation = allocate(size)
            self._device.fill(allocation, 0xFF, size)
            return allocation

        with patch.object(self._device, "allocate", filled):
            yield

    def resources(self, executable: KernelExecutable) -> Resources | None:
        kernels = compile_kernels(executable.kernels, self._device.architecture, self._compiler)
        used = [kernel.resources for kernel in kernels.values()]
        if not used:
            return None
        return Resources(max(u.registers for u in used), max(u.spill_stores + u.spill_loads for u in used))

    def ceiling(self, size: int, count: int = 1) -> Basic:
        device = self._device
        source, target = device.allocate(size), device.allocate(size)
        # Not zeros: they may be copied faster. What is there already is copied behind itself.
        drawn = np.random.default_rng(0).integers(0, 256, min(size, _DRAWN), np.uint8)
        device.upload(source, drawn)
        for start in range(_DRAWN, size, _DRAWN):
            device.copy(int(source) + start, source, min(_DRAWN, size - start))
        return Basic(COPY, median(lambda: device.copy(target, source, size), self, count=count), 2 * size)

    def basics(self, size: int) -> Iterator[Basic]:
        device = self._device
        source, target = device.allocate(size), device.allocate(size)
        device.fill(source, 1, size)
        executable = self.compile(_SMALL)
        run = self.bind(executable, [np.ones(1, np.float32)])
        yield Basic("one launch, on the host", self._host_seconds(self._launch_of(executable)))
        yield Basic("one program of one launch, on the host", self._host_seconds(run))
        yield from self._transfers("pageable", np.ones(size, np.uint8), source, target)
        yield from self._transfers("page-locked", _page_locked(size), source, target)

    def _transfers(self, kind: str, host: Array, source: Allocation, target: Allocation) -> Iterator[Basic]:
        up = partial(self._device.upload, target, host)
        down = partial(self._device.download, host, source)
        yield Basic(f"{kind} memory to the device", median(up, self, 5), host.nbytes)
        yield Basic(f"device to {kind} memory", median(down, self, 5), host.nbytes)

    def _launch_of(self, executable: KernelExecutable) -> Work:
        """Launches the only kernel of a program on memory of its own."""
        device = self._device
        (kernel,) = executable.kernels
        function = self._backend.load([kernel])[kernel.name]
        pointers = [device.allocate(4) for _ in (*kernel.inputs, *kernel.outputs)]
        return lambda: device.launch(function, kernel.grid, THREADS, pointers)

    def _host_seconds(self, work: Work) -> float:
        """That the host takes to start something, the device lagging behind or not."""
        work()
        self.wait()
        start = time.perf_counter()
        for _ in range(_LAUNCHES):
            work()
        seconds = (time.perf_counter() - start) / _LAUNCHES
        self.wait()
        return seconds


def _cache_size() -> int:
    """Bytes of the L2 cache; hlotool has no use for it, so its `Device` does not know."""
    from pycuda import driver

    return int(driver.Context.get_device().get_attribute(driver.device_attribute.L2_CACHE_SIZE))


def _page_locked(size: int) -> Array:
    """Host memory that the device can read by itself; hlotool uses none, so its `Device` has no way to it."""
    from pycuda import driver

    array: Array = driver.pagelocked_empty(size, np.uint8)
    array[:] = 1
    return array
