"""The comparison of two results of one program, leaf by leaf: verdicts and their evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hlotool.facts.result_facts import NOTHING, Facts
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ArrayShape, ElementType, Shape, ShapeIndex, leaves, strip_layouts
from hlotool.judge.metrics import Element, Metrics, bitwise_equal, measure
from hlotool.judge.records import EqualityRecord, EvidenceRecord
from hlotool.judge.tolerance import Tolerance, derive, leaf_scale
from hlotool.judge.verdicts import AGREEING, Verdict


class LeafComparison(Struct, frozen=True):
    """One array of the result.

    Attributes:
        index: its shape index in the result.
        shape: such as `f32[4,8]`.
        verdict: what is said of it.
        reason: why, in one clause.
        metrics: the numbers; None when there was nothing to compare element by element.
        tolerance: what was accepted; None likewise.
        evidence: what the verdict rests on; None where the tolerance decides.
        exact: what the programs are as functions of real numbers; None where that was not asked.
    """

    index: ShapeIndex
    shape: str
    verdict: Verdict
    reason: str
    metrics: Metrics | None = None
    tolerance: Tolerance | None = None
    evidence: EvidenceRecord | None = None
    exact: EqualityRecord | None = None


class Comparison(Struct, frozen=True):
    """A whole result.

    Attributes:
        leaves: in tuple order.
        verdict: the worst of the leaves.
        reason: that of the worst leaf.
    """

    leaves: tuple[LeafComparison, ...]
    verdict: Verdict
    reason: str


def aggregate(leaves: Iterable[LeafComparison]) -> Comparison:
    """The comparison made of `leaves`."""
    parts = tuple(leaves)
    if not parts:
        return Comparison((), Verdict.IDENTICAL, "the result holds no arrays")
    decisive = max(parts, key=lambda leaf: leaf.verdict.rank)
    where = f"output {format_index(decisive.index)}: " if len(parts) > 1 else ""
    if where and decisive.verdict is Verdict.UNSTABLE:
        agreeing = sum(leaf.verdict in AGREEING for leaf in parts)
        where = f"{agreeing} of {len(parts)} outputs agree; {where}"
    return Comparison(parts, decisive.verdict, where + decisive.reason)


def not_plainly_agreeing(leaf: LeafComparison) -> LeafComparison:
    """A leaf with a NaN or an infinity on one side only is no plain agreement, whatever explains it: `range`.

    That legal executions come out on either side says that a value on the way is at the end of its type, and
    that is what the user has to know.
    """
    metrics = leaf.metrics
    if leaf.verdict not in AGREEING or metrics is None:
        return leaf
    if not (metrics.nan_mismatches or metrics.inf_mismatches):
        return leaf
    said = one_sided_text(metrics.nan_mismatches, metrics.inf_mismatches)
    reason = f"{said}, as executions with other rounding have it on either side: {leaf.reason}"
    return replace(leaf, verdict=Verdict.RANGE, reason=reason)


def one_sided_text(nan: int, infinite: int) -> str:
    """`2 NaN on one side only`, `1 infinite on one side only, or with another sign`, or both.

    Args:
        nan: elements that are NaN on one side only.
        infinite: elements that are infinite on one side only, or with another sign.
    """
    parts = [f"{nan} NaN on one side only"] if nan else []
    parts += [f"{infinite} infinite on one side only, or with another sign"] if infinite else []
    return " and ".join(parts)


def format_index(index: ShapeIndex) -> str:
    """`{1,0}`, as HLO writes shape indices."""
    return "{" + ",".join(map(str, index)) + "}"


def format_position(index: tuple[int, ...]) -> str:
    """`[1,7]`, the position of an element."""
    return f"[{','.join(map(str, index))}]"


#: From element type, facts and the scale of the values to a tolerance.
DeriveTolerance: TypeAlias = Callable[[ElementType, Facts, float], Tolerance]


def compare_values(
    shape: Shape,
    expected: Any,
    actual: Any,
    *,
    actual_shape: Shape | None = None,
    facts: Sequence[Facts] | None = None,
    tolerance: DeriveTolerance = derive,
) -> Comparison:
    """Compare what a reference and a tested execution returned.

    Args:
        shape: of the expected result.
        expected: an array per array shape, a tuple per tuple shape, anything per token.
        actual: likewise.
        actual_shape: of the tested program's result, when that is another program; layouts do not matter.
        facts: one per leaf of `shape` (`dataflow.leaf_facts`); without them only the element type counts.
        tolerance: what is accepted of each leaf: derived, or chosen by the user.
    """
    if actual_shape is not None and strip_layouts(shape) != strip_layouts(actual_shape):
        wrong = _different_shapes(shape, actual_shape)
        if wrong is not None:
            return aggregate([wrong])
    return aggregate(_compare(shape, expected, actual, facts, tolerance))


def _different_shapes(expected: Shape, actual: Shape) -> LeafComparison | None:
    """A structural finding, unless the shapes differ only in what is known of dynamic dimensions."""
    for (index, e), (other, a) in zip(leaves(expected), leaves(actual)):
        if index != other:
            return _structural(
                index, f"{_text(e)} at {format_index(index)}", f"{_text(a)} at {format_index(other)}"
            )
        if not _same_kind(e, a):
            return _structural(index, _text(e), _text(a))
    counts = [sum(1 for _ in leaves(s)) for s in (expected, actual)]
    return None if counts[0] == counts[1] else _structural((), f"{counts[0]} leaves", f"{counts[1]} leaves")


def _text(shape: Shape) -> str:
    return str(strip_layouts(shape))


def _same_kind(expected: Shape, actual: Shape) -> bool:
    """Same element type and rank; dimensions are compared on the values."""
    if isinstance(expected, ArrayShape) and isinstance(actual, ArrayShape):
        return expected.element_type is actual.element_type and expected.rank == actual.rank
    return type(expected) is type(actual)


def _structural(index: ShapeIndex, expected: str, actual: str) -> LeafComparison:
    return LeafComparison(index, expected, Verdict.STRUCTURAL, f"expected {expected}, got {actual}")


def _compare(
    shape: Shape,
    expected: Any,
    actual: Any,
    facts: Sequence[Facts] | None,
    derived: DeriveTolerance,
) -> Iterator[LeafComparison]:
    for number, (index, part) in enumerate(leaves(shape)):
        if isinstance(part, ArrayShape):
            known = facts[number] if facts is not None else NOTHING
            yield _compare_leaf(index, part, part_at(expected, index), part_at(actual, index), known, derived)


def part_at(value: Any, index: ShapeIndex) -> Any:
    """The part of a nested tuple, or None when there is none."""
    for i in index:
        if not isinstance(value, tuple | list) or i >= len(value):
            return None
        value = value[i]
    return value


def _compare_leaf(
    index: ShapeIndex,
    shape: ArrayShape,
    expected: Any,
    actual: Any,
    facts: Facts,
    derived: DeriveTolerance,
) -> LeafComparison:
    text = shape.logical_text()
    wrong = _misfit(shape.element_type, expected, actual)
    if wrong is not None:
        return LeafComparison(index, text, Verdict.STRUCTURAL, wrong)
    e, a = np.asarray(expected), np.asarray(actual)
    if bitwise_equal(e, a):
        return LeafComparison(index, text, Verdict.IDENTICAL, "bitwise equal", Metrics(e.size))
    if facts.random is not None:
        reason = f"depends on {facts.random}, whose value may differ from run to run"
        return LeafComparison(index, text, Verdict.NOT_COMPARABLE, reason)
    tolerance = derived(shape.element_type, facts, leaf_scale(e, a))
    metrics = measure(e, a, shape.element_type, tolerance)
    verdict = Verdict.WRONG if metrics.mismatched else Verdict.AGREE
    return LeafComparison(index, text, verdict, _reason(metrics, tolerance, facts), metrics, tolerance)


def _misfit(element_type: ElementType, expected: Any, actual: Any) -> str | None:
    """Why the two cannot be compared element by element."""
    for side, value in (("expected", expected), ("actual", actual)):
        if not isinstance(value, np.ndarray | np.generic):
            return f"the {side} result has no array here"
        if value.dtype != dtype_of(element_type):
            return f"the {side} value has dtype {value.dtype}, declared is {element_type}"
    if expected.shape != actual.shape:
        return f"expected dimensions [{_dims(expected)}], got [{_dims(actual)}]"
    return None


def _dims(array: Array) -> str:
    return ",".join(map(str, array.shape))


def _reason(metrics: Metrics, tolerance: Tolerance, facts: Facts) -> str:
    if not metrics.mismatched:
        return f"{_worst(metrics)}, allowed {_allowed(tolerance)}"
    share = (
        f"{metrics.mismatched} of {metrics.total} elements differ ({metrics.mismatched / metrics.total:.2g})"
    )
    decided = ""
    if metrics.max_ulp is None and facts.decision is not None:
        decided = f"; made of floats by {facts.decision}, where one ulp can flip it"
    return f"{share}, {_worst(metrics)}, allowed {_allowed(tolerance)}{decided}"


def _worst(metrics: Metrics) -> str:
    parts = [
        f"{count} {kind} on one side only"
        for count, kind in ((metrics.nan_mismatches, "NaN"), (metrics.inf_mismatches, "infinite"))
        if count
    ]
    if metrics.worst_absolute is not None:
        parts.append(_describe(metrics.worst_absolute))
    return ", ".join(parts) or "no difference but signs of zero, NaN payloads or denormals"


def _describe(element: Element) -> str:
    where = f" at [{','.join(map(str, element.index))}]" if element.index else ""
    ulps = f" ({element.ulps} ulp)" if element.ulps is not None else ""
    return f"worst error {element.absolute:.3g}{where}{ulps}"


def _allowed(tolerance: Tolerance) -> str:
    if tolerance.atol == tolerance.rtol == 0:
        return "none"
    joined = "or" if tolerance.either else "+"
    return f"{tolerance.atol:.2g} {joined} {tolerance.rtol:.2g} relative ({tolerance.reason})"
