"""Which values of two executions belong together, whatever they are called.

Two frameworks name modules differently, lay arrays out differently, and hook what one of them fuses. What
both have in common is the order in which layers are computed, and, up to the first fault, the values. So
what is equal but for rounding is paired first, in one order as far as possible; the others, between these, by
what transpositions do not change, by shape, by name. What is unlike anything is paired where it is the result
of a layer, or where nothing behind it is equal any more: there it may be what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.blame.layers.sides import LayerSide, LayerValue, is_compared, words_of
from hlotool.errors import UsageError
from hlotool.ir.arrays import Array

_Floats = npt.NDArray[np.float64]

#: Values no further apart than this, relative to the root mean square, are one value twice: those that wide
#: types round come first, then those of narrow types, and of faults that are small.
_EQUAL = (1e-5, 1e-2)
#: Statistics as far apart as this, likewise, are no likeness any more.
_UNLIKE = 0.2
#: Values at least so alike are paired whatever they are called.
_ALIKE = 0.5
#: Two arrays in a row may be one value, which a module hands on; the second of them counts a little less.
_AGAIN = 0.9
#: What counts in a pair: equality, likeness, the result of a layer, its name, its shape as it is.
_BY_VALUE, _BY_LIKENESS, _BY_LAYER, _BY_NAME, _BY_SHAPE = 100.0, 3.0, 0.5, 1.0, 0.2
#: What any pair counts.
_LEAST = 0.05
#: What a pair counts whose shapes agree only when one of them is reshaped.
_RESHAPED = 0.5
#: Dimensions of an array whose transpositions are all tried.
_MOST_AXES = 5
#: A transposition that no shape asks for has to bring two arrays so much closer.
_CLOSER = 0.1


@dataclass(frozen=True, slots=True)
class Pair:
    """Two values that belong together.

    Attributes:
        left: of one side.
        right: of the other one.
        by: see `LayerRecord.aligned_by`.
        axes: of the right array, in the left one's order; None where it is reshaped.
    """

    left: LayerValue
    right: LayerValue
    by: str
    axes: tuple[int, ...] | None

    @property
    def right_array(self) -> Array:
        """The right array in the left one's dimensions; raises ValueError where it has other ones."""
        array = self.right.array
        moved = array if self.axes is None else array.transpose(self.axes)
        return moved.reshape(self.left.shape.dims)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Both sides.

    Attributes:
        pairs: in the left side's order, arguments first.
        only_left: layers without a partner.
        only_right: arrays without one.
    """

    pairs: list[Pair]
    only_left: list[str]
    only_right: list[str]


def aligned(left: LayerSide, right: LayerSide, chosen: Sequence[tuple[str, str]] = ()) -> Alignment:
    """Pair the values of two sides.

    Args:
        left: whose order the pairs have.
        right: the other one.
        chosen: names on the left (of a layer, an instruction, an array) and on the right, that the user
            pairs.

    Raises:
        UsageError: one of these names is nowhere.
    """
    given = [_pair(_named(left, one), _named(right, other), "map") for one, other in chosen]
    met = {pair.right for pair in given}
    arguments = list(_arguments(left, [v for v in (*right.arguments, *right.values) if v not in met]))
    met |= {pair.right for pair in arguments}
    settled = {pair.left for pair in given}
    ones = [value for value in _candidates(left, right) if value not in settled]
    others = [value for value in _candidates(right, left) if value not in met]
    found = [*given, *_matched(ones, others)]
    met |= {pair.right for pair in found}
    places = {value: place for place, value in enumerate(left.values)}
    one_side = {layer for pair in found for layer in pair.left.layers}
    other_side = {layer for pair in found for layer in pair.right.layers}
    lonely = (value for value in others if value not in met and not other_side & set(value.layers))
    return Alignment(
        [*arguments, *sorted(found, key=lambda pair: places[pair.left])],
        list(dict.fromkeys(n for value in left.values for n in value.layers if n not in one_side)),
        list(dict.fromkeys(value.layers[0] if value.layers else value.name for value in lonely)),
    )


def _named(side: LayerSide, name: str) -> LayerValue:
    for value in side.values:
        if name == value.name or name in value.layers:
            return value
    raise UsageError(f"--map: {side.path} has no layer or array {name}")


def _candidates(side: LayerSide, other: LayerSide) -> list[LayerValue]:
    """What may have a partner: against another run the results of layers, against arrays all values.

    What fusions compute anew for each of their readers is one value.
    """
    results = [value for value in side.values if value.layers]
    if not (results and other.folder):
        return list(side.values)
    found = {(*value.layers, value.shape, value.array.tobytes()): value for value in results}
    return list(found.values())


def _arguments(left: LayerSide, others: Sequence[LayerValue]) -> Iterator[Pair]:
    """Arguments of the left program with the same values on the right, weights and inputs; or its names."""
    waiting = list(others)
    for value in left.arguments:
        fitting = [other for other in waiting if _scale(value, other)]
        pairs = (_pair(value, other, "value") for other in fitting)
        found = next((pair for pair in pairs if _distance_in(pair) <= _EQUAL[0]), None)
        if found is None:
            named = (_pair(value, other, "layer") for other in fitting if other.name == value.name)
            found = next(named, None)
        if found is not None:
            waiting.remove(found.right)
            yield found


def _distance_in(pair: Pair) -> float:
    return _distance(pair.left.array, pair.right_array)


def _matched(ones: Sequence[LayerValue], others: Sequence[LayerValue]) -> list[Pair]:
    """Equal values, in one order as far as possible, then the others between them."""
    if not ones or not others:
        return []
    apart = _apart(ones, others)
    distances = np.full(apart.shape, np.inf)
    for row, column in np.argwhere(apart <= _EQUAL[-1]):
        if _scale(ones[row], others[column]):
            distances[row, column] = _distance_in(_pair(ones[row], others[column], "value"))
    equal = distances <= _EQUAL[-1]
    worth = _worth(ones, others, apart, int(max(np.flatnonzero(equal.any(axis=0)), default=-1)))
    settled: dict[int, int] = {}
    ordered: dict[int, int] = {}
    for limit in _EQUAL:
        near = distances <= limit
        gain = _beside(np.where(near, _BY_VALUE + worth, 0), settled, ordered)
        ordered |= {column: row for row, column in _in_order(gain, equal)}
        settled |= ordered
        for column in np.flatnonzero(near.any(axis=0)):
            # The best of those that are out of order.
            settled.setdefault(int(column), int(np.argmax(np.where(near[:, column], worth[:, column], -1))))
    found = {column: _finished(row, column, ones, equal) for column, row in settled.items()}
    kept = {column: row for column, row in found.items() if column in ordered}
    last = _in_order(_beside(worth, found, kept), equal)
    found = {column: row for row, column in last} | found
    return [
        _pair(ones[row], others[column], _reason(ones[row], others[column], bool(equal[row, column])))
        for column, row in found.items()
    ]


def _beside(worth: _Floats, settled: Mapping[int, int], ordered: Mapping[int, int]) -> _Floats:
    """What pairs count beside those that are settled, which stay, where they are in order."""
    found = worth.copy()
    found[:, list(settled)] = 0
    for column, row in ordered.items():
        found[row, column] = _BY_VALUE**2
    return found


def _finished(row: int, column: int, ones: Sequence[LayerValue], equal: Any) -> int:
    """The row of what equals a value on the way to a layer's result: that of the result, where it is missing.

    A module that leaves out its bias has the result of one without. Behind such a fault nothing is equal.
    """
    layer = ones[row].unfinished
    ends = [n for n, one in enumerate(ones) if layer and layer in one.layers]
    fitting = [n for n in ends if ones[n].shape.dims == ones[row].shape.dims]
    later = equal[:, column + 1 :].any(axis=0)
    if not fitting or equal[ends].any() or (later.size and later.all()):
        return row
    return fitting[0]


def _reason(one: LayerValue, other: LayerValue, is_equal: bool) -> str:
    if set(one.layers) & set(other.layers):
        return "layer"
    return "value" if is_equal else "order"


def _in_order(worth: _Floats, equal: Any) -> list[tuple[int, int]]:
    """Rows and columns of the pairs that count most in all, in one order; equal ones may share a row."""
    best = np.zeros(len(worth))
    steps: list[tuple[_Floats, _Floats, Any]] = []
    for column in range(worth.shape[1]):
        gain = worth[:, column]
        next_one = np.concatenate([[0.0], best[:-1]]) + gain
        again = np.where(equal[:, column], best + _AGAIN * gain, -np.inf)
        value = np.where(gain > 0, np.maximum(next_one, again), -np.inf)
        steps.append((best, value, again > next_one))
        best = np.maximum(best, np.maximum.accumulate(value))
    found: list[tuple[int, int]] = []
    row = len(worth) - 1
    for column in range(worth.shape[1] - 1, -1, -1):
        before, value, is_again = steps[column]
        if row < 0:
            break
        chosen = int(np.argmax(value[: row + 1]))
        if value[chosen] > before[row]:
            found.append((chosen, column))
            row = chosen if is_again[chosen] else chosen - 1
    return found


def _apart(ones: Sequence[LayerValue], others: Sequence[LayerValue]) -> _Floats:
    """How far the statistics of each pair are apart, relative to the larger root mean square."""
    left, right = _statistics(ones), _statistics(others)
    scale = np.maximum(left[:, None, 0], right[None, :, 0])
    with np.errstate(all="ignore"):
        found = np.abs(left[:, None] - right[None]).max(axis=2) / scale
    return np.asarray(np.nan_to_num(np.where(scale == 0, 0.0, found), nan=np.inf))


def _worth(
    ones: Sequence[LayerValue], others: Sequence[LayerValue], apart: _Floats, last_equal: int
) -> _Floats:
    """How much each pair counts; 0 where it cannot be one.

    Args:
        ones: the rows.
        others: the columns.
        apart: how far each pair is apart.
        last_equal: the last column that equals something.
    """
    alike = 1 - np.sqrt(np.clip(apart / _UNLIKE, 0, 1))
    worth = _BY_LIKENESS * alike
    words = [[words_of(name) for name in value.layers or (value.name,)] for value in others]
    for row, one in enumerate(ones):
        # Of arrays that hooks wrote each is the result of something, of instructions few are.
        is_result = bool(one.layers) or one.source is None
        own = [words_of(name) for name in one.layers or (one.name,)]
        for column, other in enumerate(others):
            fit = _scale(one, other)
            is_asked = alike[row, column] >= _ALIKE or (fit == 1 and (is_result or column > last_equal))
            if not fit or not is_asked:
                worth[row, column] = 0
                continue
            name = max(len(a & b) / max(len(a | b), 1) for a in own for b in words[column])
            name += 2 * bool(set(one.layers) & set(other.layers))
            same = one.shape.dims == other.shape.dims
            worth[row, column] += _BY_LAYER * is_result + _BY_NAME * name + _BY_SHAPE * same + _LEAST
            worth[row, column] *= fit
    return worth


def _statistics(values: Sequence[LayerValue]) -> _Floats:
    """Of each array what no transposition changes, beginning with its root mean square."""
    return np.array([_of(value.array) for value in values])


def _of(array: Array) -> list[float]:
    if not array.size:
        return [0.0] * 5
    with np.errstate(all="ignore"):
        flat = np.abs(array) if array.dtype.kind == "c" else np.asarray(array, np.float64)
        numbers = flat[np.isfinite(flat)]
        if not numbers.size:
            return [0.0] * 5
        size = float(np.sqrt(np.mean(numbers**2)))
        # Extremes count less: there are few of them, and a fault in one element is a fault.
        extremes = [float(numbers.max()) / 10, float(numbers.min()) / 10]
        return [size, float(numbers.mean()), float(np.abs(numbers).mean()), *extremes]


def _scale(one: LayerValue, other: LayerValue) -> float:
    """What the shapes of a pair make of its worth: 0 where one cannot be moved into the other."""
    a, b = one.shape, other.shape
    if not is_compared(a.element_type, b.element_type):
        return 0.0
    if _without_ones(a.dims) == _without_ones(b.dims):
        return 1.0
    return _RESHAPED if np.prod(a.dims) == np.prod(b.dims) else 0.0


def _without_ones(dims: Sequence[int]) -> list[int]:
    return sorted(size for size in dims if size != 1)


def _pair(one: LayerValue, other: LayerValue, by: str) -> Pair:
    """The pair, with the order of axes in which the right array is closest to the left one."""
    return Pair(one, other, by, _axes(one, other))


def _axes(one: LayerValue, other: LayerValue) -> tuple[int, ...] | None:
    dims = one.shape.dims
    rank = len(other.shape.dims)
    if sorted(dims) != sorted(other.shape.dims) or rank > _MOST_AXES:
        return tuple(range(rank)) if dims == other.shape.dims else None
    fitting = [
        axes for axes in permutations(range(rank)) if tuple(other.shape.dims[axis] for axis in axes) == dims
    ]
    if len(fitting) == 1:
        return fitting[0]
    left, right = one.array, other.array
    distances = [_distance(left, right.transpose(axes)) for axes in fitting]
    best = int(np.argmin(distances))
    # The first one keeps the order of the axes, as far as the shapes let it.
    return fitting[best] if distances[best] < _CLOSER * distances[0] else fitting[0]


def _distance(left: Array, right: Array) -> float:
    """Root mean square of the difference, relative to that of both; infinite where one is not finite."""
    if not left.size:
        return 0.0
    with np.errstate(all="ignore"):
        size = np.sqrt(max(np.mean(np.abs(left) ** 2), np.mean(np.abs(right) ** 2)))
        apart = (
            np.sqrt(np.mean(np.abs(left - right) ** 2)) if left.dtype.kind in "fc" else _unequal(left, right)
        )
    if apart == 0:
        return 0.0
    return float(apart / size) if np.isfinite(apart / size) else float("inf")


def _unequal(left: Array, right: Array) -> Any:
    return np.mean(left != right)
