"""What an error looks like: the shape of a difference, or right values in wrong places.

Patterns are tried from the most to the least specific; the first that explains the wrong elements counts.
Rearranged values are shifted, transposed, swapped, repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.facts import thresholds
from hlotool.ir.arrays import Array

#: A pattern must explain so many of the wrong elements: all but those that a second cause, or a tie, may have
#: changed. So many of them are looked at first, since most patterns fail there.
_MOST, _SAMPLE = 0.99, 1000


@dataclass(frozen=True, slots=True)
class Pattern:
    """A recognised kind of error.

    Attributes:
        kind: its name, such as `constant factor`.
        text: in words, to be read after the verdict.
    """

    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class Difference:
    """Two arrays of one shape that differ, in types wide enough to compute with.

    Attributes:
        expected: f64, c128 or integers.
        actual: likewise.
        wrong: one flag per element.
        tolerance: relative error that does not count.
    """

    expected: Array
    actual: Array
    wrong: npt.NDArray[np.bool_]
    tolerance: float

    @cached_property
    def scale(self) -> float:
        """The typical magnitude of the expected values."""
        return typical_magnitude(self.expected)

    @cached_property
    def is_rich(self) -> bool:
        """Whether enough elements of enough different values are wrong for a pattern to be no accident."""
        expected = self.expected[self.wrong]
        return (
            expected.size >= thresholds.PATTERN_ELEMENTS.value
            and np.unique(expected).size >= thresholds.PATTERN_VALUES.value
        )

    def explains(self, candidate: Any, among: npt.NDArray[np.bool_] | None = None) -> bool:
        """Whether `candidate` is the actual value of almost all wrong elements (or of those in `among`)."""
        chosen = self.wrong if among is None else among
        count = int(chosen.sum())
        if not count:
            return False
        values, actual = np.broadcast_to(candidate, self.actual.shape)[chosen], self.actual[chosen]
        some = slice(None, None, 1 + count // _SAMPLE)
        if close(values[some], actual[some], self.tolerance, self.scale).mean() < _MOST - 0.1:
            return False
        return int(close(values, actual, self.tolerance, self.scale).sum()) >= _MOST * count


def difference(expected: Array, actual: Array, wrong: npt.NDArray[np.bool_], tolerance: float) -> Difference:
    """The difference of two arrays of any element type; `wrong` may be flat."""
    return Difference(_wide(expected), _wide(actual), wrong.reshape(expected.shape), tolerance)


def _wide(array: Array) -> Array:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "iu" and array.dtype.itemsize <= 8 and array.dtype != np.uint64:
        return array.astype(np.int64).astype(np.float64)
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def typical_magnitude(array: Array) -> float:
    """Root mean square of the finite elements."""
    magnitudes = np.abs(array[np.isfinite(array)])
    largest = float(magnitudes.max(initial=0))
    return largest * float(np.sqrt(np.mean((magnitudes / largest) ** 2))) if largest else 0.0


def close(one: Array, other: Array, tolerance: float, scale: float) -> npt.NDArray[np.bool_]:
    """Equal, both NaN, or as close as `tolerance` says of the larger one or of `scale`."""
    with np.errstate(all="ignore"):
        magnitude = np.maximum(np.maximum(np.abs(one), np.abs(other)), scale)
        near = np.isfinite(magnitude) & (np.abs(one - other) <= tolerance * magnitude)
        found: npt.NDArray[np.bool_] = near | (one == other) | (np.isnan(one) & np.isnan(other))
    return found


def not_finite(found: Difference) -> Pattern | None:
    """NaN or infinity on one side only."""
    for name, test in (("NaN", np.isnan), ("infinity", np.isinf)):
        here, there = test(found.actual), test(found.expected)
        for flags, text in ((here & ~there, "where there should be none"), (there & ~here, "lost")):
            if (flags & found.wrong).any():
                return Pattern(name, f"{int(flags.sum())} × {name} {text}")
    return None


def sign(found: Difference) -> Pattern | None:
    """The negative of the expected values."""
    return Pattern("sign", "the values have the opposite sign") if found.explains(-found.expected) else None


def saturation(found: Difference) -> Pattern | None:
    """Values that end at a limit which they should exceed."""
    expected, actual = found.expected[found.wrong], found.actual[found.wrong]
    if expected.dtype.kind == "c" or not found.is_rich:
        return None
    limits = sorted({float(v) for v in (actual.min(), actual.max()) if np.isfinite(v)})
    ends = np.isin(actual, limits)
    with np.errstate(all="ignore"):
        beyond = np.where(actual >= 0, expected > actual, expected < actual)
    if not limits or not ends.all() or not beyond.all() or float(np.abs(actual).max()) == 0:
        return None
    inside = found.actual[~found.wrong]
    if inside.size and not (np.all(inside <= limits[-1]) or limits[-1] < 0):
        return None
    return Pattern("saturation", f"the values stop at {' and '.join(f'{v:.6g}' for v in limits)}")


def untouched(found: Difference) -> Pattern | None:
    """A region in which nothing was written: one value everywhere."""
    actual = found.actual[found.wrong]
    if len(actual) < 2 or not (actual == actual[0]).all():
        return None
    expected = found.expected[found.wrong]
    if (expected == expected[0]).all() and found.wrong.all():
        return None
    return Pattern("untouched region", f"all {len(actual)} wrong elements hold {actual[0]:.6g}")


def constant_factor(found: Difference) -> Pattern | None:
    """The expected values times a number."""
    expected, actual = found.expected[found.wrong], found.actual[found.wrong]
    usable = (np.abs(expected) > 0) & np.isfinite(expected) & np.isfinite(actual)
    if not usable.any():
        return None
    with np.errstate(all="ignore"):
        ratios = actual[usable] / expected[usable]
    factor = np.median(ratios.real) if ratios.dtype.kind == "c" else np.median(ratios)
    if found.wrong.sum() < 3 and not _is_power_of_two(factor):
        return None
    if factor == 0 or not np.isfinite(factor) or not found.explains(factor * found.expected):
        return None
    text = f"the values are {factor:.7g} times what they should be"
    where = place(found)
    if where is not None and where.kind == "one lane":
        return Pattern(where.kind, f"{where.text}: {text}")
    return Pattern("constant factor", text)


def _is_power_of_two(factor: Any) -> bool:
    return bool(np.frexp(abs(factor))[0] == 0.5)


def missing_addend(found: Difference) -> Pattern | None:
    """Off by one number, or by a vector along one dimension."""
    with np.errstate(all="ignore"):
        gap = found.actual - found.expected
    if found.wrong.sum() < 3 or not np.isfinite(gap).all():
        return None
    if not found.wrong.mean() > 0.5:
        return None
    if found.explains(found.expected + np.median(gap.real)):
        return Pattern("missing addend", f"the values are off by {np.median(gap.real):.6g} everywhere")
    for axis in range(gap.ndim):
        others = tuple(d for d in range(gap.ndim) if d != axis)
        if gap.ndim < 2 or np.prod([gap.shape[d] for d in others]) < 3:
            continue
        along = np.median(gap.real, axis=others, keepdims=True)
        if found.explains(found.expected + along):
            return Pattern("missing addend", f"the values are off by a vector along dimension {axis}")
    return None


def narrow_precision(found: Difference) -> Pattern | None:
    """Errors as large as the roundings of a narrower type, and no larger."""
    with np.errstate(all="ignore"):
        relative = np.abs(found.actual - found.expected) / np.maximum(np.abs(found.expected), found.scale)
    worst = float(relative[np.isfinite(relative)].max(initial=0))
    if found.wrong.mean() < 0.5 or found.wrong.sum() < 8:
        return None
    for name, unit in (("f16 or tf32", 2.0**-11), ("bf16", 2.0**-8)):
        if unit / 16 < worst < unit * 4:
            return Pattern("narrow precision", f"the errors are as large as those of {name}")
    return None


def place(found: Difference) -> Pattern | None:
    """Where the wrong elements lie: one element, one row, one lane, an edge."""
    count = int(found.wrong.sum())
    if count == 1 and found.wrong.size > 1:
        return Pattern("one element", "exactly one element is wrong")
    positions = np.argwhere(found.wrong)
    for axis, size in enumerate(found.wrong.shape):
        indices = np.unique(positions[:, axis])
        if size > 2 and len(indices) == 1:
            where = {0: "first", size - 1: "last"}.get(int(indices[0]))
            text = f"all wrong elements have index {indices[0]} in dimension {axis}"
            return Pattern("edge" if where else "one row", f"{text}, the {where} one" if where else text)
        if lanes := _lanes(indices, size):
            return Pattern("one lane", f"one of every {lanes} indices of dimension {axis} is wrong")
    return None


def _lanes(indices: Array, size: int) -> int:
    """The width of the vectors of which one lane is wrong; 0 if the indices do not look so."""
    for lanes in (2, 4, 8, 16, 32):
        if 2 * lanes <= size < lanes * (len(indices) + 2) and len(np.unique(indices % lanes)) == 1:
            return lanes
    return 0


_Test = Callable[[Difference], "Pattern | None"]


def recognise(found: Difference, tests: Iterable[_Test]) -> Pattern | None:
    """The first pattern that fits."""
    if found.wrong.any():
        for test in tests:
            with np.errstate(all="ignore"):
                pattern = test(found)
            if pattern is not None:
                return pattern
    return None


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
    # Where each order would take a few elements from: most candidates fail there.
    at = np.unravel_index(np.arange(0, actual.size, max(1, actual.size // 64)), actual.shape)
    along, own = at[axis], actual[at]
    for order, widths in ((_rolled, range(1, length)), (_exchanged, range(1, length // 2 + 1))):
        sources = order(along, np.array(widths, np.intp)[:, None], length)
        some = expected[(*at[:axis], sources, *at[axis + 1 :])]
        near = close(some, own, found.tolerance, found.scale).mean(axis=1) >= 0.9
        indices = (order(np.arange(length), width, length) for width in np.flatnonzero(near) + 1)
        if any(_fits(found, np.take(expected, each, axis), actual, 1.0) for each in indices):
            return True
    return False


def _rolled(places: Array, step: Any, length: int) -> Array:
    """Where the elements at some places come from when all move on by `step`."""
    found: Array = (places - step) % length
    return found


def _exchanged(places: Array, width: Any, length: int) -> Array:
    """The same when the first and the last `width` change places."""
    back = np.where(places >= length - width, places - (length - width), places)
    return np.where(places < width, places + (length - width), back)


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
