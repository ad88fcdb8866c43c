"""A batch before and while it runs: what is known of its tasks, which tasks run, by what, how long yet.

What is left is told from the sizes of what is done and of what is left.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from hlotool.errors import StoreError
from hlotool.judge.verdicts import FAILED, OF_THE_MACHINE
from hlotool.runs.fleet.contents import Contents
from hlotool.runs.fleet.identity import Identity, identity_of
from hlotool.runs.fleet.template import Template, filled, template_of, told_by
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task, inputs_file
from hlotool.system.cache import Journal, Store
from hlotool.system.executor import Executor, Limits
from hlotool.system.files import digest, write_over
from hlotool.system.pool import Pool


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept under a key.

    Attributes:
        program: a key that the same programs under other names have, too.
        template: rows; None where they are those kept under `program`.
        told: what stands in the texts of the one module that has the key, for the slots of the template.
        fits: id of that template.
        is_shared: the template holds for all that have the key `program`.
        made: seconds since the epoch when an earlier command found the rows; 0: it was this one, or the one
            that was interrupted.
    """

    program: str
    template: Template | None = None
    told: list[str] | None = None
    fits: str = ""
    is_shared: bool = False
    made: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a task that need not be run.

    Attributes:
        rows: of the task.
        program: a key that its twins have, too.
        made: see `Entry`.
    """

    rows: list[ModuleRecord]
    program: str
    made: int = 0


@dataclass(slots=True)
class Known:
    """Rows by the identity of tasks.

    Attributes:
        journal: of the command; None: nothing is kept for when it is interrupted.
        store: of verdicts; None: nothing is kept for later commands.
        contents: of the files of tasks.
    """

    journal: Journal | None = None
    store: Store | None = None
    contents: Contents = field(default_factory=Contents)
    _entries: dict[str, Entry] = field(default_factory=dict)

    def recall(self) -> None:
        """Take what the journal has of an interrupted command."""
        for key, value in self.journal.read().items() if self.journal else ():
            if (entry := _entry(value)) is not None:
                self._keep(key, msgspec.structs.replace(entry, made=0))

    def answer(self, task: Task, identity: Identity) -> Answer | None:
        """The rows of a task, where they are known; its program is not looked at if its bytes are."""
        if not identity.exact:
            return None
        entry = self._found(identity.exact, identity.lasts)
        template = self._template(entry, identity.lasts) if entry is not None else None
        if template is None and identity.shared and (entry := self._of_twin(identity)) is not None:
            template = self._template(entry, identity.lasts)
        if entry is None or template is None:
            return None
        try:
            rows = filled(template, entry.told or [], task.module.title, identity.paths)
        except (ValueError, IndexError, msgspec.DecodeError):
            return None  # of another form: it is made anew
        own = [_with_own_file(row, task) for row in rows]
        complete = [row for row in own if row is not None]
        return Answer(complete, entry.program, entry.made) if len(complete) == len(own) else None

    def add(
        self, task: Task, identity: Identity, rows: Sequence[ModuleRecord], is_as_here: bool = True
    ) -> None:
        """Keep the rows of a task that was run; for later commands those that this machine would find."""
        if any(row.error is not None and row.error.kind == StoreError.__name__ for row in rows):
            return  # the store may answer the next time
        if not identity.exact or (entry := _entry_of(task, identity, rows)) is None:
            return
        if entry.is_shared and entry.program in self._entries:
            entry = msgspec.structs.replace(entry, is_shared=False)  # what the first one said stays
        self._keep(identity.exact, entry)
        if any(row.unfinished for row in rows):
            return  # a later command may have time for the rest
        verdicts = {row.verdict for row in rows}
        if self.journal is not None and not verdicts & OF_THE_MACHINE:
            self.journal.add(identity.exact, msgspec.to_builtins(entry))
        # A saved set of inputs is a file that others remove; a process that died may live the next time.
        lasts = identity.lasts and is_as_here
        # Whether programs ran as they are, and with which sizes if not, may depend on the free memory.
        settled = all(row.in_place is None and (row.scaled is None or row.scaled.settled) for row in rows)
        if lasts and settled and not verdicts & FAILED and not any(_file(row) for row in rows):
            self._store(identity.exact, entry)

    def close(self) -> None:
        """Nothing more is added."""
        if self.journal is not None:
            self.journal.close()
        self.contents.close()
        if self.store is not None:
            self.store.close()

    @property
    def is_kept(self) -> bool:
        """Whether rows outlast the batch."""
        return self.journal is not None or self.store is not None

    @property
    def problems(self) -> list[str]:
        """Why something could not be kept."""
        return [kept.problem for kept in (self.journal, self.store) if kept is not None and kept.problem]

    def _keep(self, key: str, entry: Entry) -> None:
        self._entries[key] = entry
        if entry.is_shared:
            self._entries.setdefault(entry.program, entry)

    def _found(self, key: str, lasts: bool) -> Entry | None:
        """What is kept under a key."""
        if key not in self._entries:
            value = self.store.get(key) if self.store is not None and lasts else None
            if (entry := _entry(value)) is None:
                return None
            self._entries[key] = entry
        return self._entries[key]

    def _template(self, entry: Entry, lasts: bool) -> Template | None:
        if entry.template is not None:
            return entry.template
        found = self._found(entry.program, lasts)
        if found is None or not found.is_shared or found.template is None:
            return None
        return found.template if found.template.id == entry.fits else None

    def _of_twin(self, identity: Identity) -> Entry | None:
        """What twins under other names say of a task, in its own words."""
        twin = self._found(identity.shared, identity.lasts)
        if twin is None or twin.template is None or not twin.is_shared:
            return None
        if (told := told_by(twin.template, identity.forms)) is None:
            return None
        entry = Entry(identity.shared, None, told, twin.template.id, made=twin.made)
        self._entries[identity.exact] = entry
        if identity.lasts:
            self._store(identity.exact, entry)
        return entry

    def _store(self, key: str, entry: Entry) -> None:
        if self.store is None:
            return
        made = entry.made or int(time.time())
        if entry.is_shared:
            of_all = Entry(entry.program, entry.template, is_shared=True, made=made)
            self.store.put(entry.program, msgspec.to_builtins(of_all))
            entry = Entry(entry.program, None, entry.told, entry.fits)
        entry = msgspec.structs.replace(entry, made=made)
        self.store.put(key, msgspec.to_builtins(entry))


def _entry_of(task: Task, identity: Identity, rows: Sequence[ModuleRecord]) -> Entry | None:
    """Rows as an entry; None where they would not come back from it as they are."""
    title, paths = task.module.title, identity.paths
    unnamed = task.paths - set(paths)
    program = identity.shared or identity.exact
    for forms in (identity.forms, ()) if identity.shared else ((),):
        template = template_of(rows, title, paths, forms)
        if template is None or (told := told_by(template, forms)) is None:
            continue
        names_others = any(path in piece for path in unnamed for piece in template.pieces)
        if not names_others and filled(template, told, title, paths) == list(rows):
            return Entry(program, template, told, template.id, is_shared=bool(forms))
    return None


def _entry(value: Any) -> Entry | None:
    """What a journal or a store has kept; None for what is no entry."""
    try:
        return None if value is None else msgspec.convert(value, Entry)
    except msgspec.ValidationError:
        return None


def _file(row: ModuleRecord) -> str:
    return row.inputs.file if row.inputs is not None else ""


def _with_own_file(row: ModuleRecord, task: Task) -> ModuleRecord | None:
    """The row, with a file of its own of the inputs that show a difference; None where these are gone."""
    if row.inputs is None or not row.inputs.file:
        return row
    source, own = Path(row.inputs.file), inputs_file(task.module.title)
    try:
        if source != own:
            own.parent.mkdir(parents=True, exist_ok=True)
            write_over(own, [source.read_bytes()])
        return (
            msgspec.structs.replace(row, inputs=msgspec.structs.replace(row.inputs, file=str(own)))
            if own.is_file()
            else None
        )
    except OSError:
        return None


def executor_of(
    cluster: str | None, limits: Limits, preload: Iterable[str] = (), backend: str = "worker"
) -> AbstractContextManager[Executor]:
    """The workers of a cluster where one is named, else processes of this machine; see `Pool`."""
    if cluster is None:
        return Pool(limits, preload, backend)
    from hlotool.runs.fleet.cluster import Cluster

    return Cluster(cluster, limits, preload, backend)


@dataclass(frozen=True, slots=True)
class Choice:
    """Tasks to run.

    Attributes:
        positions: among all tasks, rising.
        notes: what is left out, in words.
    """

    positions: list[int]
    notes: list[str]


def shard_of(tasks: Sequence[Task], number: int, count: int, contents: Contents | None = None) -> Choice:
    """The tasks of shard `number` of `count`, from 1: each task is in one, and the same programs together.

    It depends on the programs alone: all machines agree on it, whatever they call the files.

    Args:
        tasks: all of them.
        number: of the shard.
        count: of shards.
        contents: of the files of tasks.
    """
    chosen = [
        position
        for position, task in enumerate(tasks)
        if int(_program(task, contents)[:12], 16) % count == number - 1
    ]
    return Choice(chosen, [])


def sample_of(tasks: Sequence[Task], size: int, seed: int) -> Choice:
    """At most `size` tasks, spread over functions and, within one, over the sizes of programs.

    Args:
        tasks: all of them.
        size: how many are wanted.
        seed: decides which of those that are alike.
    """
    if size >= len(tasks):
        return Choice(list(range(len(tasks))), [])
    rng = random.Random(seed)
    functions: dict[str, list[int]] = defaultdict(list)
    for position, task in enumerate(tasks):
        functions[task.module.name].append(position)
    queues = []
    for name in sorted(functions):
        positions = sorted(functions[name], key=lambda position: (_size(tasks[position]), position))
        queues.append(_spread(positions, rng))
    rng.shuffle(queues)
    chosen: list[int] = []
    while len(chosen) < size:
        for queue in queues:
            if queue and len(chosen) < size:
                chosen.append(queue.pop())
    left = len(tasks) - size
    missed = len({task.module.name for task in tasks} - {tasks[position].module.name for position in chosen})
    functions_missed = f", among them {missed} functions as a whole" if missed else ""
    note = (
        f"a sample of {size} of {len(tasks)} modules (seed {seed}): the other {left} were not run"
        f"{functions_missed}"
    )
    return Choice(sorted(chosen), [note])


def _spread(positions: list[int], rng: random.Random) -> list[int]:
    """Positions in an order of which every end has sizes from everywhere; `positions` are sorted by size."""
    ordered: list[int] = []
    pieces = [positions]
    while pieces:
        larger = []
        for piece in pieces:
            middle = rng.randrange(len(piece))
            ordered.append(piece[middle])
            larger += [part for part in (piece[:middle], piece[middle + 1 :]) if part]
        pieces = larger
    return ordered[::-1]


def _program(task: Task, contents: Contents | None) -> str:
    """What cannot be read is told by its name."""
    identity = identity_of(task, contents)
    return identity.program if identity.exact else digest(task.module.title)


def _size(task: Task) -> int:
    try:
        return os.stat(task.path).st_size
    except OSError:
        return 0


class Remaining:
    """An estimate that does not grow before it has passed: until then it is not said that it takes longer.

    A module takes as long as its text is long, as far as is known before it runs. Until a tenth of the text
    is done, or half a minute has passed, nothing is said.

    Args:
        tasks: of the batch.
        clock: seconds, from any origin.
    """

    _EARLY_SHARE = 0.1
    _EARLY_SECONDS = 30.0

    def __init__(self, tasks: Sequence[Task], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._all = sum(map(_remaining_size, tasks))
        self._done = 0
        self._end: float | None = None

    def finished(self, task: Task) -> None:
        """A task is over."""
        self._done += _remaining_size(task)
        now = self._clock()
        share = self._done / self._all
        if share < self._EARLY_SHARE and now - self._began < self._EARLY_SECONDS:
            return
        end = now + (now - self._began) * (1 - share) / share
        is_passed = self._end is not None and self._end <= now
        self._end = end if self._end is None or is_passed else min(self._end, end)

    @property
    def seconds(self) -> float | None:
        """Seconds that are left; None as long as nothing can be said, and where the estimate has passed."""
        left = None if self._end is None else self._end - self._clock()
        return left if left is None or left > 0 else None


def _remaining_size(task: Task) -> int:
    """What a task weighs: bytes of its text, and something that every task takes."""
    try:
        return 1000 + os.stat(task.path).st_size
    except (OSError, ValueError):  # a member of an archive, a remote object
        return 10_000
