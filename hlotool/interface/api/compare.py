"""`compare`: two results of one program, judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.errors import InputDataError
from hlotool.facts.dataflow import leaf_facts
from hlotool.facts.result_facts import Facts
from hlotool.interface.api.programs import fitted_arguments
from hlotool.interface.api.results import Result
from hlotool.ir.arrays import Array, element_type_of, unflatten
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.types import ArrayShape, Shape, TupleShape, leaves
from hlotool.judge.comparison import compare_values
from hlotool.judge.tolerance import ChosenTolerance, chosen_by_user, derive
from hlotool.judge.verdicts import Verdict, exit_code_of
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import option, takes
from hlotool.runs.options.shared import Tolerance

if TYPE_CHECKING:
    from hlotool.blame.diff_records import ResultDiffRecord
    from hlotool.interface.report.command_records import DiffRecord
    from hlotool.judge.comparison import Comparison, LeafComparison


class CompareResult(Result["ResultDiffRecord"]):
    """Two results compared: a row for each array.

    Args:
        record: of the call.
        comparison: the verdict on the whole and on each array.
    """

    record: DiffRecord

    def __init__(self, record: DiffRecord, comparison: Comparison) -> None:
        super().__init__(record)
        self._comparison = comparison

    @property
    def rows(self) -> Sequence[ResultDiffRecord]:
        """One record per array."""
        return self.record.results

    @property
    def verdict(self) -> Verdict:
        """The worst of the arrays."""
        return self._comparison.verdict

    @property
    def reason(self) -> str:
        """That of the worst array, in one clause."""
        return self._comparison.reason

    @property
    def leaves(self) -> tuple[LeafComparison, ...]:
        """The arrays with the numbers behind each verdict, in order."""
        return self._comparison.leaves

    def __repr__(self) -> str:
        return f"<CompareResult: {self.verdict.value}: {self.reason}>"


class CompareArguments(Tolerance):
    """What `compare` takes."""

    expected: Sequence[Any] = option(doc="arrays of the reference, as `run` returns them", kw_only=False)
    actual: Sequence[Any] = option(doc="arrays to be judged", kw_only=False)
    module: Module | None = option(
        doc="whose results they are: what each output is computed from decides about it", default=None
    )
    inputs: Sequence[Any] | None = option(
        doc="that `expected` was computed from, as `run` takes them; none where there are no parameters",
        default=None,
    )
    tested: Module | None = option(
        doc="the program that gave `actual`, where that is another one, such as after a pass", default=None
    )
    seed: int = option(doc="of the executions", default=0, parse=parsers.seed)


@takes(CompareArguments)
def compare(asked: CompareArguments) -> CompareResult:
    """Compare two results, array by array.

    Where the program and its inputs are known, it is executed again in other legal ways, and `actual` must
    not stand out from what these give: what is as far off as they are is `rounding`. Otherwise a tolerance
    decides, and what is outside of it is `wrong`.

    Returns:
        a verdict with its reason, and the same for each array with the numbers behind it.

    Raises:
        InputDataError: an array of a dtype that HLO has no element type for, or not the module's number of
            arrays, or inputs that do not fit.
        UsageError: an impossible tolerance.

    >>> import numpy as np
    >>> compare([np.float32([1, 2])], [np.float32([1, 2])]).verdict
    <Verdict.IDENTICAL: 'identical'>
    >>> result = compare([np.float32([1, 2])], [np.float32([1, 2.5])])
    >>> result.verdict, result.leaves[0].metrics.worst_absolute.index
    (<Verdict.WRONG: 'wrong'>, (1,))
    """
    chosen = chosen_by_user(asked.rtol, asked.atol)
    expected, actual, module = asked.expected, asked.actual, asked.module
    found = _by_values(expected, actual, module, chosen)
    arguments = _known_arguments(module, asked.inputs)
    is_settled = found.verdict in (Verdict.IDENTICAL, Verdict.STRUCTURAL)
    if module is not None and arguments is not None and not is_settled:
        found = _judged(module, arguments, expected, actual, asked.tested, chosen, asked.seed)
    return CompareResult(_record(found), found)


def _by_values(
    expected: Sequence[Any], actual: Sequence[Any], module: Module | None, chosen: ChosenTolerance | None
) -> Comparison:
    """What a comparison says that executes nothing."""
    shapes = [_shape(side, arrays) for side, arrays in (("expected", expected), ("actual", actual))]
    facts = None if module is None else _array_facts(module)
    if facts is not None and len(facts) != len(expected):
        raise InputDataError(f"{module} returns {len(facts)} arrays, {len(expected)} are expected")
    return compare_values(
        shapes[0],
        _tuple(expected),
        _tuple(actual),
        actual_shape=shapes[1],
        facts=facts,
        tolerance=chosen or derive,
    )


def _array_facts(module: Module) -> list[Facts]:
    """What each array of a result depends on; tokens are none."""
    parts = leaves(module.entry.root.shape)
    return [facts for (_, part), facts in zip(parts, leaf_facts(module)) if isinstance(part, ArrayShape)]


def _known_arguments(module: Module | None, inputs: Sequence[Any] | None) -> list[Any] | None:
    """The arguments that the program can be executed on again; None where they are not known.

    Programs for each of several devices are judged by `replay`, which knows whose result is whose.
    """
    if module is None or is_per_device(module) or (inputs is None and module.entry.parameters):
        return None
    return fitted_arguments(module, inputs or [])


def _judged(
    module: Module,
    arguments: Sequence[Any],
    expected: Sequence[Any],
    actual: Sequence[Any],
    tested: Module | None,
    chosen: ChosenTolerance | None,
    seed: int,
) -> Comparison:
    """The verdict of the judge, which executes the program in other ways."""
    from hlotool.judge.rules.judge import judge
    from hlotool.judge.rules.judgement import judgement_of

    shape = module.entry.root.shape
    judgement = judgement_of(
        module,
        arguments,
        _nested(shape, actual),
        expected=_nested(shape, expected),
        tested=tested,
        seed=seed,
        tolerance=chosen,
    )
    return judge(judgement)


def _nested(shape: Shape, arrays: Sequence[Any]) -> Any:
    """Arrays as the value of a result; None for tokens."""
    rest = iter(_tuple(arrays))
    return unflatten(shape, [next(rest) if isinstance(p, ArrayShape) else None for _, p in leaves(shape)])


def _record(found: Comparison) -> DiffRecord:
    from hlotool.blame.diff_records import ResultDiffRecord
    from hlotool.interface.report.command_records import DiffRecord
    from hlotool.interface.report.records import versions
    from hlotool.judge.records import output_name
    from hlotool.runs.leaves import comparison_record

    names = [(output_name(leaf.index), leaf) for leaf in found.leaves]
    return DiffRecord(
        versions=versions(),
        left="expected",
        right="actual",
        kind="results",
        results=[
            ResultDiffRecord(
                name=name, left=f"expected {name}", right=f"actual {name}", comparison=comparison_record(leaf)
            )
            for name, leaf in names
        ],
        exit_code=int(exit_code_of([leaf.verdict for leaf in found.leaves] or [found.verdict])),
    )


def _shape(side: str, arrays: Sequence[Any]) -> TupleShape:
    """The shape of a flat result."""
    parts: list[Shape] = []
    for number, value in enumerate(map(np.asarray, arrays)):
        element_type = element_type_of(value.dtype)
        if element_type is None:
            raise InputDataError(f"{side}[{number}]: HLO has no element type for dtype {value.dtype}")
        parts.append(ArrayShape(element_type, value.shape))
    return TupleShape(tuple(parts))


def _tuple(arrays: Sequence[Any]) -> tuple[Array, ...]:
    return tuple(np.asarray(array) for array in arrays)
