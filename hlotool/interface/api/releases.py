"""`releases`: the release of a compiler with which programs went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hlotool.errors import BackendUnavailable, ExitCode, UsageError
from hlotool.interface.api.calls import QUIET, Accompanied, Ending, ending, options_of
from hlotool.interface.api.results import Result
from hlotool.runs.options.declared import option, takes
from hlotool.runs.options.replaying import Execution
from hlotool.runs.options.shared import InputsAndOutputs, Only, Paths, Resume, Tolerances

if TYPE_CHECKING:
    from hlotool.blame.releases import ReleaseRecord, ReleasesRecord
    from hlotool.blame.searches import History
    from hlotool.blame.steps import Steps
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.records import ModuleRecord
    from hlotool.runs.task import Task
    from hlotool.system.pool import Pool


class ReleasesResult(Result["ReleaseRecord"]):
    """Which releases were tried, and what came out: a row for each."""

    record: ReleasesRecord

    @property
    def rows(self) -> Sequence[ReleaseRecord]:
        """One record per release that was tried, in their order."""
        return self.record.tried

    @property
    def first_wrong(self) -> str:
        """The release with which it began; empty where none is known."""
        return self.record.first_wrong


class _Range(Only, group="what to search"):
    between: str = option(
        "the first and the last one: 0.6.0..0.10.2",
        "the first and the last release, as `0.6.0..0.10.2`",
        metavar="FROM..TO",
        once=True,
    )
    every: bool = option("try each release of the range", default=False)


class ReleasesArguments(Paths, _Range, InputsAndOutputs, Tolerances, Execution, Resume, Accompanied):
    """What `releases` takes, and `hlotool releases`."""


@takes(ReleasesArguments)
def releases(asked: ReleasesArguments) -> ReleasesResult:
    """Find the release of jaxlib with which XLA made programs wrong.

    Each release is installed into an environment of its own, which is kept, and compiles and runs the
    programs as they were before optimisation; the reference judges. About log2(n) + 2 releases are tried.

    Raises:
        DumpError: a path cannot be read.
        UsageError: no such range, no module matches.
        BackendUnavailable: the package index cannot be asked.
    """
    start = time.perf_counter()
    from hlotool.blame.releases import releases_between, searched
    from hlotool.blame.steps import Steps
    from hlotool.runs.fleet.contents import command_key
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.runs.task import find_tasks
    from hlotool.system.cache import journal_of
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    low, dots, high = asked.between.partition("..")
    if not dots or not low[:1].isdigit() or not high[:1].isdigit():
        raise UsageError(f"--between {asked.between}: two versions, as 0.6.0..0.10.2")
    options = options_of(asked, backend="xla")
    journal = journal_of("releases", command_key([*asked.paths, asked.between], options))
    if not asked.resume:
        journal.remove()
    notes: list[str] = []
    known = releases_between(low, high)
    found: list[History] = []
    tried: dict[str, ReleaseRecord] = {}
    limits = Limits(worker_count(asked.jobs), asked.timeout, asked.memory_limit)
    with ending(asked.course) as end, asked.course.searching() as listener, Pool(limits, PRELOAD) as pool:
        tasks = find_tasks(asked.paths, options, notes)
        judge = _judge(tasks, options, pool, Steps(journal, listener))
        found.append(searched(known, judge, tried, asked.every, listener.left))
    if end.interrupted:
        journal.close()
    else:
        asked.course.forget(journal.remove)
    in_order = [tried[version] for version in known if version in tried]
    return ReleasesResult(_record(asked, known, found, in_order, notes, end, time.perf_counter() - start))


def _judge(
    tasks: Sequence[Task], options: RunOptions, pool: Pool, steps: Steps
) -> Callable[[str], ModuleRecord | str]:
    """The gravest row of the programs on a release; what was asked before an interruption is known."""
    import msgspec

    from hlotool.blame.releases import environment
    from hlotool.judge.verdicts import worst
    from hlotool.runs.fleet.batch import replay_all
    from hlotool.runs.records import ModuleRecord
    from hlotool.runs.task import Task

    def rows_of(version: str) -> object:
        try:
            python = environment(version)
        except BackendUnavailable as error:
            return str(error)
        own = msgspec.structs.replace(options, backend=f"xla:python={python}")
        every = [Task(task.module, own) for task in tasks]
        with QUIET.replaying(every) as listener:
            batch = replay_all(every, pool, listener)
        if batch.interrupted:
            raise KeyboardInterrupt
        rows = [row for of_task in batch.rows for row in of_task or ()]
        gravest = worst(row.verdict for row in rows)
        return msgspec.to_builtins(next(row for row in rows if row.verdict is gravest))

    def shown(value: object) -> str:
        return str(value["verdict"]) if isinstance(value, dict) else "not installed"

    def lasts(value: object) -> bool:
        # What could not be installed may be another time.
        return isinstance(value, dict)

    def judged(version: str) -> ModuleRecord | str:
        value = steps.ask(version, f"jaxlib {version}", lambda: rows_of(version), shown, lasts)
        return value if isinstance(value, str) else msgspec.convert(value, ModuleRecord)

    return judged


def _record(
    asked: ReleasesArguments,
    known: Sequence[str],
    found: Sequence[History],
    tried: Sequence[ReleaseRecord],
    notes: Sequence[str],
    end: Ending,
    elapsed: float,
) -> ReleasesRecord:
    from hlotool.blame.releases import ReleasesRecord, environment, told
    from hlotool.interface.report.records import versions
    from hlotool.judge.verdicts import Answer

    last, first, said = "", "", list(notes)
    code = ExitCode.INCONCLUSIVE
    for history in found:
        last, first, more = told(known, history)
        said += more
        if Answer.BAD in history.answers.values():
            code = ExitCode.MISMATCH
        elif Answer.GOOD in history.answers.values():
            code = ExitCode.AGREE
    return ReleasesRecord(
        versions=versions(),
        paths=asked.paths,
        known=list(known),
        tried=list(tried),
        last_right=last,
        first_wrong=first,
        interpreter=str(environment(first)) if first else "",
        inputs=asked.inputs,
        notes=said,
        error=end.error,
        interrupted=end.interrupted,
        exit_code=end.exit_code(code),
        seconds=elapsed,
    )
