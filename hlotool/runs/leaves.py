"""Compared values for people: as records, and as files that plain NumPy can load.

`--save-outputs` writes results as .npy files. Inputs that show something are kept for `--inputs` of
everything after.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import msgspec
import numpy as np
import numpy.typing as npt

from hlotool.backends.base import Value
from hlotool.errors import UsageError
from hlotool.facts.dataflow import source_of_output
from hlotool.facts.result_facts import Facts
from hlotool.inputs.given import npz_bytes
from hlotool.ir.arrays import Array, flatten
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, ShapeIndex, leaves
from hlotool.judge.comparison import Comparison, LeafComparison
from hlotool.judge.metrics import Metrics, element_record, scalar_text
from hlotool.judge.tolerance import Tolerance
from hlotool.judge.verdicts import EXCUSED, Verdict
from hlotool.runs.records import LeafRecord, OutputRecord, ToleranceRecord
from hlotool.runs.task import INPUTS_FOLDER, inputs_file
from hlotool.system.files import write_over
from hlotool.system.paths import inside, write_file, writing
from hlotool.system.records import finite_or_none
from hlotool.system.urls import is_url

#: Values shown of an output that nothing was compared with.
_FIRST = 5


def leaf_records(
    comparison: Comparison,
    module: Module,
    facts: Sequence[Facts],
    shape: Shape,
    copies: int = 1,
    is_real: bool = False,
) -> list[LeafRecord]:
    """The comparison, with what the tested side tells about the leaves that differ.

    Args:
        comparison: of the two results.
        module: the tested one.
        facts: of the leaves of its result.
        shape: of its result.
        copies: how many results of the module it holds: with several, the first index is a device.
        is_real: it is what a device returned: people ask about these numbers where they agree, too.
    """
    by_index = dict(zip((index for index, _ in leaves(shape)), facts))
    prefix = 1 if copies > 1 else 0
    return [
        _leaf_record(leaf, module, by_index.get(leaf.index, Facts()), leaf.index[prefix:], is_real)
        for leaf in comparison.leaves
    ]


def _leaf_record(
    leaf: LeafComparison, module: Module, facts: Facts, output: ShapeIndex, is_real: bool
) -> LeafRecord:
    record = comparison_record(leaf)
    differs = record.verdict is Verdict.WRONG
    is_explained = differs or is_real or record.verdict in EXCUSED | {Verdict.DIFFERS, Verdict.UNEQUAL}
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


#: A file's path by the shape index of the leaf it holds.
Files = dict[tuple[int, ...], str]

#: Types that NumPy itself lacks, and a type of its own that holds all their values.
_WIDER: dict[ElementType, type[np.generic]] = {
    **{t: np.float32 for t in ElementType if t.is_narrow_float and t is not ElementType.F16},
    ElementType.S2: np.int8,
    ElementType.S4: np.int8,
    ElementType.U2: np.uint8,
    ElementType.U4: np.uint8,
}


def output_folder(root: str, *names: str) -> str:
    """A folder below `root`, a folder or a URL, made of names that may hold any character; created.

    Raises:
        UsageError: it cannot be created.
    """
    parts = [part for name in names for part in name.split("/")]
    legal = (re.sub(r"[^\w.+=-]|^\.+", "_", part) for part in parts if part)
    folder = reduce(inside, legal, root)
    if not is_url(folder):
        with writing(folder):
            os.makedirs(folder, exist_ok=True)
    return folder


def save_leaves(folder: str, side: str, shape: Shape, value: Value) -> Files:
    """Write every array of `value` as `out.INDEX.SIDE.npy`.

    Narrow types that NumPy lacks (bf16, f8, int4, …) are widened, which changes no value.

    Raises:
        UsageError: a file cannot be written.
        DumpError: nor can the store's.
    """
    files: Files = {}
    for index, part, array in array_leaves(shape, value):
        path = inside(folder, ".".join(["out", *map(str, index), side, "npy"]))
        save_array(path, array, part.element_type)
        files[index] = path
    return files


def same_bits(shape: Shape, expected: Value, actual: Value) -> bool:
    """Whether two values of one shape hold the same bits."""
    pairs = zip(array_leaves(shape, expected), array_leaves(shape, actual))
    return all(
        one.shape == other.shape and one.tobytes() == other.tobytes() for (_, _, one), (_, _, other) in pairs
    )


def save_array(path: str, array: Array, element_type: ElementType) -> None:
    """Write an array, widened where NumPy lacks its type; raises as `save_leaves`."""
    plain = _plain(array, element_type)
    if is_url(path):
        content = io.BytesIO()
        np.save(content, plain)
        write_file(path, [content.getvalue()])
        return
    with writing(path):
        np.save(path, plain)


def _plain(array: Array, element_type: ElementType) -> Array:
    wider = _WIDER.get(element_type)
    return array if wider is None else array.astype(wider)


def save_inputs(name: str, arguments: Sequence[Value], copies: int = 1) -> str:
    """The file that gets the arguments of the program `name`; empty where it cannot be written.

    Args:
        name: of a module or a pair of programs.
        arguments: one per parameter; one tuple of them for each device where `copies` have their own.
        copies: number of these devices.
    """
    path = inputs_file(name)
    try:
        output_folder(INPUTS_FOLDER)
        write_over(path, [npz_bytes(arguments, copies)])
    except (OSError, UsageError):
        return ""
    return str(path)
