"""What is kept of an execution: a hash of every value, and the values themselves as far as they fit.

A program of a large model makes more values than a machine holds. Every value is hashed, each is stored once
however often it occurs, first in memory, then in a temporary file, then not at all: `Store.dropped` says how
many were seen but not kept.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from typing import IO

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.field.values import compared, is_marked
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction

#: Bytes that are hashed together, of which a copy is made.
_PIECE = 1 << 24


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of an execution is kept.

    Attributes:
        memory: bytes of values in memory, single numbers not counted.
        disk: bytes of values in a temporary file, after that.
        samples: values that are hashed; what comes later is not looked at.
        seconds: that each part of a search may take: each execution, then the tests of what is suspected.
        work: units of work that these tests may be.
    """

    memory: int = 256 << 20
    disk: int = 2 << 30
    samples: int = 1_000_000
    seconds: float = float("inf")
    work: float = float("inf")


class OutOfTime(HlotoolError):
    """The execution was stopped: looking at every value takes longer than the budget allows."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One array that was computed.

    Attributes:
        order: number of the value in the order of execution; -1 for arguments and constants.
        digest: of its bits and its element type; not of its dimensions. Of exact words what is compared
            counts.
        dims: its actual dimensions.
        nan: it holds a NaN.
        inf: it holds an infinity.
    """

    order: int
    digest: bytes
    dims: tuple[int, ...]
    nan: bool
    inf: bool


class Store:
    """Arrays by digest, each once."""

    def __init__(self, budget: Budget) -> None:
        self._memory_left = budget.memory
        self._disk_left = budget.disk
        self._arrays: dict[bytes, Array] = {}
        self._places: dict[bytes, tuple[int, np.dtype[np.generic], tuple[int, ...]]] = {}
        self._file: IO[bytes] | None = None
        self._refused: set[bytes] = set()

    @property
    def dropped(self) -> int:
        """How many different values found no room."""
        return len(self._refused)

    def sample(self, order: int, array: Array) -> Sample:
        """Hash an array and keep it, if there is room."""
        digest = _digest(array)
        self.keep(digest, array)
        nan, inf = _specials(array)
        return Sample(order, digest, array.shape, nan, inf)

    def value(self, sample: Sample) -> Array | None:
        """The array of a sample, in its own dimensions: equal bits are stored once, whatever their shape."""
        array = self.get(sample.digest)
        return array if array is None or array.shape == sample.dims else array.reshape(sample.dims)

    def keep(self, digest: bytes, array: Array) -> None:
        """Store `array`, if there is room; for a single number there always is."""
        if digest in self._arrays or digest in self._places or digest in self._refused:
            return
        if array.nbytes <= self._memory_left or array.size == 1:
            self._memory_left -= array.nbytes
            self._arrays[digest] = array
        elif array.nbytes <= self._disk_left:
            self._disk_left -= array.nbytes
            self._write(digest, array)
        else:
            self._refused.add(digest)

    def get(self, digest: bytes) -> Array | None:
        """A stored array, in the dimensions that it was first seen in; None when there was no room."""
        if digest in self._arrays:
            return self._arrays[digest]
        place = self._places.get(digest)
        if place is None or self._file is None:
            return None
        offset, dtype, dims = place
        self._file.seek(offset)
        size = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize
        return np.frombuffer(self._file.read(size), dtype).reshape(dims)

    def close(self) -> None:
        """Give the temporary file back."""
        if self._file is not None:
            self._file.close()

    def _write(self, digest: bytes, array: Array) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="hlotool-")  # noqa: SIM115 - `close` does
        offset = self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(array).tobytes())
        self._places[digest] = offset, array.dtype, array.shape


class Deadline:
    """A probe that stops an execution; a program that was changed may run for ever.

    Args:
        seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """See `Probe`."""
        if time.monotonic() > self._end:
            raise OutOfTime(f"stopped after {self._seconds:g} s")


def _digest(array: Array) -> bytes:
    """For this process alone: Python's own hash takes an eighth of the time of those of `hashlib`.

    Of a million values two have the same 64 bits by chance once in thirty million executions.
    """
    content = np.ascontiguousarray(compared(array) if is_marked(array) else array).reshape(-1).view(np.uint8)
    pieces = (content[start : start + _PIECE].tobytes() for start in range(0, content.size, _PIECE))
    return f"{array.dtype} {content.size} {list(map(hash, pieces))}".encode()


def _specials(array: Array) -> tuple[bool, bool]:
    """Whether there are NaNs, and infinities."""
    if array.dtype.kind in "biu" or array.size == 0 or is_marked(array):
        return False, False
    numbers = array if array.dtype.kind in "fc" and array.dtype.itemsize >= 4 else _widened(array)
    if numbers is None or np.isfinite(numbers).all():
        return False, False
    return bool(np.isnan(numbers).any()), bool(np.isinf(numbers).any())


def _widened(array: Array) -> Array | None:
    """Narrow floats in f32; None for narrow integers."""
    try:
        is_float = np.dtype(array.dtype).kind == "f" or array.dtype.name.startswith(("float", "bfloat"))
    except TypeError:
        return None
    return array.astype(np.float32) if is_float else None
