"""Programs that would not fit: they run as they are with less held at once, or get smaller sizes.

A comparison holds its arguments, both results and what legal executions return. Arguments and the expected
result can be read from files instead; then what counts is what one execution has alive at once, in the
order of instructions in which that is least.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from msgspec import Struct

from hlotool.errors import Unsupported
from hlotool.facts.memory import INTERPRETER, all_values, memory_of
from hlotool.facts.schedules import lightened
from hlotool.facts.work import of_running
from hlotool.ir.arrays import LEAST, OnDisk, room_on_disk
from hlotool.ir.edit import with_attributes
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, ShapeIndex, array_shapes
from hlotool.rewrite.scale.classes import Classes, classes_of
from hlotool.rewrite.scale.records import (
    LOOP,
    InPlaceRecord,
    ScaleRecord,
    SizeRecord,
    StayingRecord,
    Wish,
    wish_of,
)
from hlotool.rewrite.scale.resize import SMALLEST, Rewrite, choices, cut, given, last_resorts
from hlotool.rewrite.scale.terms import Dims, Size
from hlotool.system.user_input import size_text

#: A comparison holds the values of both sides, and those of legal executions in f64 beside them.
COPIES: Final = 4
#: How often a comparison executes a program: two sides, legal executions, further sets, looking for a place.
RUNS: Final = 20
#: How many executions have to fit where sizes are last resorts: what is left of such programs is overhead,
#: and judging them takes more than this count says. The one model that needs them took 21 where an output
#: was unstable, which takes most executions, and 15 where none was: seconds of the processor by the work of
#: an execution (benchmarks/results/scaled.md, "Programs larger than the machine").
RUNS_AT_LAST: Final = 25
#: How often one does that runs programs as they are with values on disk: both sides once, on one set of
#: inputs. Where these differ, the judge ends with its share of the time.
RUNS_IN_PLACE: Final = 4
#: Of what a program that is scaled may need: it is small anyhow, and judging it takes its time.
_MEMORY_GOAL: Final = 1 << 30
_WORK_GOAL: Final = 300_000_000
_UNITS_PER_SECOND: Final = 1_000_000_000
#: Of bytes and of units of work that records hold.
_MOST: Final = (1 << 63) - 1


class Need(Struct, frozen=True):
    """What one execution takes.

    Attributes:
        memory: bytes.
        work: units of `system.resources.work_limit`.
    """

    memory: int
    work: int


def need_of(*programs: Module, room: float = 0) -> Need:
    """Estimate what one execution takes of those of `programs` that takes most; on the reference.

    What 63 bits do not hold counts as the most that they hold: centuries, and more than any machine has.

    Args:
        programs: in question.
        room: bytes; of what needs no more for certain, the memory may be more than it needs, up to this.
    """
    memory = max(map(all_values, programs))
    if memory > room:
        memory = max(memory_of(module, INTERPRETER).peak for module in programs)
    return Need(min(memory, _MOST), min(max(map(of_running, programs)), _MOST))


class Limits(Struct, frozen=True):
    """What a comparison may take.

    Attributes:
        memory: bytes.
        seconds: of the clock.
    """

    memory: float
    seconds: float

    def within(self, wish: Wish) -> Limits:
        """With the memory that somebody wants instead, where they name one."""
        return Limits(wish.memory, self.seconds) if wish.memory else self

    def hold(self, need: Need) -> bool:
        """Whether a comparison of programs of which one execution needs that fits."""
        return self.lacks(need) == ""

    def hold_at_last(self, need: Need) -> bool:
        """Whether one of programs whose sizes are last resorts fits."""
        return self.has_memory_for(need) and self.has_time_for(need, RUNS_AT_LAST)

    def lacks(self, need: Need) -> str:
        """What it would take too much of, in words; empty where it fits."""
        if not self.has_memory_for(need):
            taken, there = size_text(COPIES * need.memory), size_text(self.memory)
            return f"a comparison needs about {taken}, and there is {there}"
        if not self.has_time_for(need):
            seconds = need.work / _UNITS_PER_SECOND
            return f"one execution takes about {seconds:,.0f} s, and a comparison many"
        return ""

    @property
    def room(self) -> float:
        """Bytes that each of the copies may take."""
        return self.memory / COPIES

    def has_memory_for(self, need: Need) -> bool:
        """Whether all copies of what a comparison holds fit at once."""
        return COPIES * need.memory <= self.memory

    def settles(self, need: Need) -> bool:
        """Whether other memory changes nothing: executions take too long, and sizes are of the goal."""
        enough = self.memory >= COPIES * _MEMORY_GOAL
        return enough and not self.has_time_for(need, RUNS_IN_PLACE)

    def has_time_for(self, need: Need, runs: int = RUNS) -> bool:
        """Whether so many executions fit into the seconds."""
        return runs * need.work <= self.seconds * _UNITS_PER_SECOND


@dataclass(frozen=True, eq=False)
class Scaled:
    """Programs with smaller sizes.

    Attributes:
        programs: by the key that they were given under.
        record: what became of the sizes.
    """

    programs: Mapping[str, Module]
    record: ScaleRecord
    _classes: Classes
    _chosen: Mapping[Size, int]
    _keys: Sequence[str]

    def original(self, key: str) -> Module:
        """The program as it is."""
        return self._classes.modules[self._keys.index(key)]

    def arguments(self, key: str, values: Sequence[Any]) -> tuple[Any, ...]:
        """Arguments of the program as it is, cut to those of the smaller one; leaf by leaf."""
        parameters = self.original(key).entry.parameters
        return tuple(
            self._cut(value, self._classes.known.dims[parameter], ())
            for value, parameter in zip(values, parameters)
        )

    def _cut(self, value: Any, dims: Mapping[ShapeIndex, Dims], index: ShapeIndex) -> Any:
        if isinstance(value, tuple):
            return tuple(self._cut(part, dims, (*index, n)) for n, part in enumerate(value))
        if not isinstance(value, np.ndarray):
            return value
        return cut(self._classes.known.sizes, dims[index], self._chosen, value)


def scaled(programs: Mapping[str, Module], text: str, limits: Limits) -> Scaled | None:
    """Programs that compute the same, the reference first, with sizes that fit; None where they fit as
    they are.

    Args:
        programs: by any key.
        text: what the user wants: see `wish_of`; not `never`.
        limits: of a comparison.

    Raises:
        Unsupported: they do not fit, and no smaller sizes do; or no dimension has a size that was asked for.
        UsageError: `text` is none of what it may be.
    """
    wish = wish_of(text)
    limits = limits.within(wish)
    why = limits.lacks(need_of(*programs.values(), room=limits.room))
    if not why and not wish.sizes:
        return None
    need = need_of(*programs.values())
    classes = classes_of(list(programs.values()))
    candidates = _candidates(classes, wish)
    if not candidates:
        raise Unsupported(f"{why}, and no dimension could be shown to be of any size")
    copies = {key: Rewrite(module, classes) for key, module in programs.items()}

    def set_sizes(chosen: Mapping[Size, int]) -> Need:
        """Give the copies sizes; what an execution of the one that needs more needs then."""
        for copy in copies.values():
            copy.set_sizes(chosen)
        return need_of(*(copy.module for copy in copies.values()))

    goal = Limits(min(limits.memory, COPIES * _MEMORY_GOAL), min(limits.seconds, RUNS * _WORK_GOAL / 1e9))
    # Larger sizes need more: halving finds the largest ones that meet the goal, or ends at the smallest.
    first = bisect_left(candidates, True, hi=len(candidates) - 1, key=lambda c: goal.hold(set_sizes(c)))
    chosen = candidates[first]
    found = set_sizes(chosen)
    if not wish.sizes and not limits.hold(found):
        why_not = f"{limits.lacks(found)}, even with the smallest sizes that could be derived"
        tried = ((smaller, set_sizes(smaller)) for smaller in last_resorts(classes))
        last = next(((sizes, taken) for sizes, taken in tried if limits.hold_at_last(taken)), None)
        if last is None:
            raise Unsupported(why_not)
        chosen, found = last
    for copy in copies.values():
        copy.verify()
    made = {key: copy.module for key, copy in copies.items()}
    settled = bool(wish.sizes) or (goal.hold(found) and limits.settles(need))
    record = _record(classes, chosen, why or "asked for", need, found, settled)
    return Scaled(made, record, classes, chosen, [*made])


def _candidates(classes: Classes, wish: Wish) -> Sequence[Mapping[Size, int]]:
    """Sizes to try, the largest first; the only ones where somebody asks for them."""
    if not wish.sizes:
        return list(choices(classes))
    chosen, missing = given(classes, wish.sizes)
    if missing:
        free = ", ".join(map(str, sorted({atom.value for atom in classes.free}, reverse=True)[:12]))
        raise Unsupported(
            f"--scale: no dimension of size {missing[0]} can be changed; there are {free or 'none'}"
        )
    return [chosen]


def _record(
    classes: Classes, chosen: Mapping[Size, int], why: str, need: Need, found: Need, settled: bool
) -> ScaleRecord:
    names = _names(classes)
    # Of a dimension that is cut at some place the whole is what a user knows.
    wholes, sizes_of = classes.wholes(), classes.known.sizes
    changed: dict[tuple[int, int], list[Size]] = {}
    for shown in dict.fromkeys(wholes.get(atom, atom) for atom in chosen):
        changed.setdefault((shown.value, sizes_of.evaluate(shown, chosen)), []).append(shown)
    sizes = [
        SizeRecord(
            name=next((names[a] for a in atoms if a in names), ""),
            old=old,
            new=new,
            dimensions=sum(max(classes.uses[part] for part in sizes_of.atoms(a)) for a in atoms),
        )
        for (old, new), atoms in sorted(changed.items(), key=lambda item: (-item[0][0], item[0][1]))
    ]
    staying: dict[tuple[int, str], int] = {}
    for atom in classes.sides:
        reason = classes.known.sizes.root(atom).why
        if reason and atom.value > SMALLEST:
            staying[atom.value, reason] = staying.get((atom.value, reason), 0) + classes.uses[atom]
    return ScaleRecord(
        why=why,
        sizes=sizes,
        stay=[
            StayingRecord(size=size, why=reason, dimensions=count)
            for (size, reason), count in sorted(staying.items(), reverse=True)
        ],
        constants=sum(1 for held in classes.constants.values() if _changes(classes, chosen, held.sizes)),
        unseen=[
            one.text
            for one in classes.known.unseen
            if classes.known.sizes.evaluate(one.size, chosen) <= one.number < one.size.value
        ],
        memory=need.memory,
        work=need.work,
        scaled_memory=found.memory,
        scaled_work=found.work,
        settled=settled,
    )


def _changes(classes: Classes, chosen: Mapping[Size, int], sizes: Sequence[Size]) -> bool:
    return any(classes.known.sizes.evaluate(size, chosen) != size.value for size in sizes)


def _names(classes: Classes) -> dict[Size, str]:
    """Atoms by a parameter that has them as a dimension, or by the loop that walks along them."""
    known, found = classes.known, dict[Size, str]()
    for size in classes.loops:
        found[known.sizes.root(size)] = LOOP
    for parameter in classes.modules[0].entry.parameters:
        name = (parameter.metadata.op_name if parameter.metadata else "") or f"%{parameter.name}"
        for index, dims in known.dims[parameter].items():
            place = name + "".join(f".{n}" for n in index)
            for number, size in enumerate(dims):
                found.setdefault(known.sizes.root(size), f"{place} dimension {number}")
    return found


#: Bytes that drawing an element takes beside it: f32 and f64 are drawn in place, narrow floats in f32,
#: others, integers and preds among them, in words of eight bytes.
_OF_NARROW_FLOATS, _OF_OTHERS = 4, 8


@dataclass(frozen=True, eq=False)
class InPlace:
    """Programs that run as they are, with what is large on disk.

    Attributes:
        programs: by the key that they were given under, in their lightest order.
        limit: bytes of memory that there are.
        memory: bytes that a comparison would take otherwise, estimated.
        needed: bytes of memory that one execution needs, estimated.
        reordered: programs that have another order.
        written: bytes of arguments and of the expected result, which will be on disk.
    """

    programs: Mapping[str, Module]
    limit: int
    memory: int
    needed: int
    reordered: int
    written: int
    _disk: OnDisk = field(default_factory=OnDisk)

    def keep(self, value: Any) -> Any:
        """The same value, its large arrays on disk; raises NoRoomOnDisk."""
        return self._disk.keep(value)

    @property
    def record(self) -> InPlaceRecord:
        """What was done so far."""
        return self._record(self._disk.size)

    @property
    def planned(self) -> InPlaceRecord:
        """What will be done, before anything is."""
        return self._record(self.written)

    def _record(self, on_disk: int) -> InPlaceRecord:
        return InPlaceRecord(
            limit=self.limit,
            memory=self.memory,
            needed=self.needed,
            on_disk=on_disk,
            reordered=self.reordered,
        )


def in_place(programs: Mapping[str, Module], limits: Limits) -> InPlace | None:
    """How `programs`, whose comparison takes more memory than there is, run all the same.

    Args:
        programs: by any key, the reference first.
        limits: of a comparison.

    Returns:
        None where an execution by itself takes too much, or the disk has no room, or runs take too long.
    """
    need = need_of(*programs.values())
    if not limits.has_time_for(need, RUNS_IN_PLACE):
        return None
    lighter = {key: lightened(module) for key, module in programs.items()}
    needed = max(map(_needed, lighter.values()))
    first = next(iter(lighter.values()))
    written = _large(*first.entry.parameters) + _large(first.entry.root)
    if needed > limits.memory or written > room_on_disk():
        return None
    others = [lighter[key] for key, module in programs.items() if lighter[key] is not module]
    for module in others:
        # In another order it is no schedule of the compiler's: who overwrites what is open.
        module.attributes = with_attributes(module.attributes, is_scheduled=None)
    return InPlace(lighter, int(limits.memory), COPIES * need.memory, needed, len(others), written)


def _needed(module: Module) -> int:
    """Bytes of memory of one execution with large arguments on disk, and of drawing the largest of these."""
    parameters = module.entry.parameters
    shapes = (shape for parameter in parameters for shape in array_shapes(parameter.shape))
    peak = memory_of(module, INTERPRETER).peak
    return max(peak - _large(*parameters), *map(_drawing, shapes), 0)


def _drawing(shape: ArrayShape) -> int:
    """Bytes of memory that making an argument takes, itself included."""
    kind = shape.element_type
    if kind in (ElementType.F32, ElementType.F64):
        return shape.byte_size
    return shape.byte_size + shape.size * (_OF_NARROW_FLOATS if kind.is_narrow_float else _OF_OTHERS)


def _large(*instructions: Instruction) -> int:
    """Bytes of the arrays that are put on disk."""
    sizes = (shape.byte_size for i in instructions for shape in array_shapes(i.shape))
    return sum(size for size in sizes if size >= LEAST)
