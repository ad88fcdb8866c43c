"""`hlotool.inspect`, `show_scale`, `explain` and `list_messages`: what is said without running a program."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import DumpError, ExitCode, UsageError
from hlotool.interface.api.calls import options_of
from hlotool.interface.api.results import Result
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, option, takes
from hlotool.runs.options.parsers import Program, path_of, paths_of
from hlotool.runs.options.replaying import Backends, Execution, PairOfStages
from hlotool.runs.options.shared import Only, Paths, Scale, Stages, Unknown, Workers
from hlotool.system.paths import here
from hlotool.system.urls import is_url, taken_in

if TYPE_CHECKING:
    from hlotool.checks.explain.records import MatchRecord, TopicRecord
    from hlotool.checks.inspect_records import AlarmInfo
    from hlotool.checks.records import FailedFile, FunctionInfo, ModuleInfo
    from hlotool.interface.report.command_records import InspectRecord, ScalePlansRecord
    from hlotool.interface.report.records import ExplainRecord
    from hlotool.rewrite.scale.records import PlanRecord
    from hlotool.runs.options.kept import RunOptions
    from hlotool.sources.records import Dump, DumpModule, Stage


class InspectResult(Result["ModuleInfo"]):
    """What a dump holds: a row for each module."""

    record: InspectRecord

    @property
    def rows(self) -> Sequence[ModuleInfo]:
        """One record per module, in the order of the dump."""
        return self.record.modules

    @property
    def functions(self) -> Sequence[FunctionInfo]:
        """The functions of the user's program, and how often each was compiled."""
        return self.record.functions

    @property
    def failures(self) -> Sequence[FailedFile]:
        """Paths that hold no HLO, where there are others that do."""
        return self.record.failures


class _Looked(Only, Stages, group="what to look at"): ...


class _Memory(Arguments, group="memory"):
    memory: bool = option(
        "what is alive at the peak of the last stage, by line, and what would lower it",
        "what is alive when the last stage needs the most memory, too, and what would lower that",
        default=False,
    )


class _CompileTime(Arguments, group="compile time"):
    compile_time: bool = option(
        "passes by time and by changes, constants they computed, loops that were unrolled; and what logs say",
        "where the time of compilations went: passes by time and by changes, large constants that they"
        " computed, loops that were unrolled; slow operations in logs, which may be among the paths",
        default=False,
    )


class _Kernels(Arguments, group="kernels", about="generated for the last stage, as the cuda backend does"):
    kernels: bool = option(
        "source, launches, resources, host fallbacks",
        "the CUDA kernels that are generated for the last stage, too",
        default=False,
    )
    arch: str = option("to compile them for [sm_90]", default="sm_90", parse=parsers.architecture)


class _Graphs(Arguments, group="graph"):
    emit: str | None = option(
        "print the last stage as a graph instead: dot (graphviz), json (Model Explorer)",
        default=None,
        init=False,
        once=True,
        choices=("dot", "json"),
    )


class InspectArguments(Paths, _Looked, _Memory, _CompileTime, _Kernels, _Graphs, Workers):
    """What `inspect` takes, and `hlotool inspect`."""


@takes(InspectArguments)
def inspect(asked: InspectArguments) -> InspectResult:
    """What a dump holds, without running anything.

    Functions and how often each was compiled, stages, instructions, parameters and results, memory and
    arithmetic as XLA counts them, loops, collectives, transfers to the host, custom calls.

    Raises:
        DumpError: no path can be read.
        UsageError: no module or stage matches, an impossible argument.
    """
    start = time.perf_counter()
    from hlotool.checks.inspect.run import PRELOAD
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    failures: list[FailedFile] = []
    with Pool(Limits(worker_count(asked.jobs), asked.timeout), PRELOAD) as pool:
        pool.start()
        from hlotool.checks.inspect.run import find_tasks, inspect_all
        from hlotool.checks.records import unreadable
        from hlotool.sources.directory import open_usable

        dumps = open_usable(asked.paths, lambda *path: failures.append(unreadable(*path)))
        arch = asked.arch if asked.kernels else ""
        tasks = find_tasks(dumps, asked.only, asked.stages, arch, asked.memory, asked.compile_time)
        modules = inspect_all(tasks, pool)
    alarms = _alarms(dumps, failures) if asked.compile_time else []
    return InspectResult(_record(asked.paths, dumps, modules, failures, alarms, time.perf_counter() - start))


