"""Replays what a program compiles, while it runs and when it has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import structs

from hlotool.checks.in_place import unsafe_updates
from hlotool.errors import DumpError
from hlotool.judge.verdicts import AGREEING, DIFFERING, FAILED, Verdict
from hlotool.runs.capture.events import Key, Log, judged, judged_together
from hlotool.runs.capture.launch import Program
from hlotool.runs.capture.records import EventRecord
from hlotool.runs.capture.watch import Watch
from hlotool.runs.fleet.batch import Batch, Listener, Silent, replay_all
from hlotool.runs.options.kept import PRELOAD, RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task, for_each_backend, task_of
from hlotool.sources.compilation import with_unfinished
from hlotool.sources.directory import open_dump
from hlotool.sources.records import DumpModule
from hlotool.system.executor import Limits
from hlotool.system.pool import Pool

#: How far replays give way to the program that runs beside them: it shall take no longer for them.
_NICENESS = 15
#: Seconds between two looks at what is finished.
_PAUSE = 0.25
#: Seconds from which on a program is worth processes beside it: one that is over sooner would pay for their
#: start, and those that go on afterwards are started anew, with a full claim.
_SOON = 30.0
#: Bytes of programs that are worth another process, which takes as long to start as a tenth of them to judge.
_WORTH_A_PROCESS = 300_000


class Session:
    """What is known of the programs that a running program compiles.

    Args:
        watch: of its dump.
        options: of the replays.
        missing: backends that cannot be used.
        announce: called with a line for each row that shows a fault, and each event of `--keep-when`, as soon
            as it is known.
        counted: called with the number of programs that are judged, and of those that are wrong, as often as
            there are more.

    Attributes:
        notes: of the dump and of the workers, for the user.
    """

    def __init__(
        self,
        watch: Watch,
        options: RunOptions,
        missing: Sequence[str] = (),
        announce: Callable[[str], None] = lambda text: None,
        counted: Callable[[int, int], None] = lambda judged, wrong: None,
    ) -> None:
        self.notes: list[str] = []
        self._watch = watch
        self._log = Log(watch.folder)
        self._options = options
        self._missing = missing
        self._announce = announce
        self._counted = counted
        self._rows: dict[Key, list[ModuleRecord]] = {}
        #: By process, once nothing of the dump changes any more.
        self._at_the_end: dict[Path, Sequence[DumpModule]] = {}

    def replay_beside(self, program: Program) -> None:
        """Replay what is finished until the program ends, on half of the cores, with little claim to them."""
        jobs = max(1, self._options.workers // 2)
        begin, told = time.monotonic() + _SOON, 0
        with ExitStack() as stack:
            pool: Pool | None = None
            while not program.ended(_PAUSE):
                told = self._announce_events(told)
                if time.monotonic() < begin or not (finished := self._finished()):
                    continue
                if pool is None:
                    pool = stack.enter_context(self._pool(jobs, _NICENESS))
                # What is left when the program ends is replayed then, with a full claim to all cores.
                while finished and not program.ended(0):
                    self._replay_finished(finished[:jobs], pool)
                    del finished[:jobs]

    def tasks_left(self, last_words: str = "") -> list[Task]:
        """What is to be replayed when the program has ended, and nothing of its dump changes any more.

        Args:
            last_words: the end of what the program wrote to stderr.
        """
        self._watch.stop()
        self.notes += self._watch.notes
        self._at_the_end = {folder: self._modules_in(folder) for folder in self._watch.folders()}
        # Further results of an execution have numbers below 0.
        ordinals = {path: max(number, 0) for path, number in self._watch.ordinals().items()}
        tasks = [
            task_of(_with_ordinals(module, ordinals), self._options)
            for folder, modules in self._at_the_end.items()
            for module in with_unfinished(modules, is_whole=True, log=last_words)
            if (folder, module.number or 0) not in self._rows and module.matches(self._options.only)
        ]
        return for_each_backend(tasks, self._missing)

    def replay_rest(self, tasks: Sequence[Task], listener: Listener) -> Batch:
        """Replay them on as many cores as they are worth; Ctrl-C ends it with what is finished."""
        sizes = [_size_of(task.module) for task in tasks]
        worth = 1 + (sum(sizes) - max(sizes, default=0)) // _WORTH_A_PROCESS
        with self._pool(min(self._options.workers, worth), 0) as pool:
            batch = replay_all(tasks, pool, listener)
            for task, rows in zip(tasks, batch.rows):
                self._rows.setdefault(_key_of(task), []).extend(rows or [])
            if not batch.interrupted:
                self.notes += unsafe_updates(self._agreeing(), pool)
            self._note(pool)
        return batch

    def _agreeing(self) -> list[DumpModule]:
        """The modules of which some result agrees, as the dump has them now."""
        agreeing = {key for key, rows in self._rows.items() if any(row.verdict in AGREEING for row in rows)}
        return [
            module
            for folder, modules in self._at_the_end.items()
            for module in modules
            if (folder, module.number or 0) in agreeing
        ]

    @property
    def judged(self) -> int:
        """How many programs have rows."""
        return len(self._rows)

    def rows(self) -> list[ModuleRecord]:
        """All rows, by process and number; those of several processes have their folders in their names."""
        repeats = {key: one.repeat for key, one in self._log.noted() if one.repeat is not None}
        return [
            msgspec.structs.replace(row, name=self._prefix(key[0]) + row.name)
            for key, rows in sorted(self._rows.items())
            for row in (judged_together(rows, repeats[key]) if key in repeats else rows)
        ]

    @property
    def executed(self) -> int:
        """Of how many programs executions were seen within the program."""
        return len({key for key, _ in self._log.noted()})

    def events(self) -> list[EventRecord]:
        """What `--keep-when` found, with the verdicts that there are, in the order in which it happened."""
        found = self._log.events()
        titles = self._titles() if found else {}
        return [
            judged(event, self._prefix(key[0]) + titles[key], self._rows.get(key, ()))
            for key, event in found
            if key in titles
        ]

    def _prefix(self, folder: Path) -> str:
        return f"{folder.name}/" if len({folder for folder, _ in self._rows}) > 1 else ""

    def _titles(self) -> dict[Key, str]:
        """Of the modules that `--only` wants, as they are called within their process."""
        found = [(folder, module) for folder in self._watch.folders() for module in self._modules_in(folder)]
        return {(f, m.number or 0): m.title for f, m in found if m.matches(self._options.only)}

    def _announce_events(self, known: int) -> int:
        """Say at once what happened beyond the first `known` events; how many there are now."""
        events = self._log.events()
        new = [(key, event) for key, event in events[known:] if event.output]
        titles = self._titles() if new else {}
        for key, event in new:
            if key in titles:
                self._announce(str(judged(event, titles[key])))
        return len(events)

    def folders(self) -> list[Path]:
        """Those of the processes whose modules have rows."""
        return sorted({folder for folder, _ in self._rows})

    def _pool(self, jobs: int, niceness: int) -> Pool:
        limits = Limits(jobs, self._options.timeout, self._options.memory_limit, niceness)
        return Pool(limits, PRELOAD, " or ".join(self._options.backends))

    def _finished(self) -> list[DumpModule]:
        """The modules that are finished since the last look, of each process in their order."""
        taken = {(one.folder, one.number): one.captures for one in self._watch.take()}
        return [
            _with_ordinals(module, taken[key])
            for folder in dict.fromkeys(folder for folder, _ in taken)
            for module in self._modules_in(folder)
            if (key := (folder, module.number or 0)) in taken and module.matches(self._options.only)
        ]

    def _replay_finished(self, modules: Sequence[DumpModule], pool: Pool) -> None:
        tasks = for_each_backend([task_of(m, self._options) for m in modules], self._missing)
        batch = replay_all(tasks, pool, Silent())
        self._note(pool)
        found: dict[Key, list[ModuleRecord]] = {}
        for task, rows in zip(tasks, batch.rows):
            found.setdefault(_key_of(task), []).extend(rows or [])
        for key, rows in found.items():
            self._keep(key, rows)
        wrong = sum(any(row.verdict in DIFFERING for row in rows) for rows in self._rows.values())
        self._counted(self.judged, wrong)

    def _keep(self, key: Key, rows: list[ModuleRecord]) -> None:
        """Believe rows that were made while the program ran, unless that may be why they are bad."""
        if any(row.verdict in FAILED or row.verdict is Verdict.BAD_INPUT for row in rows):
            return
        self._rows[key] = rows
        for row in rows:
            if row.verdict in DIFFERING:
                self._announce(f"{row.verdict.value}: {row.name} ({row.stage_tested})")
        if all(row.verdict in AGREEING for row in rows):
            self._watch.settle(*key)

    def _modules_in(self, folder: Path) -> Sequence[DumpModule]:
        if folder in self._at_the_end:
            return self._at_the_end[folder]
        try:
            dump = open_dump(folder)
        except DumpError:
            return ()
        return [module for module in dump.modules if not module.directory]

    def _note(self, pool: Pool) -> None:
        self.notes += [note for note in pool.notes if note not in self.notes]


def _with_ordinals(module: DumpModule, ordinals: Mapping[str, int]) -> DumpModule:
    """The module with those of its executions that are to be judged, each with its number."""
    captures = [
        structs.replace(c, ordinal=ordinals[c.source.path])
        for c in module.captures
        if c.source.path in ordinals
    ]
    return replace(module, captures=tuple(captures))


def _size_of(module: DumpModule) -> int:
    """Bytes of its first program, as far as that can be told."""
    try:
        return os.path.getsize(module.stages[0].source.path)
    except (OSError, IndexError):
        return 0


def _key_of(task: Task) -> Key:
    return Path(task.path).parent, task.module.number or 0
