"""The CUDA device of this process: memory, transfers, launches, clocks. Nothing else imports pycuda.

Everything is queued on one stream, the default one, in the order in which it is asked for; so memory that is
given back can be used by what comes next, and a transfer waits for the kernels before it. The context is the
device's primary one, which libraries in the same process (cuBLAS, JAX) share.
"""

from __future__ import annotations

import atexit
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

from hlotool.errors import (
    BackendCrashed,
    BackendFailed,
    BackendOutOfMemory,
    BackendTimeout,
    BackendUnavailable,
)
from hlotool.ir.arrays import Array
from hlotool.system.resources import limit_growth

#: Memory on the device: `int()` is its address; it is given back when nothing holds it any more.
Allocation: TypeAlias = Any

#: A kernel that has been loaded.
Function: TypeAlias = Any

#: Blocks of a launch. CUDA C++ programming guide, table "Technical specifications per compute capability".
MAX_BLOCKS = (1 << 31) - 1

REMEDY = "pip install 'hlotool[cuda]'"


@cache
def open_device(number: int = 0) -> Device:
    """A device by its number, opened once in a process.

    Raises:
        BackendUnavailable: pycuda, the driver or the device is missing.
    """
    return Device(_pycuda(), number)


def _pycuda() -> Any:
    try:
        import pycuda.driver
        import pycuda.tools
    except ModuleNotFoundError as error:
        missing = (error.name or "pycuda").partition(".")[0]
        raise BackendUnavailable(
            f"backend cuda needs {missing}: {REMEDY}, with the nvcc of a CUDA toolkit on the PATH"
        ) from error
    except ImportError as error:
        if "libcuda" in str(error):
            raise BackendUnavailable(
                f"backend cuda needs NVIDIA's driver, and there is none here ({error}); "
                "cuda-emu runs the same kernels on the CPU"
            ) from error
        raise BackendUnavailable(f"backend cuda: pycuda does not go with this driver: {error}") from error
    return pycuda


#: What the driver says of kernels that a newer compiler made. CUDA driver API: the texts of
#: CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_PTX and CUDA_ERROR_UNSUPPORTED_PTX_VERSION.
_TOO_NEW = ("image is invalid", "PTX JIT compilation failed", "unsupported toolchain")


def _remedy(refusal: str) -> str:
    """What helps where the driver refuses kernels."""
    if any(text in refusal for text in _TOO_NEW):
        return "a driver of the compiler's version of CUDA takes them; this one takes an older compiler's"
    return "they are made for another architecture"


