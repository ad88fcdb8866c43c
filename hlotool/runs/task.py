"""One module to replay, and its row before the replay has come to its end or where it could not be run.

A verdict stands long before a module is done: further inputs are tried, the first wrong instruction is
looked for, the reference is observed. A process that is killed meanwhile, as its time is over, would take
the verdict with it. So every row is handed over as soon as its verdict stands, and again when it is
finished.

A result that equals what the last stage gives on the reference needs no row of its own: what is said of the
one holds for both.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from hlotool.backends.registry import executes_code
from hlotool.errors import (
    BackendFailed,
    BackendTimeout,
    BackendUnavailable,
    DumpError,
    HlotoolError,
    NotCompiled,
    UsageError,
)
from hlotool.judge.failures import error_record, verdict_of
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.sources.compilation import SUFFIX
from hlotool.sources.file_names import Kind
from hlotool.sources.records import DumpModule, Stage, modules_matching
from hlotool.system.user_input import did_you_mean
from hlotool.system.worker import hand_over


@dataclass(frozen=True, slots=True)
class Selection:
    """Stages of one module.

    Attributes:
        reference: gives the expected values; None when the module has no stage at all.
        tested: are judged by it; empty when there is nothing to compare with.
    """

    reference: Stage | None
    tested: tuple[Stage, ...] = ()


def select_stages(module: DumpModule, patterns: Sequence[str] = ()) -> Selection:
    """Choose the stages to compare.

    Args:
        module: of a dump.
        patterns: shell patterns of stage labels, the reference's first; of a single one the first stage that
            it matches is the reference of the others. Without any, the program as the frontend gave it
            against what was compiled for each platform.

    Raises:
        UsageError: no stage matches a pattern.
    """
    if patterns:
        return _matching(module, patterns)
    if not module.stages:
        return Selection(None)
    reference, *later = module.stages
    if module.pair is None:
        return Selection(reference)
    final = {stage.platform: stage for stage in later if stage.kind is Kind.AFTER_OPTIMIZATIONS}
    return Selection(reference, tuple(final.values()) or tuple(later[-1:]))


def _matching(module: DumpModule, patterns: Sequence[str]) -> Selection:
    known = [*module.stages, *module.others]
    reference = _first_match(module, known, patterns[0])
    tested: list[Stage] = []
    for pattern in patterns[1:] or patterns:
        _first_match(module, known, pattern)
        tested += [s for s in known if s not in (reference, *tested) and fnmatchcase(s.label, pattern)]
    # An extracted fusion is a program of its own, whatever the pattern.
    is_part = reference.kind is Kind.FUSION
    return Selection(reference, tuple(s for s in tested if (s.kind is Kind.FUSION) == is_part))


def _first_match(module: DumpModule, known: Sequence[Stage], pattern: str) -> Stage:
    for stage in known:
        if fnmatchcase(stage.label, pattern):
            return stage
    labels = ", ".join(stage.title for stage in known[:8]) or "none"
    more = f", … ({len(known)} in all)" if len(known) > 8 else ""
    meant = did_you_mean(pattern, (stage.label for stage in known))
    raise UsageError(f"{module.title}: no stage matches --stages {pattern!r}; it has: {labels}{more}{meant}")


@dataclass(frozen=True, slots=True)
class Task:
    """One module to replay.

    Attributes:
        module: where its files are.
        options: what to do with it.
    """

    module: DumpModule
    options: ReplayOptions

    @property
    def path(self) -> str:
        """The file that speaks for the module in messages."""
        for stage in reversed(self.module.stages):
            return str(stage.source)
        for capture in self.module.captures:
            return str(capture.source)
        return self.module.title

    @property
    def paths(self) -> frozenset[str]:
        """All files that rows of the module may name."""
        stages = (*self.module.stages, *self.module.others)
        return frozenset({self.path, *(str(stage.source) for stage in stages)})


def find_tasks(
    paths: Sequence[str],
    options: ReplayOptions,
    notes: list[str],
    unusable: Callable[[str, DumpError], None] | None = None,
) -> list[Task]:
    """The modules under `paths`, of which `RunOptions` may want only some.

    Args:
        paths: of dumps, files, archives or logs.
        options: what to do with them.
        notes: gets what was passed over.
        unusable: is told of each path that cannot be used, where another one can, instead of an error.

    Raises:
        DumpError: a path cannot be read, or holds nothing to replay.
        UsageError: no module matches.
    """
    # Workers run tasks, and look for none.
    from hlotool.sources.directory import open_dumps, open_usable

    dumps = open_dumps(paths) if unusable is None else open_usable(paths, unusable)
    notes += [note for dump in dumps for note in dump.notes]
    only = options.only if isinstance(options, RunOptions) else None
    modules = [module for _, module in modules_matching(dumps, only)]
    # Of a text of several functions, each is a module.
    named = [module for module in modules if options.entry and module.name == options.entry]
    return [task_of(module, options) for module in named or modules]


def task_of(module: DumpModule, options: ReplayOptions) -> Task:
    """The task for a module of a dump.

    What is not read need not travel to the workers, flags apart: a dump has hundreds of files. Where its code
    is executed, all of them may be.
    """
    executes = any(executes_code(backend) for backend in options.backends)
    artefacts = tuple(file for file in module.artefacts if executes or file.path.endswith(SUFFIX))
    return Task(as_asked(replace(module, artefacts=artefacts), options), options)


def as_asked(module: DumpModule, options: ReplayOptions) -> DumpModule:
    """The module with what the user says of the things that a dump leaves open."""
    return replace(
        module,
        devices=options.devices,
        takes_opaque=options.opaque,
        generates_elided=options.elided_seed,
        entry=options.entry,
    )


def for_each_backend(tasks: Iterable[Task], missing: Container[str] = ()) -> list[Task]:
    """Each task once for every backend that its options compare, without those that are missing."""
    return [
        Task(task.module, msgspec.structs.replace(task.options, backend=backend))
        for task in tasks
        for backend in task.options.tested_backends
        if backend not in missing
    ]


def unavailable_row(backend: str, error: BackendUnavailable) -> ModuleRecord:
    """The row that stands for all modules on a backend that cannot be used here."""
    record = error_record(error)
    return ModuleRecord(
        path="",
        name="all modules",
        is_trivial=True,  # it is no program
        verdict=verdict_of(error),
        tested=backend,
        reason=record.message,
        error=record,
    )


def unusable_row(path: str, error: DumpError) -> ModuleRecord:
    """The row of a path under which nothing can be replayed."""
    record = error_record(error)
    return ModuleRecord(path=path, name=path, verdict=verdict_of(error), reason=record.message, error=record)


def failed_row(task: Task, error: HlotoolError, seconds: float, path: str = "") -> ModuleRecord:
    """The row of a task (or of its stage in `path`) that ended with `error`."""
    record = error_record(error)
    return ModuleRecord(
        path=path or task.path,
        name=task.module.title,
        verdict=verdict_of(error),
        tested=task.options.one_of_several or None,
        reason=record.message,
        error=record,
        seconds=seconds,
    )


def unfinished_row(task: Task) -> ModuleRecord:
    """The row of a module whose compilation did not finish: of the program that the compiler was given."""
    program = task.module.before
    path = str(program.source) if program is not None else ""
    why = task.module.unfinished
    from hlotool.checks.explain.recognition import recognize

    if found := recognize(why):
        why += f" ({found[-1].entry.title}: hlotool explain {found[-1].entry.id})"
    return failed_row(task, NotCompiled(why), 0.0, path)


#: The folder that gets inputs that show something, for `--inputs` of everything after.
INPUTS_FOLDER = "hlotool-inputs"


def inputs_file(name: str) -> Path:
    """Where the arguments of the program `name` go."""
    return Path(INPUTS_FOLDER, f"{name.replace('/', '_')}.npz")


#: What is done with a row whose verdict stands.
FURTHER, EXPLAINING = "extra inputs", "the explanation"


class Handed(msgspec.Struct, frozen=True):
    """A row that was handed over.

    Attributes:
        number: of the row in the module; what is handed over later under the same number takes its place.
        row: as it was then.
        doing: what is done with it; empty where it is finished.
        is_last: no other row follows.
    """

    number: int
    row: ModuleRecord
    doing: str = ""
    is_last: bool = False


@dataclass
class Standing:
    """Hands over the rows of one module.

    Attributes:
        number: of the row that is being made.
        noted: adds to a row what is said of the programs of the module.
    """

    number: int = 0
    noted: Callable[[ModuleRecord], ModuleRecord] = lambda row: row

    def stands(self, row: ModuleRecord, doing: str, is_last: bool) -> None:
        """The verdict of a row stands, and something is done with it; `is_last`: no other row follows."""
        hand_over(Handed(self.number, self.noted(row), doing, is_last))

    def is_finished(self, row: ModuleRecord) -> None:
        """Nothing more is done with a row."""
        hand_over(Handed(self.number, row))
        self.number += 1


_decoder = msgspec.msgpack.Decoder(Handed)


def rows_so_far(
    task: Task, error: BackendFailed, handed_over: Sequence[bytes], seconds: float
) -> list[ModuleRecord]:
    """The rows of a module whose process ended before it was done.

    Further inputs may change a verdict. A process that crashes on them is no news of the time, but of the
    module: only where the time ended does the verdict on the plain ones stand.

    Args:
        task: the module.
        error: how it ended.
        handed_over: what its process had found, in order.
        seconds: for which it ran.
    """
    handed = {one.number: one for one in map(_decoder.decode, handed_over)}
    rows = [one.row for one in handed.values() if not one.doing]
    seconds = max(0.0, seconds - sum(row.seconds for row in rows))
    for one in handed.values():
        if one.doing == EXPLAINING or (one.doing and isinstance(error, BackendTimeout)):
            unfinished = f"{one.doing}: {error.message}"
            rows.append(msgspec.structs.replace(one.row, unfinished=unfinished, seconds=seconds))
            if one.is_last:
                return rows
            seconds = 0.0
    return [*rows, failed_row(task, error, seconds)]
