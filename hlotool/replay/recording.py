"""What a probe saw of one execution: a hash of every value, and the values themselves as far as they fit.

A program of a large model makes more values than a machine holds. Every value is hashed, each is stored once
however often it occurs, first in memory, then in a temporary file, then not at all: `Recording.dropped` says
how many were seen but not kept.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, TypeAlias

import numpy as np

from hlotool.alignment.graph import Graph
from hlotool.backends.base import Value
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

#: Iteration of each loop around an instruction, the outermost first; empty outside of loops.
Iteration: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of an execution is kept.

    Attributes:
        memory: bytes of values in memory, single numbers not counted.
        disk: bytes of values in a temporary file, after that.
        samples: values that are hashed; what comes later is not looked at.
        seconds: after which the execution is stopped.
    """

    memory: int = 256 << 20
    disk: int = 2 << 30
    samples: int = 1_000_000
    seconds: float = float("inf")


class OutOfTime(HlotoolError):
    """The execution was stopped: looking at every value takes longer than the budget allows."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of an instruction.

    Attributes:
        order: number of the value in the order of execution.
        digest: of its bits and its element type; not of its dimensions.
        nan: it holds a NaN.
        inf: it holds an infinity.
    """

    order: int
    digest: bytes
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


@dataclass(slots=True)
class Recording:
    """The values of one execution.

    Attributes:
        samples: per instruction and iteration, in the order of execution.
        store: the values that were kept.
        incomplete: there were more values than the budget allows to look at.
    """

    samples: dict[Instruction, dict[Iteration, Sample]] = field(default_factory=dict)
    store: Store = field(default_factory=lambda: Store(Budget()))
    incomplete: bool = False

    def value(self, instruction: Instruction, iteration: Iteration) -> Array | None:
        """The value of an instruction in an iteration; None when it was not seen or not kept."""
        sample = self.samples.get(instruction, {}).get(iteration)
        array = self.store.get(sample.digest) if sample else None
        return None if array is None else _as_declared(array, instruction)

    @property
    def count(self) -> int:
        """Values that were computed and looked at."""
        return sum(s.order >= 0 for samples in self.samples.values() for s in samples.values())

    @property
    def bits(self) -> Mapping[Instruction, str]:
        """One hash for all values of each instruction, in the order of execution."""
        return {i: _joined([s.digest for s in samples.values()]).hex() for i, samples in self.samples.items()}


def _as_declared(array: Array, instruction: Instruction) -> Array:
    """The array in the dimensions of the instruction: equal bits are stored once, whatever their shape."""
    shape = instruction.shape
    if isinstance(shape, ArrayShape) and not shape.is_dynamic and array.shape != shape.dims:
        return array.reshape(shape.dims)
    return array


def _joined(digests: list[bytes]) -> bytes:
    return digests[0] if len(digests) == 1 else hashlib.blake2b(b"".join(digests), digest_size=16).digest()


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


class Recorder:
    """A probe that fills a recording.

    Args:
        graph: of the program that is executed; its calls must be flattened.
        budget: how much is kept.
    """

    def __init__(self, graph: Graph, budget: Budget) -> None:
        self.recording = Recording(store=Store(budget))
        self._budget = budget
        self._nodes = graph.operands
        self._loops = _loops(graph)
        self._iterations: dict[Instruction, int] = {}
        self._count = 0
        self._end = time.monotonic() + budget.seconds

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """See `Probe`."""
        if instruction.opcode == "while":
            self._iterations.pop(instruction, None)
        loops = self._loops.get(instruction)
        if loops is None or not isinstance(value, np.ndarray | np.generic):
            return
        if self._count >= self._budget.samples:
            self.recording.incomplete = True
            return
        if self._count % 64 == 0 and time.monotonic() > self._end:
            raise OutOfTime(f"stopped after {self._budget.seconds:g} s")
        self._add(instruction, np.asarray(value), loops)

    def add_source(self, instruction: Instruction, value: Value) -> None:
        """Record what no probe sees: a constant, a parameter of the entry."""
        if isinstance(value, np.ndarray | np.generic):
            self.recording.samples[instruction] = {(): self._sample(-1, np.asarray(value))}

    def _add(self, instruction: Instruction, array: Array, loops: tuple[Instruction, ...]) -> None:
        samples = self.recording.samples.setdefault(instruction, {})
        iteration = self._iteration(loops)
        if iteration in samples and loops:
            # It has been here before: the innermost loop has begun its next iteration.
            self._iterations[loops[-1]] = self._iterations.get(loops[-1], 0) + 1
            iteration = self._iteration(loops)
        samples[iteration] = self._sample(self._count, array)
        self._count += 1

    def _iteration(self, loops: tuple[Instruction, ...]) -> Iteration:
        return tuple(self._iterations.get(loop, 0) for loop in loops)

    def _sample(self, order: int, array: Array) -> Sample:
        digest = _digest(array)
        self.recording.store.keep(digest, array)
        nan, inf = _specials(array)
        return Sample(order, digest, nan, inf)


def _digest(array: Array) -> bytes:
    content = np.ascontiguousarray(array)
    hashed = hashlib.blake2b(str(array.dtype).encode(), digest_size=16)
    hashed.update(content.reshape(-1).view(np.uint8).data)
    return hashed.digest()


def _specials(array: Array) -> tuple[bool, bool]:
    """Whether there are NaNs, and infinities."""
    if array.dtype.kind in "biu" or array.size == 0:
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


def _loops(graph: Graph) -> dict[Instruction, tuple[Instruction, ...]]:
    """The loops around each node whose values are recorded, outermost first."""
    by_computation = {}
    for computation in graph.computations:
        around = graph.enclosing(computation.instructions[0])
        by_computation[computation] = tuple(reversed([c for c in around if c.opcode == "while"]))
    return {i: by_computation[graph.home[i]] for i in graph.nodes}
