"""How much of a buffer that begins as a broadcast no update ever writes, as far as the program says it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from hlotool.analysis.trip_counts import trip_count
from hlotool.check.subject import Subject
from hlotool.ir.module import Instruction

#: Elements of the largest buffer whose written parts are marked one by one.
_MOST = 1 << 24


def unwritten_share(subject: Subject, chain: Iterable[Instruction]) -> float:
    """The share of a buffer's elements that no update of it writes; 0 where that is not known.

    Known are updates at constant places, and those in a loop of a known number of rounds, which write one
    place in each round at most.

    Args:
        subject: the program.
        chain: what the buffer goes through, updates and what hands it on.
    """
    updates = [i for i in chain if i.opcode == "dynamic-update-slice"]
    rounds = [_rounds(subject, update) for update in updates]
    if not updates or any(n is None for n in rounds):
        return 0.0
    dims = updates[0].array_shape.dims
    total = prod(dims)
    if any(u.array_shape.dims != dims for u in updates) or not total:
        return 0.0
    written = 0
    fixed: list[tuple[slice, ...]] = []
    for update, count in zip(updates, rounds):
        place = _place(update)
        if place is None:
            written += (count or 0) * update.operands[1].array_shape.size
        else:
            fixed.append(place)
    if fixed and total <= _MOST:
        marks = np.zeros(dims, bool)
        for place in fixed:
            marks[place] = True
        written += int(marks.sum())
    elif fixed:
        written += sum(prod(s.stop - s.start for s in place) for place in fixed)
    return max(0, total - written) / total


def _rounds(subject: Subject, update: Instruction) -> int | None:
    """How often an update is executed at most; None where nothing says so."""
    count = 1
    computation = subject.calls.home[update]
    while callers := subject.calls.callers[computation]:
        if len(callers) > 1:
            return None
        (caller,) = callers
        if caller.opcode == "while":
            trips = trip_count(caller)
            if trips is None:
                return None
            count *= trips
        elif caller.opcode not in ("call", "conditional"):
            return None
        computation = subject.calls.home[caller]
    return count


def _place(update: Instruction) -> tuple[slice, ...] | None:
    """What an update writes at constant indices, clamped as HLO clamps them; None at others."""
    starts = [_constant(index) for index in update.operands[2:]]
    dims, sizes = update.array_shape.dims, update.operands[1].array_shape.dims
    if any(start is None for start in starts) or len(starts) != len(dims):
        return None
    clamped = [min(max(start or 0, 0), d - s) for start, d, s in zip(starts, dims, sizes)]
    return tuple(slice(start, start + size) for start, size in zip(clamped, sizes))


def _constant(index: Instruction) -> int | None:
    literal = index.literal if index.opcode == "constant" else None
    return int(literal.value) if literal is not None and isinstance(literal.value, np.ndarray) else None