class Device:
    """One CUDA device, through pycuda.

    Args:
        pycuda: the package, with its driver and tools.
        number: of the device, as CUDA counts.

    Attributes:
        name: as the driver says it.
        architecture: what kernels are compiled for, such as `sm_90`.
        memory: bytes that it has.
        cuda: the version of CUDA that the driver is for.
        versions: of pycuda and of the driver's CUDA, in words.

    Raises:
        BackendUnavailable: there is no such device, or it cannot be used.
    """

    def __init__(self, pycuda: Any, number: int) -> None:
        self._cuda = pycuda.driver
        try:
            device = self._find(number)
            # The driver maps the memory of the device, too, which is not what a share of the host's bounds.
            limit_growth(0)
            self._context = device.retain_primary_context()
            self._context.push()
        except self._cuda.Error as error:
            raise BackendUnavailable(f"backend cuda finds no CUDA device that works: {error}") from error
        self._thread = threading.get_ident()
        self._pool = pycuda.tools.DeviceMemoryPool()
        self._modules: list[Any] = []
        atexit.register(self._close)
        self.name: str = device.name()
        self.architecture = "sm_{}{}".format(*device.compute_capability())
        self.memory: int = device.total_memory()
        major, minor = divmod(self._cuda.get_driver_version() // 10, 100)
        self.cuda = (major, minor)
        self.versions = f"pycuda {'.'.join(map(str, pycuda.VERSION))}, driver for CUDA {major}.{minor}"

    def _find(self, number: int) -> Any:
        self._cuda.init()
        count = self._cuda.Device.count()
        if number >= count:
            raise BackendUnavailable(f"backend cuda finds no CUDA device {number}: there are {count}")
        return self._cuda.Device(number)

    def _close(self) -> None:
        # A context that is still current when the process ends makes pycuda abort.
        self._pool.stop_holding()
        self._context.pop()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Within, this thread may use the device, which the thread that opened it always may."""
        if threading.get_ident() == self._thread:
            yield
            return
        self._context.push()
        try:
            yield
        finally:
            self._context.pop()

    def allocate(self, size: int) -> Allocation:
        """Memory of so many bytes, at least one.

        Raises:
            BackendOutOfMemory: there is not so much left.
        """
        size = max(size, 1)
        try:
            try:
                return self._pool.allocate(size)
            except self._cuda.MemoryError:
                # The pool rounds sizes up, by a quarter at most.
                return self._cuda.mem_alloc(size)
        except self._cuda.Error as error:
            raise self._failure(error, f"allocating {size} bytes") from error

    def upload(self, target: Allocation, source: Array) -> None:
        """Copy a contiguous array to the device."""
        self._do("copying to the device", self._cuda.memcpy_htod, int(target), source)

    def download(self, target: Array, source: Allocation) -> None:
        """Fill a contiguous array from the device, when all that was asked for before is done."""
        self._do("copying from the device", self._cuda.memcpy_dtoh, target, int(source))

    def copy(self, target: Allocation, source: Allocation, size: int) -> None:
        """Copy on the device."""
        self._do("copying on the device", self._cuda.memcpy_dtod, int(target), int(source), size)

    def fill(self, target: Allocation, byte: int, size: int) -> None:
        """Set every byte."""
        self._do("filling memory", self._cuda.memset_d8, int(target), byte, size)

    def load(self, cubin: bytes, names: Sequence[str], compiler: str) -> dict[str, Function]:
        """Kernels of a compiled module, for as long as the process lasts.

        Args:
            cubin: the module.
            names: of the kernels.
            compiler: what made it, for the error.

        Raises:
            BackendUnavailable: the device, or its driver, cannot run it.
        """
        try:
            module = self._cuda.module_from_buffer(cubin)
            self._modules.append(module)
            return {name: module.get_function(name) for name in names}
        except (self._cuda.Error, UnicodeDecodeError) as error:
            # pycuda reads the buffers for the driver's messages even where the driver has not filled them.
            if self.is_broken():
                raise BackendCrashed("cuda", f"loading kernels: {error}", here=True) from error
            raise BackendUnavailable(
                f"{self.name} ({self.architecture}, {self.versions}) refuses kernels compiled by {compiler}: "
                f"{error}; {_remedy(str(error))}"
            ) from error

    def launch(self, function: Function, blocks: int, threads: int, pointers: Sequence[Allocation]) -> None:
        """Queue a kernel of at most MAX_BLOCKS blocks.

        Raises:
            BackendFailed: it cannot be launched, or what was queued before has failed.
        """
        arguments = struct.pack(f"{len(pointers)}P", *map(int, pointers))
        try:
            function._launch_kernel((blocks, 1), (threads, 1, 1), arguments, 0, None)
        except self._cuda.Error as error:
            raise self._failure(error, "launching a kernel") from error

    def synchronize(self) -> None:
        """Wait for all that was asked for.

        Raises:
            BackendFailed: some of it has failed.
        """
        self._do("running kernels", self._cuda.Context.synchronize)

    def time(self, work: Callable[[], object]) -> float:
        """Milliseconds that the device needs for what `work` asks for, by its own clock."""
        begin, end = self._cuda.Event(), self._cuda.Event()
        begin.record()
        work()
        end.record()
        self._do("running kernels", end.synchronize)
        milliseconds: float = begin.time_till(end)
        return milliseconds

    def free_memory(self) -> int:
        """Bytes that the device has left; what is kept for later use counts as used."""
        free: int = self._cuda.mem_get_info()[0]
        return free

    def release(self, kept: int = 0) -> None:
        """Give memory that is kept for later use back to the driver, if it is more than `kept` bytes."""
        if self._pool.managed_bytes - self._pool.active_bytes > kept:
            self._pool.free_held()

    def _do(self, what: str, function: Callable[..., object], *arguments: object) -> None:
        try:
            function(*arguments)
        except self._cuda.Error as error:
            raise self._failure(error, what) from error

    def _failure(self, error: Exception, what: str) -> BackendFailed:
        """The typed error, which says whether the context has gone with it."""
        if isinstance(error, self._cuda.MemoryError):
            return BackendOutOfMemory("cuda", f"{what}: {error}")
        here = self.is_broken()
        message = f"{what}: {error}"
        if "timed out" in str(error):
            return BackendTimeout("cuda", message, here=here)
        return BackendCrashed("cuda", message, here=here)

    def is_broken(self) -> bool:
        """Whether the context is of no more use: after some errors, every later call fails, too.

        CUDA driver API, CUresult: so it is after illegal addresses, time-outs and failed launches.
        """
        try:
            self._cuda.Context.synchronize()
        except self._cuda.Error:
            return True
        return False