def _alarms(dumps: Sequence[Dump], failures: list[FailedFile]) -> list[AlarmInfo]:
    """What logs say of slow operations; a path that holds no HLO is a log if it says something of them."""
    from hlotool.checks.inspect.compile_time import alarms_of

    found = alarms_of(dumps, [failure.file for failure in failures])
    logs = {alarm.file for alarm in found}
    failures[:] = [failure for failure in failures if failure.file not in logs]
    return found


def draw(
    path: Program | Sequence[Program], form: str, *, only: str | None = None, stages: Sequence[str] = ()
) -> Iterator[str]:
    """The last stage of each module as a graph, as `hlotool inspect --emit` prints it.

    Args:
        path: a dump directory, a file of HLO, an archive, a log, a module, or several of these.
        form: `dot`, the language of graphviz, a graph for each module; or `json`, one collection of graphs as
            Model Explorer reads it.
        only: regular expression on the names of modules.
        stages: shell patterns of stage names, of which the last one is drawn.

    Returns:
        pieces of the text.

    Raises:
        DumpError: a path cannot be read.
        UsageError: no module or stage matches, or no such form.
        InputError: it is no HLO.
    """
    from hlotool.checks.inspect.graph import dot, graph_of, model_explorer
    from hlotool.checks.inspect.run import find_tasks
    from hlotool.sources.directory import open_dumps
    from hlotool.sources.stages import read_stage

    if form not in ("dot", "json"):
        raise UsageError(f"form={form!r}: it is dot or json")
    paths = paths_of(path)
    drawn = [
        (task.module, task.stages[-1]) for task in find_tasks(open_dumps(paths), only, stages) if task.stages
    ]
    graphs = (
        graph_of(read_stage(stage, reads_literals=False), f"{module.title}: {stage.title}")
        for module, stage in drawn
    )
    if form == "dot":
        return (f"{line}\n" for graph in graphs for line in dot(graph))
    found = {"label": ", ".join(paths), "graphs": [model_explorer(graph) for graph in graphs]}
    return iter((json.dumps(found), "\n"))


def _record(
    paths: list[str],
    dumps: Sequence[Dump],
    modules: Sequence[ModuleInfo],
    failures: list[FailedFile],
    alarms: list[AlarmInfo],
    elapsed: float,
) -> InspectRecord:
    from hlotool.checks.inspect.run import functions_of
    from hlotool.interface.report.command_records import InspectRecord
    from hlotool.interface.report.records import versions

    is_complete = not failures and not any(module.failures for module in modules)
    cuts = [f"{stage.file}: {stage.cut}" for module in modules for stage in module.stages if stage.cut]
    return InspectRecord(
        versions=versions(),
        paths=paths,
        functions=functions_of(modules),
        modules=list(modules),
        failures=failures,
        alarms=alarms,
        notes=[*(note for dump in dumps for note in dump.notes), *cuts],
        exit_code=ExitCode.AGREE if is_complete else ExitCode.USAGE,
        seconds=elapsed,
    )


if TYPE_CHECKING:
    _Compared = tuple[str, list[tuple[DumpModule, Stage]]]


class ScalePlans(Result["PlanRecord"]):
    """What would become of the sizes of programs."""

    record: ScalePlansRecord

    @property
    def rows(self) -> Sequence[PlanRecord]:
        """One record per module, or per pair of programs."""
        return self.record.plans


class ShowScaleArguments(Paths, Scale, Only, PairOfStages, Backends, Unknown, Execution):
    """What `show_scale` takes."""

    against: As[Program | None, str | None] = option(
        doc="the same kind of thing: what the programs of the only path are compared with",
        default=None,
        convert=path_of,
    )
    in_place: bool = option(
        doc="for `replay`, which runs programs as they are where values on disk are enough; other functions"
        " do not",
        default=True,
    )


@takes(ShowScaleArguments)
def show_scale(asked: ShowScaleArguments) -> ScalePlans:
    """Which sizes programs would get, which stay and why, and what one execution needs before and after.

    Nothing is executed.

    Returns:
        a plan for each module, or for each pair of programs.

    Raises:
        DumpError: a path cannot be read, or holds nothing.
        UsageError: no module matches, an impossible argument.
    """
    options, other, scale = options_of(asked), asked.against, asked.scale
    from hlotool.interface.report.command_records import ScalePlansRecord
    from hlotool.interface.report.records import versions
    from hlotool.rewrite.scale.records import NEVER, wish_of
    from hlotool.runs.scaling import limits_here, plan_of

    notes: list[str] = []
    compared = list(_compared(asked.paths, other, options, notes))
    limits = limits_here(options, len(compared))
    if scale != NEVER:
        limits = limits.within(wish_of(scale))
    record = ScalePlansRecord(
        versions=versions(),
        paths=[*asked.paths, *([other] if other else [])],
        scale=scale,
        memory=None if limits.memory == float("inf") else int(limits.memory),
        seconds=limits.seconds,
        plans=[plan_of(name, pair, options, limits, asked.in_place) for name, pair in compared],
        notes=notes,
    )
    return ScalePlans(record)


