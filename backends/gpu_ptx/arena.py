"""Bytes that many threads read and write at once, with a shadow that knows which of them were written.

A shadow byte is `GUARD` (no such memory), `RAW` (never written) or `SET`; `FLIGHT` is what an asynchronous
copy is going to write.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

GUARD, RAW, SET, FLIGHT = 0, 1, 3, 5

#: Unsigned integers of one, two, four or eight bytes: bits of values of threads.
Bits: TypeAlias = NDArray[np.unsignedinteger]
#: 64-bit offsets or addresses, one for each thread.
Offsets: TypeAlias = NDArray[np.int64]

UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


class AccessFault(Exception):
    """An access that is not allowed.

    Args:
        kind: see `KernelFault`.
        message: what is wrong.
        which: index of the first thread, of those that access, that does it.
        offset: where in the arena.
    """

    def __init__(self, kind: str, message: str, which: int = 0, offset: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.which = which
        self.offset = offset


def first(condition: NDArray[np.bool_]) -> int:
    """Index of the first element that holds."""
    return int(np.argmax(condition))


class Arena:
    """Memory of `size` bytes, at first filled with `fill`, with the shadow value `state`.

    Offsets are not checked here: what computes them knows the limits.
    """

    def __init__(self, size: int, state: int, fill: int = 0xCD, shadowed: bool = True) -> None:
        size = -(-size // 16) * 16
        self.data = np.full(size, fill, np.uint8) if fill else np.zeros(size, np.uint8)
        self.shadow = np.full(size if shadowed else 0, state, np.uint8)
        self.shadowed = shadowed
        self.alias()

    def alias(self) -> None:
        """Arrays of words over the same bytes."""
        self.words = {bits: self.data.view(kind) for bits, kind in UNSIGNED.items()}
        self.shadows = {bits: self.shadow.view(kind) for bits, kind in UNSIGNED.items()}

    def load(self, offsets: Offsets, bits: int) -> Bits:
        """Words of `bits` bits at `offsets`, which are multiples of their size.

        Raises:
            AccessFault: a byte was never written, or is on its way.
        """
        places = offsets if bits == 8 else offsets >> _LOG[bits]
        if self.shadowed:
            states = self.shadows[bits][places]
            if states.size and not (states == _ALL_SET[bits]).all():
                self._refuse(states, offsets, bits)
        found: Bits = self.words[bits][places]
        return found

    def store(self, offsets: Offsets, values: Bits, bits: int) -> None:
        """Write words; of two threads at one place, the later one wins."""
        places = offsets if bits == 8 else offsets >> _LOG[bits]
        if self.shadowed:
            states = self.shadows[bits][places]
            if (states & _ALL_FLIGHT[bits]).any():
                self._refuse(states | _ALL_SET[bits], offsets, bits)
            self.shadows[bits][places] = _ALL_SET[bits]
        self.words[bits][places] = values

    def _refuse(self, states: Bits, offsets: Offsets, bits: int) -> None:
        """Say what is wrong with the bytes of a shadow."""
        each = states.reshape(-1, 1).view(np.uint8)
        flying = (each & FLIGHT) == FLIGHT
        if flying.any():
            which = first(flying.any(axis=1))
            where = int(np.atleast_1d(offsets)[which]) + first(flying[which])
            raise AccessFault(
                "in flight", "an asynchronous copy to these bytes is not waited for", which, where
            )
        raw = (each != SET).any(axis=1)
        if raw.any():
            raise AccessFault("uninitialised", "reads memory that was never written", first(raw))


_LOG = {16: 1, 32: 2, 64: 3}
_ALL_SET = {
    bits: kind(int.from_bytes(bytes([SET]) * (bits // 8), "little")) for bits, kind in UNSIGNED.items()
}
_ALL_FLIGHT = {bits: kind(int.from_bytes(b"\x04" * (bits // 8), "little")) for bits, kind in UNSIGNED.items()}
