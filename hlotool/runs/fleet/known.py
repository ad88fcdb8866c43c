"""What is known of the tasks of a batch: from twins in it, from an interrupted command, from earlier ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from hlotool.errors import StoreError
from hlotool.judge.verdicts import FAILED, OF_THE_MACHINE
from hlotool.runs.fleet.contents import Contents
from hlotool.runs.fleet.identity import Identity
from hlotool.runs.fleet.template import Template, filled, template_of, told_by
from hlotool.runs.leaves import inputs_file
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.system.cache import Journal, Store
from hlotool.system.files import write_over


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
