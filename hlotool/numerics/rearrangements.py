"""Right values in wrong places: shifted, transposed, swapped, repeated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from hlotool.ir.dtypes import Array
from hlotool.numerics.patterns import Difference, Pattern, close

#: Share of the places at which a shifted copy must fit: what comes in from the edge may be anything.
_MOST_PLACES = 0.85
#: Ranks up to which every order of dimensions is tried: of 4 there are 24, of 5 already 120. And elements
#: moved to try all exchanges of blocks, whose number grows with the dimension, as does what each moves.
_HIGHEST_RANK, _MOST_MOVES = 4, 1 << 24


def off_by_one_row(found: Difference) -> Pattern | None:
    """Some rows (or columns) are copies of a neighbour."""
    for axis in range(found.wrong.ndim):
        if found.wrong.shape[axis] < 3:
            continue
        others = tuple(d for d in range(found.wrong.ndim) if d != axis)
        is_wrong = found.wrong.any(axis=others)
        if not is_wrong.any() or is_wrong.mean() > 0.5:
            continue
        for step in (-1, 1):
            if _repeats(found, axis, step, np.flatnonzero(is_wrong)):
                text = f"the wrong ones along dimension {axis} repeat their neighbour"
                return Pattern("off by one row", text)
    return None


def _repeats(found: Difference, axis: int, step: int, indices: Array) -> bool:
    neighbours = indices + step
    if neighbours.min() < 0 or neighbours.max() >= found.expected.shape[axis]:
        return False
    copied = np.take(found.expected, neighbours, axis)
    own = np.take(found.actual, indices, axis)
    right = np.take(found.expected, indices, axis)
    return _fits(found, copied, own) and not _fits(found, copied, right)


def shift(found: Difference) -> Pattern | None:
    """Everything is a few places further, in memory or along a dimension."""
    if found.wrong.mean() < 0.5 or not found.is_rich:
        return None
    for name, expected, actual in _along(found):
        for step in (1, -1, 2, -2):
            if abs(step) * 4 > expected.shape[0]:
                continue
            here = actual[step:] if step > 0 else actual[:step]
            there = expected[:-step] if step > 0 else expected[-step:]
            if _fits(found, there, here):
                return Pattern("shift", f"the values are shifted by {step} {name}")
    return None


def _along(found: Difference) -> Iterator[tuple[str, Array, Array]]:
    """Both arrays with each dimension in front, and flat."""
    for axis, size in enumerate(found.expected.shape):
        if size > 3:
            name = f"along dimension {axis}"
            yield name, np.moveaxis(found.expected, axis, 0), np.moveaxis(found.actual, axis, 0)
    yield "in memory", found.expected.reshape(-1), found.actual.reshape(-1)


def transpose(found: Difference) -> Pattern | None:
    """The dimensions are in another order, as if read in another layout."""
    rank = found.expected.ndim
    if not 2 <= rank <= _HIGHEST_RANK or not found.is_rich:
        return None
    for order in permutations(range(rank)):
        if order == tuple(range(rank)):
            continue
        if _fits(found, found.expected.transpose(order).reshape(found.actual.shape), found.actual, 1.0):
            text = f"the values are those of the transpose with dimensions {{{','.join(map(str, order))}}}"
            return Pattern("transpose", text)
    return None


def reversal(found: Difference) -> Pattern | None:
    """A dimension runs backwards."""
    if not found.is_rich:
        return None
    for axis, size in enumerate(found.expected.shape):
        if size > 1 and _fits(found, np.flip(found.expected, axis), found.actual, 1.0):
            return Pattern("reversed", f"dimension {axis} is reversed")
    return None


def swap(found: Difference) -> Pattern | None:
    """Two blocks along a dimension changed places."""
    if not found.is_rich:
        return None
    for axis, size in enumerate(found.expected.shape):
        if size < 2 or size * found.wrong.size > _MOST_MOVES:
            continue
        others = tuple(d for d in range(found.wrong.ndim) if d != axis)
        indices = np.flatnonzero(found.wrong.any(axis=others))
        if len(indices) < 2:
            continue
        first, last = int(indices[0]), int(indices[-1]) + 1
        if _is_exchange(found, axis, first, last):
            return Pattern("swap", f"two blocks along dimension {axis} changed places")
    return None


def _is_exchange(found: Difference, axis: int, first: int, last: int) -> bool:
    """Whether [first, last) consists of two blocks in the wrong order, with or without something between."""
    actual = np.take(found.actual, range(first, last), axis)
    expected = np.take(found.expected, range(first, last), axis)
    length = last - first
    if any(_fits(found, np.roll(expected, step, axis), actual, 1.0) for step in range(1, length)):
        return True
    for width in range(1, length // 2 + 1):
        order = [*range(length - width, length), *range(width, length - width), *range(width)]
        if _fits(found, np.take(expected, order, axis), actual, 1.0):
            return True
    return False


def reordered(found: Difference) -> Pattern | None:
    """The same values in some other order."""
    wrong = found.wrong
    if not found.is_rich or found.expected.dtype.kind == "c":
        return None
    one, other = np.sort(found.expected[wrong]), np.sort(found.actual[wrong])
    if close(one, other, found.tolerance, found.scale).all():
        return Pattern("reordered", "the same values in another order")
    return None


def _fits(found: Difference, candidate: Array, actual: Array, most: float = _MOST_PLACES) -> bool:
    if candidate.shape != actual.shape or not actual.size:
        return False
    # Looks at a few places first: most candidates fail there.
    sample = slice(None, None, max(1, actual.size // 64))
    flat, own = candidate.reshape(-1), actual.reshape(-1)
    if not close(flat[sample], own[sample], found.tolerance, found.scale).mean() >= most - 0.1:
        return False
    if not close(flat, own, found.tolerance, found.scale).mean() >= most:
        return False
    return bool(np.ptp(np.abs(own)) > 0)
