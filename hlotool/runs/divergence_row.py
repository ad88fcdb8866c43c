"""Adds the first diverging instruction to the row of a module that differs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, leaves
from hlotool.judge.records import DivergenceRecord
from hlotool.judge.verdicts import AGREEING, Verdict
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.program import Program
from hlotool.runs.records import ModuleRecord
from hlotool.runs.runners import OneDevice
from hlotool.runs.trials import Trial
from hlotool.system.resources import UNITS_PER_SECOND, in_words
from hlotool.system.worker import tell

if TYPE_CHECKING:
    from hlotool.inputs.recorded_values import Budget
    from hlotool.ir.types import ShapeIndex
    from hlotool.judge.locate.locator import Search

#: Verdicts on programs that exact arithmetic tells apart, and nothing else.
OTHER_FUNCTIONS = frozenset({Verdict.DIFFERS, Verdict.UNEQUAL})

#: Looked for unasked when the comparison was no more work: the search costs a few executions more.
_CHEAP = 5 * UNITS_PER_SECOND
#: Seconds of each of the three parts of an unasked search: more than it takes after so little work.
_PART_SECONDS = 20.0
#: Work of an unasked search's trials, in comparisons like the one that it explains.
_TRIALS = 12


def with_divergence(
    row: ModuleRecord,
    options: ReplayOptions,
    reference: Program,
    tested: Program,
    trial: Trial,
    work: int,
    elapsed: float = 0.0,
) -> ModuleRecord:
    """The row, with the first diverging instruction where it was looked for and found.

    Args:
        row: of the comparison.
        options: of the user, who may want the search always, never, or (by default) where it is cheap.
        reference: the program as it should be.
        tested: the program in question.
        trial: what both were run on.
        work: units of work that the comparison was.
        elapsed: seconds that it took.
    """
    wanted = options.first_divergence
    is_result = row.error is None
    if (
        wanted is False
        or row.divergence is not None
        or row.verdict not in OTHER_FUNCTIONS | {Verdict.WRONG, Verdict.RANGE}
        or not is_result
    ):
        return row
    if row.verdict is Verdict.WRONG and row.leaves and all(leaf.verdict in AGREEING for leaf in row.leaves):
        return row
    if row.verdict is Verdict.RANGE:
        return _noted(row, "no instruction is wrong: a value is too large for its type") if wanted else row
    budget = _budget(options, work, elapsed)

    def search() -> DivergenceRecord:
        return _search(row, options, reference, tested, trial, budget)

    return _searched(row, options, reference, tested, work, search)


def with_origin_of_spread(
    row: ModuleRecord,
    options: ReplayOptions,
    reference: Program,
    tested: Program,
    trial: Trial,
    work: int,
    elapsed: float,
) -> ModuleRecord:
    """The row of a program whose runs differ, with the instruction that makes them; see `with_divergence`.

    Where all of them are wrong, one run tells as much.
    """
    repeat, wanted = row.repeated, options.first_divergence
    if repeat is None or repeat.results == 1 or 0 < repeat.wrong == repeat.judged or wanted is False:
        return row
    cases, runs = repeat.runs - repeat.usual, repeat.runs
    if repeat.wrong:
        cases, runs = repeat.wrong, repeat.judged
    is_wrong = bool(repeat.wrong)

    def search() -> DivergenceRecord:
        from hlotool.judge.locate.varying import Spread, origin_of_spread

        tell("looking for the instruction that differs from run to run")
        spread, budget = Spread(cases, runs, is_wrong), _budget(options, work, elapsed)
        return origin_of_spread(options.backend, tested.module, trial.arguments, spread, budget)

    row = _searched(row, options, reference, tested, work, search)
    found = row.divergence
    if found is None or row.verdict is not Verdict.UNSTABLE or found.finding != "wrong":
        return row
    reason = f"in {cases} of {runs} runs: {found.source.opcode} is wrong on right operands"
    repeat = msgspec.structs.replace(repeat, wrong=cases, judged=runs)
    return msgspec.structs.replace(row, verdict=Verdict.WRONG, reason=reason, repeated=repeat)


def _searched(
    row: ModuleRecord,
    options: ReplayOptions,
    reference: Program,
    tested: Program,
    work: int,
    search: Callable[[], DivergenceRecord],
) -> ModuleRecord:
    """The row with what a search finds, or with the reason why there is nothing."""
    wanted = options.first_divergence
    if problem := _obstacle(options, reference, tested):
        return _noted(row, problem) if wanted else row
    if wanted is None and work > _CHEAP:
        return _noted(row, f"the comparison {in_words(work)}: only looked for with --first-divergence")
    try:
        found = search()
    except HlotoolError as error:
        return _noted(row, str(error))
    except Exception as error:
        # The verdict stands; a bug in the search for its cause must not cost it.
        return _noted(row, f"internal error of the search, please report: {type(error).__name__}: {error}")
    return msgspec.structs.replace(row, divergence=found)


def _search(
    row: ModuleRecord,
    options: ReplayOptions,
    reference: Program,
    tested: Program,
    trial: Trial,
    budget: Budget,
) -> DivergenceRecord:
    # Imported where it is needed: most modules agree, and every worker would pay for it as it starts.
    from hlotool.judge.locate.isolation import divergence_on
    from hlotool.judge.locate.report import divergence_record, first_divergence
    from hlotool.runs.observed_programs import leaves_of, subjects

    tell("looking for the first wrong instruction")
    if row.verdict in OTHER_FUNCTIONS:
        search, differing = open_exact_search(row, options, reference, tested, trial, budget)
        with closing(search):
            return divergence_record(search, search.first(differing), differing)
    outputs = [tuple(leaf.index) for leaf in row.leaves if leaf.verdict is Verdict.WRONG]
    if not _is_numpy(options.backend):
        return divergence_on(
            options.backend, reference.module, tested.module, trial.arguments, outputs, budget
        )
    return first_divergence(
        *subjects(reference, tested, trial.arguments),
        leaves_of(reference, outputs),
        budget,
        is_wide_enough(row, tested.module),
    )


def open_exact_search(
    row: ModuleRecord,
    options: ReplayOptions,
    reference: Program,
    tested: Program,
    trial: Trial,
    budget: Budget,
) -> tuple[Search, tuple[ShapeIndex, ...]]:
    """Two programs that are other functions, open for questions, and outputs that show it.

    Raises:
        OutOfTime: recording an execution takes too long.
        Unsupported: exact arithmetic cannot look into them.
    """
    from hlotool.runs.exact.parting import open_search
    from hlotool.runs.exact.points import Options

    unequal = [leaf for leaf in row.leaves if leaf.is_unequal]
    trials = max((leaf.exact.trials for leaf in unequal if leaf.exact is not None), default=1)
    given = (trial.arguments,) if reference.runner.copies == 1 else ()
    points = Options(trials, options.seed, given=given)
    shown = next((leaf.exact for leaf in unequal if leaf.exact is not None and leaf.exact.around), None)
    if shown is not None and shown.seed is not None:
        points = Options(1, shown.seed, given=given, most_points=1, around=shown.around)
    return open_search(reference, tested, [tuple(leaf.index) for leaf in unequal], points, budget)


def is_wide_enough(row: ModuleRecord, tested: Module) -> bool:
    """Whether to look in f64: the sides differ there, too, and rounding hides much in the declared types."""
    is_outside = any(leaf.evidence is not None and leaf.evidence.wide == "outside" for leaf in row.leaves)
    return is_outside and any(
        isinstance(part, ArrayShape) and part.element_type.is_narrow_float
        for instruction in tested.instructions()
        for _, part in leaves(instruction.shape)
    )


def _is_numpy(backend: str) -> bool:
    return backend.partition(":")[0] == "numpy"


def _obstacle(options: ReplayOptions, reference: Program, tested: Program) -> str:
    """Why it cannot be looked for; empty when it can."""
    if not _is_numpy(options.reference):
        return f"the {options.reference} backend does not show the values inside of a program"
    if tested.module is reference.module and _is_numpy(options.backend):
        return "both sides run the same program on numpy"
    if not isinstance(tested.runner, OneDevice) and not _is_numpy(options.backend):
        return f"{options.backend} does not show the values of several devices"
    return ""


def _noted(row: ModuleRecord, reason: str) -> ModuleRecord:
    return msgspec.structs.replace(row, divergence_missing=reason)


def _budget(options: ReplayOptions, work: int, elapsed: float) -> Budget:
    """What the search may take, so that the module's own time limit stays far."""
    from hlotool.inputs.recorded_values import Budget

    if options.first_divergence:
        return Budget()
    limit = options.timeout if isinstance(options, RunOptions) else float("inf")
    seconds = min(_PART_SECONDS, max(0.0, limit - elapsed) / 5)
    return Budget(seconds=seconds, work=_TRIALS * work)
