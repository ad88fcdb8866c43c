"""What is alive when a program compiled by XLA needs the most memory, and what would lower that.

The same estimate as `hlotool.facts.memory`: the sizes of what is alive add up to its peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from hlotool.facts.buffers import Sizes
from hlotool.facts.lives import Lives, Value
from hlotool.facts.memory import (
    XLA,
    Estimate,
    Moment,
    parameter_aliases,
)
from hlotool.facts.memory_kinds import Change, Kind
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, array_shapes, leaves

#: Smaller parts of the peak are not worth a change of the program.
_LEAST: Final = 0.01
#: To copy a value away and back takes time: fewer instructions without it leave none.
_LONG: Final = 8
#: Each one that may be donated takes an estimate.
_DONATIONS: Final = 10
#: Made again for little more than writing the result.
_CHEAP: Final = (
    opcodes_with(Class.ELEMENTWISE) - opcodes_with(Trait.TRANSCENDENTAL, Trait.APPLIES)
    | opcodes_with(Trait.REGROUPS, Trait.STRUCTURE)
    | {"iota", "slice"}
)
#: `S(5)`: memory of the host.
_HOST: Final = 5


@dataclass(frozen=True, slots=True)
class Live:
    """A value at the peak.

    Attributes:
        chain: the instruction that makes it, after the calls that lead to it.
        shape: of the array.
        index: of the leaf of that instruction's result.
        size: in bytes.
        kind: what it is to the program.
    """

    chain: tuple[Instruction, ...]
    shape: Shape
    index: ShapeIndex
    size: int
    kind: Kind

    @property
    def space(self) -> int:
        """The memory space of its layout."""
        layouts = (part.layout for part in array_shapes(self.shape))
        return next((layout.memory_space for layout in layouts if layout is not None), 0)


@dataclass(frozen=True, slots=True)
class Saving:
    """A change of the program that would lower the peak, by this estimate.

    Attributes:
        change: what to do.
        live: with which value.
        saved: bytes at the moment of the peak.
        frame: of the computations that run at the peak, the number of the value's own.
        first, last: positions there between which the value need not lie in memory.
        result: the leaf that takes over the memory of a donated argument.
        peak: of the program then, which may have another moment that needs nearly as much.
    """

    change: Change
    live: Live
    saved: int
    frame: int
    first: int
    last: int
    result: ShapeIndex = ()
    peak: int = 0


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment of the most memory.

    Attributes:
        size: in bytes.
        lost: of these, what lies unused between the values.
        at: the instruction that runs then, after the calls that lead to it.
        live: the largest first; donated arguments and results are always in it, and what lies where a result
            will be is not. Other memory spaces add nothing to the size.
        savings: the most effective first.
    """

    size: int
    lost: int
    at: tuple[Instruction, ...]
    live: Sequence[Live]
    savings: Sequence[Saving]


