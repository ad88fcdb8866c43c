"""Combining updates into an array at given positions, in order, duplicates included (scatter and kin)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from hlotool.backends.numpy.lanes import Lanes
from hlotool.backends.numpy.monoids import Monoid
from hlotool.backends.numpy.ordering import has_negative_zero
from hlotool.ir.dtypes import Array

#: Changes targets of shape [positions, row] in place at `positions` by updates of shape [updates, row].
Combine: TypeAlias = Callable[[Sequence[Array], Array, Sequence[Array]], None]

#: Index entries that `ufunc.at` gets at once.
_CHUNK = 1 << 22


def combiner(combine: Lanes) -> Combine:
    """How to apply f(current…, updates…) to one update after the other.

    Each application rounds to the declared type, as XLA's CPU code does. The order of the updates to one
    position is kept.
    """
    forwarded = _forwarded(combine)
    if forwarded is not None:
        return lambda targets, positions, updates: _overwrite(targets, positions, updates, forwarded)
    monoids = combine.monoids
    in_rounds = _in_rounds(combine)
    if monoids is None or not all(map(_has_native_type, monoids)):
        return in_rounds

    def at(targets: Sequence[Array], positions: Array, updates: Sequence[Array]) -> None:
        if any(_zeros_matter(m, t, u) for m, t, u in zip(monoids, targets, updates)):
            return in_rounds(targets, positions, updates)
        for monoid, target, update in zip(monoids, targets, updates):
            _at(monoid.ufunc, target, positions, update)
        return None

    return at


def _forwarded(combine: Lanes) -> tuple[bool, ...] | None:
    """For f that returns its arguments: which outputs are the update (False: the current value)."""
    form = combine.form
    if form is None or len(form.parameters) != 2 * len(form.outputs):
        return None
    count = len(form.outputs)
    own = zip(form.outputs, form.parameters[:count], form.parameters[count:])
    if not all(output in (current, update) for output, current, update in own):
        return None
    return tuple(o is u for o, u in zip(form.outputs, form.parameters[count:]))


def _overwrite(
    targets: Sequence[Array], positions: Array, updates: Sequence[Array], forwarded: Sequence[bool]
) -> None:
    """The last update wins (NumPy assigns in order)."""
    for target, update, taken in zip(targets, updates, forwarded):
        if taken:
            target[positions] = update


def _has_native_type(monoid: Monoid) -> bool:
    """Whether the ufunc works on the declared type itself, so that it rounds at each step."""
    kind = monoid.element_type
    return not kind.is_narrow_float and kind.bits >= 8


def _zeros_matter(monoid: Monoid, target: Array, update: Array) -> bool:
    return monoid.is_float_extremum and (has_negative_zero(update) or has_negative_zero(target))


def _at(ufunc: np.ufunc, target: Array, positions: Array, update: Array) -> None:
    """`ufunc.at` element by element, which NumPy does much faster than row by row."""
    row = target.shape[1]
    flat = target.reshape(-1)
    step = max(1, _CHUNK // max(1, row))
    for start in range(0, len(positions), step):
        part = positions[start : start + step]
        index = (part[:, None] * row + np.arange(row)).reshape(-1) if row != 1 else part
        ufunc.at(flat, index, update[start : start + step].reshape(-1))


def _in_rounds(combine: Lanes) -> Combine:
    """Round r applies the r-th update of every position: all at once, yet in order for each position."""

    def apply(targets: Sequence[Array], positions: Array, updates: Sequence[Array]) -> None:
        for chosen in _rounds(positions):
            where = positions[chosen]
            values = combine(*(t[where] for t in targets), *(u[chosen] for u in updates))
            for target, value in zip(targets, values):
                target[where] = value

    return apply


def _rounds(positions: Array) -> Iterator[Array]:
    """Indices of the first update of every position, of the second, and so on."""
    if not len(positions):
        return
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    indices = np.arange(len(ordered))
    rank = indices - np.maximum.accumulate(np.where(is_first, indices, 0))
    by_rank = order[np.argsort(rank, kind="stable")]
    yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
