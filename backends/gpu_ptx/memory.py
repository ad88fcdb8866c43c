"""The memory of the device: allocations in one address space, with guard bytes between them."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.arena import GUARD, RAW, SET, AccessFault, Arena, Bits, Offsets, first
from hlotool.backends.gpu_ptx.model import GlobalVariable

#: Device address of the first byte of the arena. Offsets of shared memory and null pointers lie far below.
BASE = 1 << 40
#: Bytes that belong to no allocation, behind each of them: as far as the widest access goes wrong by little.
GUARD_BYTES = 256


@dataclass
class Allocation:
    """Bytes `begin` to `end` of the arena; `complete`: all of them are written."""

    begin: int
    end: int
    complete: bool


class Memory:
    """Device memory.

    Args:
        capacity: bytes at first; it grows.
        check_uninitialised: reading what was never written is a fault.
    """

    def __init__(self, capacity: int = 1 << 24, *, check_uninitialised: bool = True) -> None:
        self.check_uninitialised = check_uninitialised
        self._arena = Arena(capacity, GUARD, 0, check_uninitialised)
        self._top = GUARD_BYTES
        self._allocations: list[Allocation] = []
        self._begins: list[int] = []
        self._globals: dict[tuple[str, str], int] = {}

    def allocate(self, size: int, align: int = 256, initial: bytes | None = None) -> int:
        """A new buffer of `size` bytes; its device address.

        Args:
            align: alignment of the address, a power of two.
            initial: its bytes. None: they count as never written, and hold 0xCD.
        """
        align = max(align, 16)
        begin = -(-self._top // align) * align
        self._top = begin + size + GUARD_BYTES
        if self._top > self._arena.data.size:
            self._grow()
        self._arena.data[begin : begin + size] = 0xCD
        if self.check_uninitialised:
            self._arena.shadow[begin : begin + size] = RAW
        self._allocations.append(Allocation(begin, begin + size, not self.check_uninitialised))
        self._begins.append(begin)
        if initial is not None:
            self.write(begin + BASE, initial)
        return begin + BASE

    @property
    def span(self) -> tuple[int, int]:
        """Addresses between which all buffers lie."""
        return BASE, BASE + self._top

    def _grow(self) -> None:
        old = self._arena
        self._arena = Arena(max(2 * old.data.size, 2 * self._top), GUARD, 0, self.check_uninitialised)
        self._arena.data[: old.data.size] = old.data
        self._arena.shadow[: old.shadow.size] = old.shadow

    def address_of(self, variable: GlobalVariable) -> int:
        """Where a variable of a module lies; it is allocated when it is first asked for."""
        key = variable.program, variable.name
        if key not in self._globals:
            self._globals[key] = self.allocate(variable.size, max(variable.alignment, 16), variable.initial)
        return self._globals[key]

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """The bytes themselves, until the next `allocate`. What is written there does not count as written.

        Raises:
            AccessFault: they are not all of one allocation.
        """
        begin = address - BASE
        self._allocation(begin, begin + size)
        return self._arena.data[begin : begin + size]

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """A copy of `size` bytes, written or not (see `written`)."""
        return self.view(address, size).copy()

    def write(self, address: int, data: bytes | NDArray[np.uint8]) -> None:
        """Write bytes."""
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        begin = address - BASE
        allocation = self._allocation(begin, begin + array.size)
        self._arena.data[begin : begin + array.size] = array
        if self.check_uninitialised:
            self._arena.shadow[begin : begin + array.size] = SET
            if begin == allocation.begin and begin + array.size == allocation.end:
                allocation.complete = True

    def written(self, address: int, size: int) -> NDArray[np.bool_]:
        """For each byte, whether it was written; all of them where that is not recorded."""
        begin = address - BASE
        self._allocation(begin, begin + size)
        if not self.check_uninitialised:
            return np.ones(size, np.bool_)
        found: NDArray[np.bool_] = self._arena.shadow[begin : begin + size] == SET
        return found

    def forget(self, address: int, size: int) -> None:
        """From now on these bytes count as never written: a buffer that is used anew."""
        begin = address - BASE
        self._allocation(begin, begin + size).complete = not self.check_uninitialised
        if self.check_uninitialised:
            self._arena.shadow[begin : begin + size] = RAW

    def load(self, addresses: Offsets, bits: int) -> Bits:
        """Words of `bits` bits at device addresses that are multiples of their size.

        Raises:
            AccessFault: out of bounds, or never written.
        """
        offsets = addresses - BASE
        whole = self._check(offsets, bits // 8)
        if whole is not None and whole.complete:
            places = offsets if bits == 8 else offsets >> (bits.bit_length() - 4)
            found: Bits = self._arena.words[bits][places]
            return found
        return self._arena.load(offsets, bits)

    def store(self, addresses: Offsets, values: Bits, bits: int) -> None:
        """Write words; of two threads at one place, the later one wins.

        Raises:
            AccessFault: out of bounds.
        """
        offsets = addresses - BASE
        whole = self._check(offsets, bits // 8)
        if whole is not None and whole.complete:
            places = offsets if bits == 8 else offsets >> (bits.bit_length() - 4)
            self._arena.words[bits][places] = values
        else:
            self._arena.store(offsets, values, bits)

    def _check(self, offsets: Offsets, width: int) -> Allocation | None:
        """The one allocation that all offsets lie in, or None if they lie in several."""
        if not offsets.size:
            return None
        low, high = int(offsets.min()), int(offsets.max()) + width
        at = bisect.bisect_right(self._begins, low) - 1
        if at >= 0 and high <= self._allocations[at].end:
            return self._allocations[at]
        offsets = np.atleast_1d(offsets)
        begins = np.array(self._begins, np.int64)
        ends = np.array([one.end for one in self._allocations], np.int64)
        which = np.searchsorted(begins, offsets, side="right") - 1
        outside = (which < 0) | (offsets + width > ends[which])
        if outside.any():
            worst = first(outside)
            raise AccessFault("bounds", self._nearest(int(offsets[worst]), width), worst)
        return None

    def _allocation(self, begin: int, end: int) -> Allocation:
        at = bisect.bisect_right(self._begins, begin) - 1
        if at < 0 or end > self._allocations[at].end:
            raise AccessFault("bounds", self._nearest(begin, end - begin))
        return self._allocations[at]

    def _nearest(self, offset: int, width: int) -> str:
        """Where an access out of bounds goes, said from the nearest buffer below."""
        at = bisect.bisect_right(self._begins, offset) - 1
        where = f"address {offset + BASE:#x}"
        if at >= 0:
            one = self._allocations[at]
            size = one.end - one.begin
            where = f"byte {offset - one.begin} of a buffer of {size} bytes at {one.begin + BASE:#x}"
        return f"accesses {width} bytes out of bounds, at {where}"
