"""Values of a plan on the device: copies that move when they are read there, and not before.

A `Resident` is an array; its `Storage` is the memory behind it, which arrays of other dimensions share. What
is valid where is known, and nothing is copied twice. Memory goes back to the pool when the last array that
needs it is gone. Where the device is full, memory that has not been used for longest moves to the host.
"""

from __future__ import annotations

import sys
import threading
from functools import cache
from typing import Any
from weakref import WeakSet

import numpy as np

from hlotool.backends.base import Token
from hlotool.backends.cuda.device import Allocation, Device
from hlotool.errors import BackendOutOfMemory
from hlotool.ir.arrays import Array
from hlotool.system.user_input import size_text


class Memory:
    """The memory of a device as far as values live in it.

    Attributes:
        device: whose it is.
        moved: bytes moved so far because the host executed something.
        spilled: bytes moved so far because the device was full.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.moved = 0
        self.spilled = 0
        self._held: WeakSet[Storage] = WeakSet()
        self._clock = 0
        self._lock = threading.Lock()

    def allocate(self, size: int) -> Allocation:
        """Memory on the device; other values move to the host if they must.

        Raises:
            BackendOutOfMemory: even that is not enough.
        """
        try:
            return self.device.allocate(size)
        except BackendOutOfMemory as error:
            refusal = error
        while self._spill(size):
            try:
                return self.device.allocate(size)
            except BackendOutOfMemory as error:
                refusal = error
        left, total = map(size_text, (self.device.free_memory(), self.device.memory))
        raise BackendOutOfMemory(
            "cuda",
            f"a buffer of {size_text(size)} does not fit on the device, which has {left} of {total} left "
            "with everything on the host that is not in use",
        ) from refusal

    def hold(self, storage: Storage) -> None:
        """Say that a value has come to the device."""
        with self._lock:
            self._held.add(storage)

    def tick(self) -> int:
        """The time, for telling what was used before what."""
        self._clock += 1
        return self._clock

    def _spill(self, size: int) -> int:
        """Free at least so many bytes, if there are so many; copies first that need not be moved."""
        with self._lock:
            candidates = [storage for storage in self._held if storage.is_on_device]
        candidates.sort(key=lambda storage: (not storage.is_on_host, storage.used))
        freed = 0
        for storage in candidates:
            if freed >= size:
                break
            freed += storage.size
            self.spilled += 0 if storage.is_on_host else storage.size
            storage.leave_device()
        return freed


class Storage:
    """The bytes of an array, on the host, on the device, or on both.

    Args:
        memory: of the device.
        size: in bytes.
        host: the bytes, if they are on the host; they are never written to.
        allocation: the memory on the device, if they are there.

    Attributes:
        size: in bytes.
        used: when it was last used on the device, on the clock of `Memory`.
        is_of_host_step: it was computed on the host for want of a kernel.
    """

    __slots__ = ("__weakref__", "_allocation", "_host", "_memory", "is_of_host_step", "size", "used")

    def __init__(
        self, memory: Memory, size: int, host: Array | None = None, allocation: Allocation | None = None
    ) -> None:
        self.size = size
        self.used = memory.tick()
        self.is_of_host_step = False
        self._memory = memory
        self._host = host
        self._allocation = allocation
        if allocation is not None:
            memory.hold(self)

    @property
    def is_on_host(self) -> bool:
        """Whether the host has a valid copy."""
        return self._host is not None

    @property
    def is_on_device(self) -> bool:
        """Whether the device has a valid copy."""
        return self._allocation is not None

    def on_device(self) -> Allocation:
        """Its memory on the device, filled before if need be."""
        self.used = self._memory.tick()
        if self._allocation is None:
            allocation = self._memory.allocate(self.size)
            if self.size:
                self._memory.device.upload(allocation, self.on_host())
            if self.is_of_host_step:
                self._memory.moved += self.size
            self._allocation = allocation
            self._memory.hold(self)
        return self._allocation

    def on_host(self, for_host_step: bool = False) -> Array:
        """Its bytes on the host, brought down if need be.

        Args:
            for_host_step: because the host is to compute with them.
        """
        if self._host is None:
            host = np.empty(self.size, np.uint8)
            if self.size:
                self._memory.device.download(host, self._allocation)
            if for_host_step:
                self._memory.moved += self.size
            self._host = host
        return self._host

    def leave_device(self) -> None:
        """Give up the copy on the device; the host has one afterwards."""
        self.on_host()
        self._allocation = None


class Resident:
    """An array of a plan, in row-major order, wherever it lies.

    Args:
        storage: its memory.
        dims: its actual dimensions.
        dtype: of its elements.
    """

    __slots__ = ("dims", "dtype", "storage")

    def __init__(self, storage: Storage, dims: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.storage = storage
        self.dims = dims
        self.dtype = dtype

    def array(self, for_host_step: bool = False) -> Any:
        """The values as a NumPy array, or as a NumPy scalar without dimensions; see `Storage.on_host`."""
        array = self.storage.on_host(for_host_step).view(self.dtype).reshape(self.dims)
        return array if self.dims else array[()]

    def viewed(self, dims: tuple[int, ...], dtype: np.dtype[Any]) -> Resident:
        """The same bytes as an array of other dimensions."""
        return Resident(self.storage, dims, dtype)

    # Loops and branches of the numpy backend ask their predicates so: only they come down.
    def __bool__(self) -> bool:
        return bool(self.array())

    def __int__(self) -> int:
        return int(self.array())

    __index__ = __int__


def to_residents(value: Any, memory: Memory, is_of_host_step: bool = False) -> Any:
    """A value of the numpy backend as a plan on the device holds it."""
    if isinstance(value, tuple):
        return tuple(to_residents(part, memory, is_of_host_step) for part in value)
    if isinstance(value, (Token, Resident)):
        return value
    array = np.asarray(value)
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    storage = Storage(memory, raw.nbytes, raw)
    storage.is_of_host_step = is_of_host_step
    return Resident(storage, array.shape, array.dtype)


def to_arrays(value: Any, for_host_step: bool = False) -> Any:
    """A value of a plan on the device as NumPy arrays; tokens stay what they are."""
    if isinstance(value, tuple):
        return tuple(to_arrays(part, for_host_step) for part in value)
    return value.array(for_host_step) if isinstance(value, Resident) else value


def owns_item(values: list[Any], position: int) -> bool:
    """Whether the list holds the only reference to an array, and the array the only one to its memory."""
    return _references(values, position) <= _exclusive_references()


def _references(values: list[Any], position: int) -> int:
    return max(sys.getrefcount(values[position]), sys.getrefcount(values[position].storage))


@cache
def _exclusive_references() -> int:
    """What `_references` says of an array that only the list holds."""
    return _references([Resident(Storage.__new__(Storage), (), np.dtype(np.uint8))], 0)
