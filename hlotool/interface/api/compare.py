"""`hlotool.compare` and `hlotool.diff`: two results, two programs or two dumps side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.errors import ExitCode, InputDataError, UsageError
from hlotool.facts.dataflow import leaf_facts
from hlotool.facts.result_facts import Facts
from hlotool.interface.api.programs import fitted_arguments
from hlotool.interface.api.results import FindingsResult, Result
from hlotool.ir.arrays import Array, element_type_of, unflatten
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.types import ArrayShape, Shape, TupleShape, leaves
from hlotool.judge.comparison import compare_values
from hlotool.judge.tolerance import ChosenTolerance, chosen_by_user, derive
from hlotool.judge.verdicts import Verdict, exit_code_of
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, option, takes
from hlotool.runs.options.shared import Stages, Tolerance
from hlotool.runs.options.spool import Program, path_of
from hlotool.system.urls import is_url

if TYPE_CHECKING:
    from hlotool.blame.diff_records import ProgramDiffRecord, ResultDiffRecord
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


class DiffResult(FindingsResult["ProgramDiffRecord | ResultDiffRecord"]):
    """What differs: a row for each pair, of programs or of arrays, also for those that are the same."""

    record: DiffRecord

    @property
    def rows(self) -> Sequence[ProgramDiffRecord | ResultDiffRecord]:
        """One record per pair."""
        return self.record.programs or self.record.results

    @property
    def is_same(self) -> bool:
        """Whether nothing differs, everything was compared, and nothing is on one side only."""
        return self.exit_code is ExitCode.AGREE


class _Pair(Arguments):
    left: As[Program, str] = option(
        "HLO file, dump, archive; or .npz, .npy, folder of them",
        "a file of HLO, a dump, an archive, a module; or .npz, .npy, a folder of them",
        kw_only=False,
        metavar="A",
        convert=path_of,
    )
    right: As[Program, str] = option("the same kind of thing", kw_only=False, metavar="B", convert=path_of)


class _Programs(Stages, group="programs"):
    context: int = option(
        "equal lines around differences [3]", default=3, parse=parsers.distance, flags=("-U", "--context")
    )


class _Results(Tolerance, group="results", about="tolerance derived from the element type, unless"): ...


class DiffArguments(_Pair, _Programs, _Results):
    """What `diff` takes, and `hlotool diff`."""


@takes(DiffArguments)
def diff(asked: DiffArguments) -> DiffResult:
    """What differs between two programs, two dumps or two sets of results.

    Raises:
        DumpError: a path cannot be read.
        InputDataError: arrays cannot be read.
        UsageError: the two are not of one kind, or have nothing in common.
    """
    paths = asked.left, asked.right
    must_exist(paths)
    from hlotool.blame.diff_results import are_results, results_here

    paths = results_here(paths[0]), results_here(paths[1])
    kinds = {are_results(path) for path in paths}
    if len(kinds) > 1:
        raise UsageError("one side holds arrays, the other one programs: they cannot be compared")
    if kinds == {True}:
        return DiffResult(_with_exit_code(_results(*paths, asked.rtol, asked.atol)))
    return DiffResult(_with_exit_code(_programs(*paths, asked.stages, asked.context)))


def must_exist(paths: Sequence[str]) -> None:
    """Refuse paths that are not there; raises UsageError."""
    for path in paths:
        if path != "-" and not is_url(path) and not os.path.exists(path):
            raise UsageError(f"{path}: no such file or directory")


def _programs(left_path: str, right_path: str, stages: tuple[str, ...], context: int) -> DiffRecord:
    from hlotool.blame.diff_programs import diff_stages, pair_dumps
    from hlotool.interface.report.command_records import DiffRecord
    from hlotool.interface.report.records import versions
    from hlotool.sources.directory import open_dump

    left, right = open_dump(left_path), open_dump(right_path)
    pairing = pair_dumps(left, right, stages)
    return DiffRecord(
        versions=versions(),
        left=left_path,
        right=right_path,
        kind="programs",
        programs=[diff_stages(pair, context) for pair in pairing.pairs],
        only_left=list(pairing.only_left),
        only_right=list(pairing.only_right),
        notes=[*left.notes, *right.notes],
    )


def _results(left_path: str, right_path: str, rtol: float | None, atol: float | None) -> DiffRecord:
    from hlotool.blame.diff_results import common_names, diff_results, read_results
    from hlotool.interface.report.command_records import DiffRecord
    from hlotool.interface.report.records import versions

    left, right = read_results(left_path), read_results(right_path)
    common = common_names(left, right)
    ones, others = {one for one, _ in common}, {other for _, other in common}
    if not common:
        raise UsageError(f"{left.path} and {right.path} have no array name in common")
    return DiffRecord(
        versions=versions(),
        left=left_path,
        right=right_path,
        kind="results",
        results=list(diff_results(left, right, rtol, atol)),
        only_left=[name for name in left.arrays if name not in ones],
        only_right=[name for name in right.arrays if name not in others],
    )


def _with_exit_code(record: DiffRecord) -> DiffRecord:
    import msgspec

    from hlotool.interface.report.command_records import differs

    code = ExitCode.AGREE
    if differs(record):
        code = ExitCode.MISMATCH
    elif any(program.error for program in record.programs):
        code = ExitCode.USAGE
    return msgspec.structs.replace(record, exit_code=int(code))
