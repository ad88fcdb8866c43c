"""Which layer leaves legal spread first.

Where the program of a side is known, it is executed in other legal ways, as the judge does for the results of
a program, and each value is scored against what they compute in its place. The other side may be another
framework: it rounds in other places, and computes the same functions by other formulas, and so has more room
than another execution of one program (`thresholds.OTHER_LAYERS`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from hlotool.backends.base import Probe
from hlotool.blame.diff_records import LayerRecord, LayersRecord
from hlotool.blame.layers.aligning import Pair
from hlotool.blame.layers.sides import LayerSide
from hlotool.errors import Unsupported
from hlotool.facts import thresholds
from hlotool.facts.exchangeability import score
from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import Facts, Origin, Sum
from hlotool.facts.retyping import retyped_value
from hlotool.ir.arrays import Array, dtype_of
from hlotool.judge.comparison import compare_values
from hlotool.judge.rules.ensemble import Clock, Ensemble
from hlotool.judge.rules.judgement import side_of
from hlotool.judge.tolerance import derive, flips
from hlotool.judge.verdicts import DIFFERING, Verdict
from hlotool.runs.leaves import comparison_record
from hlotool.runs.saved_values import Observed, Seen, read_program

#: Layers that are compared element by element: the first ones that are wrong.
_DETAILED = 5


def judged(left: LayerSide, right: LayerSide, pairs: Sequence[Pair]) -> LayersRecord:
    """Judge each pair, in order.

    Args:
        left: what counts as right; its program is executed, where one is known.
        right: the side in question.
        pairs: of their values.

    Raises:
        HlotoolError: the program cannot be executed again.
    """
    if left.folder:
        members = _Members(left, [pair.left for pair in pairs])
        rows = [_by_members(pair, members) for pair in pairs]
        basis = f"{members.count} other correct runs of the program of {left.path}"
    else:
        rows = [_by_bound(pair) for pair in pairs]
        basis = "no program is known: the rounding of the types, and sums as long as the largest dimension"
    wrong = [number for number, row in enumerate(rows) if row.verdict in DIFFERING]
    return LayersRecord(
        layers=[
            _detailed(row, pair) if number in wrong[:_DETAILED] else row
            for number, (row, pair) in enumerate(zip(rows, pairs))
        ],
        first=wrong[0] if wrong else None,
        basis=basis,
    )


class _Members:
    """What legal executions of a side compute in the place of some of its values; arguments stay."""

    def __init__(self, side: LayerSide, wanted: Sequence[object]) -> None:
        module, arguments = read_program(side.folder)
        self._observed = Observed(module)
        self._ensemble = Ensemble(side_of(self._observed.module, arguments), seed=0, clock=Clock())
        self._wanted = {value.name for value in side.values if value in set(wanted)}
        self._known: list[dict[str, Array]] = []
        self.truth = self._seen(lambda probe: self._ensemble.watch_plainly(probe, wide=True))

    @property
    def count(self) -> int:
        """How many there are so far."""
        return len(self._known)

    def first(self, count: int, name: str) -> list[Array]:
        """What the first so many executions compute in the place of a value."""
        while len(self._known) < count:
            number = len(self._known)
            self._known.append(self._seen(lambda probe, n=number: self._ensemble.watch(n, probe)))  # type: ignore[misc]
        return [member[name] for member in self._known[:count] if name in member]

    def __contains__(self, name: str) -> bool:
        return name in self._wanted

    def _seen(self, run: Callable[[Probe], object]) -> dict[str, Array]:
        found: dict[str, Array] = {}

        def see(seen: Seen) -> None:
            name = seen.value.file.removesuffix(".npy")
            if name in self._wanted:
                found[name] = retyped_value(seen.array, seen.shape)

        run(self._observed.probe(see))
        return found


def _by_members(pair: Pair, members: _Members) -> LayerRecord:
    """The verdict by an ensemble, which grows while the answer is near; by equality for arguments."""
    name, kind = pair.left.name, pair.left.shape.element_type
    expected, actual = _arrays(pair)
    if actual is None or name not in members:
        return _by_bound(pair)
    ratio, spread = 0.0, 0.0
    count = int(thresholds.FIRST_MEMBERS.value)
    while count <= thresholds.MOST_MEMBERS.value:
        drawn = members.first(count, name)
        if any(array.shape != expected.shape for array in drawn):
            raise Unsupported(f"{name}: other correct runs give it other sizes")
        if kind.is_inexact:
            truth = members.truth.get(name)
            shadow = truth if truth is not None and truth.shape == expected.shape else None
            ratio = score(actual, [expected, *drawn], kind, shadow).ratio
        else:
            ratio = flips(actual, [expected, *drawn]).ratio
        spread = max(_relative(array, expected) for array in drawn)
        if ratio <= thresholds.CLEAR.value or ratio > thresholds.CERTAIN.value:
            break
        count *= 2
    return _row(pair, ratio, spread, expected, actual)


def _row(pair: Pair, ratio: float, spread: float, expected: Array, actual: Array) -> LayerRecord:
    difference = _relative(actual, expected)
    verdict, reason = Verdict.ROUNDING, f"off by {ratio:.2g} × what correct runs with other rounding are"
    if difference == 0 and np.array_equal(expected, actual, equal_nan=True):
        verdict, reason = Verdict.IDENTICAL, "the same values"
    elif ratio > thresholds.OTHER_LAYERS.value:
        verdict = Verdict.WRONG
    finite = ratio if math.isfinite(ratio) else None
    return _record(pair, verdict, reason, difference, spread, finite)


def _by_bound(pair: Pair) -> LayerRecord:
    expected, actual = _arrays(pair)
    if actual is None:
        reason = f"{pair.left} and {pair.right}"
        return _record(pair, Verdict.STRUCTURAL, reason, math.inf, 0.0, None)
    kinds = [pair.left.shape.element_type, pair.right.shape.element_type]
    kind = max(kinds, key=epsilon) if kinds[0].is_inexact else kinds[0]
    longest = max([*pair.left.shape.dims, *pair.right.shape.dims, 1])
    error = math.sqrt(longest) * epsilon(kind) if kind.is_inexact else 0.0
    origin = Origin(0, pair.left.name, "")
    facts = Facts(sum=Sum(longest, error, origin), transcendental=origin)
    dtype = dtype_of(kind)
    with np.errstate(all="ignore"):
        sides = [np.asarray(side).astype(dtype) for side in (expected, actual)]
    shape = replace(pair.left.shape, element_type=kind)
    leaf = compare_values(shape, *sides, facts=[facts], tolerance=derive).leaves[0]
    verdict = Verdict.ROUNDING if leaf.verdict is Verdict.AGREE else leaf.verdict
    bound = leaf.tolerance.rtol if leaf.tolerance is not None else 0.0
    return _record(pair, verdict, leaf.reason, _relative(actual, expected), bound, None)


def _arrays(pair: Pair) -> tuple[Array, Array | None]:
    try:
        return pair.left.array, pair.right_array
    except ValueError:
        return pair.left.array, None


def _relative(actual: Array, expected: Array) -> float:
    """Root mean square of the difference, relative to that of what is expected."""
    if not expected.size:
        return 0.0
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        a, e = np.asarray(actual).astype(wide), np.asarray(expected).astype(wide)
        difference = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0, a - e)
        apart = math.sqrt(float(np.mean(np.abs(difference) ** 2)))
        size = math.sqrt(float(np.mean(np.abs(np.where(np.isfinite(e), e, 0)) ** 2)))
    return apart / size if size else math.inf if apart else 0.0


def _record(
    pair: Pair, verdict: Verdict, reason: str, difference: float, spread: float, ratio: float | None
) -> LayerRecord:
    return LayerRecord(
        left=pair.left.name,
        right=pair.right.name,
        layers=list(pair.left.layers),
        right_layers=list(pair.right.layers),
        aligned_by=pair.by,
        left_shape=str(pair.left),
        right_shape=str(pair.right),
        axes=list(pair.axes or ()),
        verdict=verdict,
        reason=reason,
        difference=difference if math.isfinite(difference) else None,
        spread=spread if math.isfinite(spread) else None,
        ratio=ratio,
        source=pair.left.source or pair.right.source,
    )


def _detailed(row: LayerRecord, pair: Pair) -> LayerRecord:
    """The row of a wrong layer, compared element by element."""
    expected, actual = _arrays(pair)
    if actual is None:
        return row
    dtype = dtype_of(pair.left.shape.element_type)
    with np.errstate(all="ignore"):
        sides = expected.astype(dtype), actual.astype(dtype)
    leaf = comparison_record(compare_values(pair.left.shape, *sides, tolerance=derive).leaves[0])
    said = msgspec.structs.replace(leaf, verdict=row.verdict, reason=row.reason)
    return msgspec.structs.replace(row, comparison=said)
