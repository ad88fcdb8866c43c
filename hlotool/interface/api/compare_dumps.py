"""`compare_dumps`: the functions of two dumps, or one program on two backends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.calls import Accompanied, Ending, ending, options_of
from hlotool.interface.api.results import Result
from hlotool.runs.options.declared import Words, option, takes
from hlotool.runs.options.replaying import Execution
from hlotool.runs.options.shared import FurtherSets, InputsAndOutputs, Only, Paths, Tolerances, Unknown

if TYPE_CHECKING:
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.records import ModuleRecord
    from hlotool.runs.task import Task
    from hlotool.runs.two_dumps import CompareRecord, FunctionRecord, Pair, Question, Side
    from hlotool.sources.records import DumpModule
    from hlotool.system.pool import Pool


class CompareDumpsResult(Result["FunctionRecord"]):
    """What two dumps have in common, and what not: a row for each function."""

    record: CompareRecord

    @property
    def rows(self) -> Sequence[FunctionRecord]:
        """One record per function that both have, in the order of the first dump."""
        return self.record.functions


class _Beside(Only, Unknown, group="what to compare"):
    tests: Words = option(
        "of one program: both backends, one option each",
        "two backends, where `paths` is one program",
        default=(),
        flags=("--test",),
        kind="list",
        grave=True,
        metavar="BACKEND",
    )


class CompareArguments(Paths, _Beside, InputsAndOutputs, Tolerances, FurtherSets, Execution, Accompanied):
    """What `compare_dumps` takes, and `hlotool compare`."""


@takes(CompareArguments)
def compare_dumps(asked: CompareArguments) -> CompareDumpsResult:
    """Compare what two versions of a compiler, or two machines, made of the same functions.

    Returns:
        for each function of both dumps whether the frontend changed it, whether either program after
        optimisation is wrong, and what two legal ones differ in; and the functions that only one dump has.

    Raises:
        DumpError: a path cannot be read.
        UsageError: not two dumps, nor one program and two backends; no function matches.
    """
    start = time.perf_counter()
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    if (len(asked.paths), len(asked.tests)) not in ((2, 0), (1, 2)):
        raise UsageError("give two dumps, or one program and two backends: --test A --test B")
    options = options_of(asked)
    limits = Limits(worker_count(asked.jobs), asked.timeout, asked.memory_limit)
    notes: list[str] = []
    functions: list[FunctionRecord] = []
    only: list[list[str]] = [[], []]
    with ending(asked.course) as end, Pool(limits, PRELOAD) as pool:
        pool.start()
        questions = (
            _of_backends(asked, options, notes) if asked.tests else _of_dumps(asked, options, notes, only)
        )
        functions += _answers(questions, pool, asked, notes, end)
    return CompareDumpsResult(_record(asked, functions, only, notes, end, time.perf_counter() - start))


def _modules(path: str, only: str | None, notes: list[str]) -> list[DumpModule]:
    from hlotool.sources.directory import open_dumps
    from hlotool.sources.records import modules_matching

    dumps = open_dumps([path])
    notes += [note for dump in dumps for note in dump.notes]
    return [module for _, module in modules_matching(dumps, only)]


def _of_dumps(
    asked: CompareArguments, options: RunOptions, notes: list[str], only: list[list[str]]
) -> list[tuple[Pair, dict[Question, Task]]]:
    import msgspec

    from hlotool.runs.task import as_asked
    from hlotool.runs.two_dumps import paired, side_of, tasks_of

    left, right = (
        [side_of(as_asked(module, options)) for module in _modules(path, asked.only, notes)]
        for path in asked.paths
    )
    pairs, *unpaired = paired(left, right)
    if not pairs and len(left) == len(right) == 1:
        pairs, unpaired = [_by_interface(left[0], right[0], options, notes)], []
        # A mask of -1e9 stands for minus infinity only where no score is that large.
        options = msgspec.structs.replace(options, further_sets=False)
    for names, sides in zip(only, unpaired):
        names += [side.module.title for side in sides]
    if not pairs:
        raise UsageError(f"{asked.paths[0]} and {asked.paths[1]} have no function in common")
    return [(pair, tasks_of(pair, options)) for pair in pairs]


def _by_interface(left: Side, right: Side, options: RunOptions, notes: list[str]) -> Pair:
    """Two programs of other names and results, as far as they take and return the same arrays.

    Raises:
        UsageError: they have nothing in common.
    """
    from hlotool.ir.printer import print_module
    from hlotool.runs.interfaces import to_one_interface
    from hlotool.runs.task import as_asked
    from hlotool.runs.two_dumps import Pair, side_of
    from hlotool.sources.loading import load_stage
    from hlotool.system.files import passing_folder

    programs = [load_stage(side.module, side.module.stages[0], may_compile=True) for side in (left, right)]
    notes += to_one_interface(*programs)
    notes.append("two programs of one interface are compared on ordinary inputs, no extra sets")
    folder, sides = passing_folder(), []
    for place, side, program in zip(("first", "second"), (left, right), programs, strict=True):
        file = folder / place / f"{side.module.name}.hlo"
        file.parent.mkdir()
        file.write_text(print_module(program), encoding="utf-8")
        [module] = _modules(str(file), None, [])
        sides.append(side_of(as_asked(module, options)))
    return Pair(*sides)


def _of_backends(
    asked: CompareArguments, options: RunOptions, notes: list[str]
) -> list[tuple[Pair, dict[Question, Task]]]:
    from hlotool.runs.task import as_asked
    from hlotool.runs.two_dumps import Pair, side_of, tasks_on_backends

    found = []
    backends = asked.tests[0], asked.tests[1]
    for module in _modules(asked.paths[0], asked.only, notes):
        side: Side = side_of(as_asked(module, options))
        found.append((Pair(side, side), tasks_on_backends(module, options, backends)))
    return found


def _answers(
    questions: Sequence[tuple[Pair, dict[Question, Task]]],
    pool: Pool,
    asked: CompareArguments,
    notes: list[str],
    end: Ending,
) -> list[FunctionRecord]:
    """Comparisons of programs with their own first; with each other where nothing is wrong by then."""
    from hlotool.runs.fleet.batch import replay_all
    from hlotool.runs.two_dumps import Question, is_open, record_of

    answers: list[dict[Question, list[ModuleRecord]]] = [{} for _ in questions]
    asked.course.working()
    for is_between in (False, True):
        wanted = [
            (known, question, task)
            for known, (_, of_pair) in zip(answers, questions)
            for question, task in of_pair.items()
            if (question is Question.BETWEEN) is is_between and (not is_between or is_open(known))
        ]
        tasks = [task for _, _, task in wanted]
        with asked.course.replaying(tasks) as listener:
            batch = replay_all(tasks, pool, listener)
        end.interrupted |= batch.interrupted
        for (known, question, _), rows in zip(wanted, batch.rows):
            known[question] = rows or []
        if batch.interrupted:
            break
    notes += pool.notes
    return [record_of(pair, known) for (pair, _), known in zip(questions, answers) if all(known.values())]


def _record(
    asked: CompareArguments,
    functions: Sequence[FunctionRecord],
    only: Sequence[Sequence[str]],
    notes: Sequence[str],
    end: Ending,
    elapsed: float,
) -> CompareRecord:
    from hlotool.interface.report.records import versions
    from hlotool.judge.verdicts import exit_code_of
    from hlotool.runs.two_dumps import CompareRecord, verdicts_of

    verdicts = [verdict for function in functions for verdict in verdicts_of(function)]
    code = exit_code_of(verdicts) if verdicts else ExitCode.NOTHING_COMPARED
    return CompareRecord(
        versions=versions(),
        paths=asked.paths,
        backends=list(asked.tests),
        functions=list(functions),
        only_left=list(only[0]),
        only_right=list(only[1]),
        notes=list(dict.fromkeys(notes)),
        error=end.error,
        interrupted=end.interrupted,
        exit_code=end.exit_code(code),
        seconds=elapsed,
    )
