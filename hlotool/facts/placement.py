"""Where a compiled program's values lie, as XLA assigns them.

Results have memory from the beginning. What is dead when a result is made may lie there before, the largest
first. All else is packed into one piece: the largest first, or what lives longest, each in the smallest gap
that is free meanwhile. Computations that are run count as if they stood where they are called.

XLA: buffer_assignment.cc (BufferAssigner), heap_simulator.cc (GlobalDecreasingSizeBestFitHeap).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hlotool.facts.lives import Lives, Value
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import TupleShape, leaves
from hlotool.ir.walk import post_order, reachable

#: What is smaller than this part of the largest is not placed, but counted while it lives.
_LEAST: Final = 1 / 4096
#: Results that others may lie with, and what is placed, at most: each is compared with all others.
_RESULTS, _PLACED = 256, 2000
#: Addresses are multiples of it; on TPUs of the second.
_ALIGNED, _TPU_ALIGNED = 64, 1 << 14
#: There the table of a tuple has a place of its own from beginning to end, of so many bytes.
_TPU_TABLE: Final = 512

#: The computations that an instruction runs, with their values.
RunBy: TypeAlias = Callable[[Instruction], Iterable[tuple[Computation, Lives]]]
#: Whether an instruction may write a value where another one lies that dies with it; the values of operands.
TakesOver: TypeAlias = Callable[[Instruction, Value, Value, Mapping[Instruction, Sequence[Value]]], bool]


class Stay(Struct, eq=False):
    """A value while it is alive.

    Attributes:
        value: in question.
        start, end: of its life; instructions are counted in the order of execution.
        maker: the instruction that makes it.
        lives: the values of its computation.
    """

    value: Value
    start: int
    end: int
    maker: Instruction
    lives: Lives


def stays(entry: Computation, lives: Lives, run_by: RunBy) -> list[Stay]:
    """All values that are made, those of computations that are called at several places left out."""
    found: dict[Computation, list[Stay]] = {}
    repeated: set[Computation] = set()
    clock = count()

    def visit(computation: Computation, lives: Lives) -> int:
        """When the first part of the result of a computation is made."""
        times: list[int] = []
        starts: list[int] = []
        own = found[computation] = []
        for instruction in computation.instructions:
            inner: list[int] = []
            for called, inside in run_by(instruction):
                if called not in found:
                    inner.append(visit(called, inside))
                elif called not in repeated:
                    repeated.update(reachable(called))
            times.append(next(clock))
            starts.append(min(inner, default=times[-1]))
        times.append(next(clock))
        for position, made in enumerate(lives.made):
            maker = computation.instructions[position]
            own.extend(Stay(v, starts[position], times[v.last_use], maker, lives) for v in made)
        made_in = [v.made for v in lives.values[computation.root] if v.made >= 0]
        return times[min(made_in, default=-1)]

    visit(entry, lives)
    return [stay for computation, own in found.items() if computation not in repeated for stay in own]


def reserve(
    entry: Computation,
    lives: Lives,
    aliases: Sequence[ParameterAlias],
    staying: Sequence[Stay],
    takes_over: TakesOver,
) -> None:
    """Reserve memory for the results of the entry, and put others there: these have none of their own."""
    places = dict(_places(entry, lives, aliases, {stay.value: stay for stay in staying}))
    if not places:
        return
    smallest = max(place.size for place in places) * _LEAST
    offered = [place for place in reversed(places) if place.size >= smallest]
    offered.sort(key=lambda place: place.size)
    offered = offered[-_RESULTS:]
    sizes = [place.size for place in offered]
    temporaries = [
        s for s in staying if s.value.is_own and not s.value.is_reserved and s.value.size >= smallest
    ]
    # Of equal sizes the one first that comes first on the way to the result.
    on_the_way = chain.from_iterable(post_order([c.root], _first_first) for c in reachable(entry))
    order = {instruction: number for number, instruction in enumerate(on_the_way)}
    temporaries.sort(key=lambda stay: (-stay.value.size, order.get(stay.maker, len(order))))
    for stay in temporaries[:_PLACED]:
        for place in offered[bisect_left(sizes, stay.value.size) :]:
            if all(_are_apart(stay, other, takes_over) for other in places[place]):
                places[place].append(stay)
                stay.value.is_own = stay.value.may_be_overwritten = False
                break


def _first_first(instruction: Instruction) -> Iterable[Instruction]:
    """The operands as `post_order` takes them: the last one of what it is given comes first."""
    return reversed(instruction.operands)


def _places(
    entry: Computation,
    lives: Lives,
    aliases: Sequence[ParameterAlias],
    staying: Mapping[Value, Stay],
) -> Iterator[tuple[Value, list[Stay]]]:
    """What is reserved, and who is there: a result, and a donated argument that it takes over."""
    donated = {}
    parameters = entry.parameters
    clock = max(stay.end for stay in staying.values()) if staying else 0
    start_of = {stay.maker: stay.start for stay in staying.values()}
    for alias in aliases:
        parameter = parameters[alias.parameter]
        for (index, _), value in zip(leaves(parameter.shape), lives.values[parameter]):
            if index == alias.parameter_index:
                donated[alias.output_index] = value, parameter
    end = len(lives.made)
    for (index, _), value in zip(leaves(entry.root.shape), lives.values[entry.root]):
        if not value.is_own or value.is_reserved or value not in staying:
            continue
        value.is_reserved = True
        if index not in donated:
            yield value, [staying[value]]
            continue
        given, parameter = donated[index]
        last = entry.instructions[given.last_use] if 0 <= given.last_use < end else None
        until = -1 if last is None else start_of.get(last, clock)
        given.last_use, given.is_reserved, value.is_own = end, True, False
        yield given, [staying[value], Stay(replace(given), -1, until, parameter, lives)]


def _are_apart(a: Stay, b: Stay, takes_over: TakesOver) -> bool:
    """Whether two values can lie at one place one after the other."""
    earlier, later = (a, b) if a.start < b.start else (b, a)
    if earlier.end < later.start:
        return True
    return earlier.end == later.start > earlier.start and takes_over(
        later.maker, later.value, earlier.value, later.lives.values
    )


def packed(staying: Sequence[Stay], is_tpu: bool) -> int:
    """Bytes of the piece that holds what has memory of its own; what takes over a place adds nothing."""
    held: dict[Value, list[int]] = {}
    for stay in staying:
        value, first = stay.value, stay.value
        if not value.is_own or value.is_reserved or not value.size:
            continue
        while first in stay.lives.taken:
            first = stay.lives.taken[first]
        span = held.setdefault(first, [value.size, stay.start, stay.end])
        span[1], span[2] = min(span[1], stay.start), max(span[2], stay.end)
    unit = _TPU_ALIGNED if is_tpu else _ALIGNED
    found = [(size, start, end) for size, start, end in held.values()]
    if is_tpu:
        tuples = {stay.maker for stay in staying if isinstance(stay.maker.shape, TupleShape)}
        found += [(_TPU_TABLE, -1, max(stay.end for stay in staying)) for _ in tuples]
    found.sort(reverse=True)
    large = found[:_PLACED]
    tried = (
        sorted(large, key=lambda span: (-span[0], span[1] - span[2])),
        sorted(large, key=lambda span: (span[1] - span[2], -span[0])),
    )
    return min(_height(spans, unit) for spans in tried) + _together(found[_PLACED:])


def _height(spans: Iterable[tuple[int, int, int]], unit: int) -> int:
    """Bytes of what the spans are packed into, in this order, each in the smallest gap."""
    placed: list[tuple[int, int, int, int]] = []
    height = 0
    for size, start, end in spans:
        gaps: list[tuple[int, int]] = []
        free = 0
        for low, high in sorted((p[0], p[1]) for p in placed if p[2] <= end and start <= p[3]):
            if low - free >= size:
                gaps.append((low - free, free))
            free = max(free, -(-high // unit) * unit)
        offset = min(gaps)[1] if gaps else free
        placed.append((offset, offset + size, start, end))
        height = max(height, offset + size)
    return height


def _together(spans: Sequence[tuple[int, int, int]]) -> int:
    """The most bytes that are alive at once."""
    changes = [(start, 0, size) for size, start, _ in spans] + [(end, 1, -size) for size, _, end in spans]
    live = most = 0
    for _, _, change in sorted(changes):
        live += change
        most = max(most, live)
    return most