@dataclass(slots=True)
class _Frame:
    """A computation that runs at the peak: the entry, or what the frame before it calls then."""

    computation: Computation
    calls: tuple[Instruction, ...]
    lives: Lives
    moments: Sequence[Moment]
    position: int
    readers: dict[Value, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for position, instruction in enumerate(self.computation.instructions):
            made, opcode = self.lives.made[position], instruction.opcode
            if made or opcode in opcodes_with(Trait.CONTROL_FLOW):
                # Others hand values on: a tuple reads nothing.
                for value in (*made, *self._operands(instruction)):
                    self.readers.setdefault(value, []).append(position)
        for value in self.lives.values[self.computation.root]:
            self.readers.setdefault(value, []).append(len(self.moments))

    def _operands(self, instruction: Instruction) -> Iterator[Value]:
        for operand in instruction.operands:
            yield from self.lives.values[operand]

    def makers(self) -> Mapping[Value, tuple[Instruction, ShapeIndex, Shape]]:
        """The first instruction that has each value."""
        found: dict[Value, tuple[Instruction, ShapeIndex, Shape]] = {}
        for instruction in self.computation.instructions:
            for value, (index, shape) in zip(self.lives.values[instruction], leaves(instruction.shape)):
                found.setdefault(value, (instruction, index, shape))
        return found

    def holds(self, value: Value) -> bool:
        """Whether a value of the computation's own is alive at the peak."""
        if value.is_own and value.is_reserved:
            return True
        if value.made > self.position or not (value.is_own or value.space):
            return False
        ends_there = value.last_use == self.position and not value.is_taken
        return value.last_use < 0 or value.last_use > self.position or ends_there

    def gap(self, value: Value) -> tuple[int, int] | None:
        """Positions of the uses before and after the peak; None where it is used then."""
        before = [position for position in self.readers[value] if position <= self.position]
        after = [position for position in self.readers[value] if position > self.position]
        return (before[-1], after[0]) if before and after and before[-1] < self.position else None

    def kept_for(self, instruction: Instruction, until: int) -> int:
        """Bytes of the operands that would live longer if the instruction ran at position `until`."""
        operands = dict.fromkeys(self._operands(instruction))
        return sum(value.size for value in operands if value.is_own and 0 <= value.last_use < until)


def peak_of(module: Module, sizes: Sizes | None = None) -> Peak:
    """What is alive when `module`, with its instructions in the order of execution, needs the most.

    Args:
        module: as XLA executes it.
        sizes: of its shapes, where somebody has counted them.
    """
    estimate = Estimate(module, XLA, sizes or Sizes())
    frames = list(_frames(estimate, module.entry))
    constants = [Live((i,), i.shape, (), estimate.bytes_of(i), Kind.CONSTANT) for i in estimate.constants]
    held = [(number, *found) for number, frame in enumerate(frames) for found in _held(frame, number == 0)]
    size = estimate.kept() + estimate.allocated()
    lost = size - estimate.kept() - _most(frames)
    base = size - _most(frames)
    shifted = [s for s in _gaps(frames, held) if s.saved >= _LEAST * size]
    savings = [replace(saving, peak=base + _most(frames, saving)) for saving in shifted]
    savings += _donations(module, estimate, size, held)
    last = frames[-1]
    return Peak(
        size=size,
        lost=lost,
        at=(*last.calls, last.computation.instructions[last.position]),
        live=sorted([*constants, *(live for _, _, live in held)], key=lambda live: -live.size),
        savings=sorted(savings, key=lambda saving: (saving.peak, -saving.saved)),
    )


def _frames(estimate: Estimate, entry: Computation) -> Iterator[_Frame]:
    computation, lives = entry, estimate.lives
    calls: tuple[Instruction, ...] = ()
    while True:
        moments = list(estimate.moments(computation, lives))
        totals = [moment.own + moment.within for moment in moments]
        elsewhere = _elsewhere(lives)
        # Of several such moments the first one at which something is made.
        position = max(
            range(len(totals)), key=lambda n: (totals[n], elsewhere[n], any(v.size for v in lives.made[n]))
        )
        yield _Frame(computation, calls, lives, moments, position)
        callee, caller = moments[position].callee, computation.instructions[position]
        if callee is None or not moments[position].within:
            return
        computation, lives, calls = callee, estimate.lives_in(caller, callee), (*calls, caller)


def _elsewhere(lives: Lives) -> list[int]:
    """Bytes in other memory spaces while each instruction runs."""
    changes = [0] * (len(lives.made) + 1)
    for made in lives.made:
        for value in made:
            if value.space:
                changes[value.made] += value.size
                changes[min(value.last_use + 1, len(lives.made))] -= value.size
    return list(accumulate(changes))


def _held(frame: _Frame, is_entry: bool) -> Iterator[tuple[Value, Live]]:
    """The values of a computation that are alive at the peak; arguments that stay always are."""
    results = frozenset(frame.lives.values[frame.computation.root]) if is_entry else frozenset()
    for value, (maker, index, shape) in frame.makers().items():
        is_argument = maker.opcode == "parameter" and is_entry
        if value.size and (frame.holds(value) or (is_argument and not value.is_own)):
            made = Kind.RESULT if value in results else Kind.TEMPORARY
            kind = Kind.ARGUMENT if is_argument else made
            yield value, Live((*frame.calls, maker), shape, index, value.size, kind)


def _most(frames: Sequence[_Frame], saving: Saving | None = None) -> int:
    """The most that is allocated at once, with one change of the program.

    A computation that is called at other moments, too, counts there as it is.
    """
    most = 0
    for number, frame in reversed(list(enumerate(frames))):
        totals = [moment.own + moment.within for moment in frame.moments]
        if number + 1 < len(frames):
            totals[frame.position] = frame.moments[frame.position].own + most
        if saving is not None and saving.frame == number:
            for position in range(saving.first + 1, saving.last):
                totals[position] -= saving.saved
        most = max(totals)
    return most


def _donations(
    module: Module, estimate: Estimate, size: int, held: Sequence[tuple[int, Value, Live]]
) -> Iterator[Saving]:
    """The largest arguments that a result can be written over; each is estimated anew."""
    entry, lives = module.entry, estimate.lives
    aliased = {alias.output_index for alias in parameter_aliases(module)}
    free = {
        value: (index, shape)
        for value, (index, shape) in zip(lives.values[entry.root], leaves(entry.root.shape))
        if value.made >= 0 and index not in aliased
    }

    def fits(result: Value, given: Value, shape: Shape) -> bool:
        maker = entry.instructions[result.made]
        is_read_last = given.last_use == result.made
        return _is_alike(free[result][1], shape) and (
            given.last_use < result.made
            or (is_read_last and estimate.may_take_over(maker, result, given, lives.values))
        )

    arguments = [(value, live) for _, value, live in held if live.kind is Kind.ARGUMENT and not value.is_own]
    for value, live in sorted(arguments, key=lambda row: -row[0].size)[:_DONATIONS]:
        result = next((result for result in free if fits(result, value, live.shape)), None)
        if result is None or value.size < _LEAST * size:
            continue
        index, _ = free.pop(result)
        alias = ParameterAlias(index, entry.parameters.index(live.chain[-1]), live.index)
        donated = Estimate(module, XLA, Sizes(), [alias])
        peak = donated.kept() + donated.allocated()
        if peak < size:
            yield Saving(Change.DONATE, live, value.size, 0, value.last_use, len(lives.made), index, peak)


def _is_alike(a: Shape, b: Shape) -> bool:
    if not (isinstance(a, ArrayShape) and isinstance(b, ArrayShape)):
        return False
    return (a.element_type, a.dims) == (b.element_type, b.dims)


def _gaps(frames: Sequence[_Frame], held: Sequence[tuple[int, Value, Live]]) -> Iterator[Saving]:
    """Temporaries that are not used at the peak, but before and after it."""
    for number, value, live in held:
        frame, maker = frames[number], live.chain[-1]
        gap = frame.gap(value) if live.kind is Kind.TEMPORARY else None
        if gap is None:
            continue
        saved = value.size - frame.kept_for(maker, gap[1])
        if saved > 0 and _is_cheap(maker):
            yield Saving(Change.REMATERIALIZE, live, saved, number, *gap)
        elif gap[1] - gap[0] > _LONG and live.space != _HOST:
            yield Saving(Change.OFFLOAD, live, value.size, number, *gap)


def _is_cheap(instruction: Instruction) -> bool:
    if instruction.opcode == "fusion":
        inside = (i.opcode for callee in instruction.called for i in callee.instructions)
        return isinstance(instruction.shape, ArrayShape) and _CHEAP.issuperset(inside)
    return instruction.opcode in _CHEAP
