"""Comparisons and values as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from hlotool.backends.base import Value
from hlotool.findings.provenance import source_of_output
from hlotool.findings.records import finite_or_none
from hlotool.findings.verdict import EXCUSED, Verdict
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves
from hlotool.locate.words import element_record, scalar_text
from hlotool.numerics.facts import Facts
from hlotool.numerics.metrics import Metrics
from hlotool.numerics.tolerance import Tolerance
from hlotool.numerics.verdict import Comparison, LeafComparison
from hlotool.replay.records import LeafRecord, OutputRecord, ToleranceRecord
from hlotool.values.flatten import flatten

#: Values shown of an output that nothing was compared with.
_FIRST = 5


def leaf_records(
    comparison: Comparison,
    module: Module,
    facts: Sequence[Facts],
    shape: Shape,
    copies: int = 1,
) -> list[LeafRecord]:
    """The comparison, with what the tested side tells about the leaves that differ.

    Args:
        comparison: of the two results.
        module: the tested one.
        facts: of the leaves of its result.
        shape: of its result.
        copies: how many results of the module it holds: with several, the first index is a device.
    """
    by_index = dict(zip((index for index, _ in leaves(shape)), facts))
    prefix = 1 if copies > 1 else 0
    return [
        _leaf_record(leaf, module, by_index.get(leaf.index, Facts()), leaf.index[prefix:])
        for leaf in comparison.leaves
    ]


def _leaf_record(leaf: LeafComparison, module: Module, facts: Facts, output: ShapeIndex) -> LeafRecord:
    record = comparison_record(leaf)
    differs = record.verdict is Verdict.WRONG
    is_explained = differs or record.verdict in EXCUSED | {Verdict.DIFFERS, Verdict.UNEQUAL}
    return msgspec.structs.replace(
        record,
        decision=str(facts.decision) if differs and facts.decision and record.max_ulp is None else "",
        source=source_of_output(module, output) if is_explained else None,
    )


def comparison_record(leaf: LeafComparison) -> LeafRecord:
    """The numbers of a comparison, whatever program they come from."""
    metrics = leaf.metrics or Metrics(0)
    return LeafRecord(
        index=list(leaf.index),
        shape=leaf.shape,
        verdict=leaf.verdict,
        reason=leaf.reason,
        total=metrics.total,
        mismatched=metrics.mismatched,
        nan_mismatches=metrics.nan_mismatches,
        inf_mismatches=metrics.inf_mismatches,
        max_ulp=metrics.max_ulp,
        worst_absolute=element_record(metrics.worst_absolute),
        worst_relative=element_record(metrics.worst_relative),
        top=[record for element in metrics.top if (record := element_record(element))],
        histogram=list(metrics.histogram),
        tolerance=_tolerance(leaf.tolerance),
        evidence=leaf.evidence,
        exact=leaf.exact,
        minimum_tolerance=metrics.minimum,
    )


def _tolerance(tolerance: Tolerance | None) -> ToleranceRecord | None:
    if tolerance is None:
        return None
    return ToleranceRecord(
        relative=tolerance.rtol, absolute=tolerance.atol, origin=tolerance.reason, either=tolerance.either
    )


def output_records(shape: Shape, value: Value) -> list[OutputRecord]:
    """What each array of a result holds."""
    return [_summary(index, part, array) for index, part, array in array_leaves(shape, value)]


def array_leaves(shape: Shape, value: Value) -> Iterator[tuple[ShapeIndex, ArrayShape, Array]]:
    """The arrays of `value` with their indices and shapes, in tuple order."""
    for index, part, leaf in flatten(shape, value):
        if isinstance(part, ArrayShape):
            yield index, part, np.asarray(leaf)


def _summary(index: ShapeIndex, shape: ArrayShape, array: Array) -> OutputRecord:
    first = [scalar_text(element.item()) for element in array.flat[:_FIRST]]
    is_real = not shape.element_type.is_complex and array.dtype != np.bool_
    numbers = _Numbers(array.astype(np.float64)) if is_real and array.size else None
    return OutputRecord(
        index=list(index),
        shape=shape.logical_text(),
        total=array.size,
        first=first,
        minimum=numbers.of(np.min) if numbers else None,
        mean=numbers.of(np.mean) if numbers else None,
        maximum=numbers.of(np.max) if numbers else None,
        nan=numbers.nan if numbers else 0,
        inf=numbers.inf if numbers else 0,
    )


class _Numbers:
    """Statistics of an array of real numbers."""

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        self.nan = int(np.isnan(values).sum())
        self.inf = int(np.isinf(values).sum())
        self._finite = values[np.isfinite(values)]

    def of(self, statistic: Callable[[npt.NDArray[np.float64]], np.float64]) -> float | None:
        """A statistic of the finite values, None when there are none or it overflows."""
        if not self._finite.size:
            return None
        with np.errstate(all="ignore"):
            return finite_or_none(float(statistic(self._finite)))
