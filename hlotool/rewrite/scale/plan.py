"""Programs that would not fit get smaller sizes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.errors import Unsupported
from hlotool.ir.module import Module
from hlotool.ir.types import ShapeIndex
from hlotool.rewrite.scale.classes import Classes, classes_of
from hlotool.rewrite.scale.limits import COPIES, MEMORY_GOAL, RUNS, WORK_GOAL, Limits, Need, need_of
from hlotool.rewrite.scale.records import LOOP, ScaleRecord, SizeRecord, StayingRecord, Wish, wish_of
from hlotool.rewrite.scale.resize import SMALLEST, Rewrite, choices, cut, given, last_resorts
from hlotool.rewrite.scale.terms import Dims, Size


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

    goal = Limits(min(limits.memory, COPIES * MEMORY_GOAL), min(limits.seconds, RUNS * WORK_GOAL / 1e9))
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