def _compared(
    paths: Sequence[str], against: str | None, options: RunOptions, notes: list[str]
) -> Iterator[_Compared]:
    """Names of what is compared, with stages and the modules they are of; notes get what is passed over."""
    if against is not None:
        from hlotool.interface.api.prove import pairing_of

        for pair in pairing_of([*paths, against], options, notes).pairs:
            yield pair.name, list(zip(pair.owners, (pair.left, pair.right)))
        return
    from hlotool.runs.task import find_tasks, select_stages

    for task in find_tasks(paths, options, notes):
        selection = select_stages(task.module, options.stages)
        stages = [one for one in (selection.reference, *selection.tested) if one is not None]
        if stages:
            yield task.module.title, [(task.module, stage) for stage in stages]
        else:
            notes.append(f"{task.module.title}: {task.module.unpaired_reason}")


class ExplainResult(Result["MatchRecord"]):
    """Messages that are known: a row for each; and what words of reports mean."""

    record: ExplainRecord

    @property
    def rows(self) -> Sequence[MatchRecord]:
        """What was recognised, in the order of the text."""
        return self.record.matches

    @property
    def topics(self) -> Sequence[TopicRecord]:
        """What words of reports mean: verdicts, answers of commands, rules of `check`."""
        return self.record.topics


class ExplainArguments(Arguments):
    """What `explain` takes, and `hlotool explain`."""

    text: str | os.PathLike[str] = option(
        "a verdict, a rule, an error code, a message, a file, or - for stdin [list what there is]",
        "a verdict such as `wrong`, a rule of `check`, an error code such as `E1200`, a message, a log",
        kw_only=False,
        nargs="*",
        metavar="TEXT",
    )
    dump: str | os.PathLike[str] | None = option(
        "dump of the program that the messages are about", default=None, metavar="DIR"
    )
    list: bool = option("list all messages that are known", default=False, init=False, once=True)


@takes(ExplainArguments)
def explain(asked: ExplainArguments) -> ExplainResult:
    """What a word of a report means, or error messages of XLA, JAX, TensorFlow and PyTorch/XLA.

    Raises:
        DumpError: the log or the dump cannot be read.
        UsageError: a name that is not known.
    """
    from hlotool.checks.explain.entries import find_entry
    from hlotool.checks.explain.messages import entry_record, explain_text, only_reports
    from hlotool.checks.explain.topics import find_topics, no_topic

    opened = None
    if asked.dump is not None:
        from hlotool.sources.directory import open_dump

        opened = open_dump(asked.dump)
    said = _text(asked.text)
    entry, topics = find_entry(said), find_topics(said)
    if entry or topics:
        return _result([entry_record(entry)] if entry else [], topics)
    matches = explain_text(said, opened, installed=True) or only_reports(said)
    if not matches and (complaint := no_topic(said)):
        raise UsageError(complaint)
    return _result(matches)


def list_messages() -> ExplainResult:
    """All that `explain` knows, as `hlotool explain` and, of messages, `hlotool explain --list` print it."""
    from hlotool.checks.explain.entries import catalogue
    from hlotool.checks.explain.messages import entry_record
    from hlotool.checks.explain.topics import topics

    return _result([entry_record(entry) for entry in catalogue()], list(topics()))


def _result(matches: list[MatchRecord], topics: list[TopicRecord] | None = None) -> ExplainResult:
    from hlotool.interface.report.records import ExplainRecord

    code = ExitCode.AGREE if matches or topics else ExitCode.NOTHING_COMPARED
    return ExplainResult(ExplainRecord(matches=matches, topics=topics or [], exit_code=code))


def _text(text: str | os.PathLike[str]) -> str:
    """What to read: the text, or the file that it names."""
    if isinstance(text, str) and ("\n" in text or not (_is_lone_url(text) or os.path.isfile(text))):
        return text
    try:
        return Path(here(taken_in(os.fspath(text)))).read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise DumpError(f"{os.fspath(text)}: {error.strerror}") from error


def _is_lone_url(text: str) -> bool:
    """Whether it is a URL and not a message that begins with one."""
    return is_url(text) and len(text.split()) == 1
