"""From dump files to modules: which files belong to one compilation, and in which order its stages come.

Files of one module lie in one folder and share timestamp, number, name and change list. Captured executions
and artefacts are written without the timestamp, and the StableHLO input lies in a folder of its own, so these
are attached to the module they must belong to; where two modules could claim one, none gets it. A TPU's
compiler may give a module another number on the way (`renumbered.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hlotool.dump.names import DumpName, Format, Kind, parse_folder
from hlotool.dump.records import Capture, DumpFile, DumpModule, Stage
from hlotool.dump.renumbered import joined

_ORDERED = (Kind.BEFORE_OPTIMIZATIONS, Kind.PASS, Kind.AFTER_OPTIMIZATIONS)
_LAST_STAGES = ("_before_buffer_assignment", "_after_buffer_assignment", "after_codegen")


@dataclass(frozen=True, slots=True)
class _Key:
    directory: str
    timestamp: int | None
    number: int | None
    name: str
    change: int | None = None

    def sort_key(self) -> tuple[object, ...]:
        number = -1 if self.number is None else self.number
        return tuple(self.directory.split("/")), self.timestamp or 0, number, self.name, self.change or 0

    @classmethod
    def of(cls, file: DumpFile) -> _Key:
        """A plain file is a module of its own; its path tells it from others of the same name."""
        name = file.name
        if name.module_number is None:
            return cls(file.path, name.timestamp, None, name.module_name)
        return cls(file.directory, name.timestamp, name.module_number, name.module_name, name.change)


@dataclass(slots=True)
class _Group:
    """The files of one module, so far."""

    key: _Key
    stages: dict[tuple[Kind, str], Stage] = field(default_factory=dict)
    captures: list[Capture] = field(default_factory=list)
    artefacts: list[DumpFile] = field(default_factory=list)
    stablehlo: list[DumpFile] = field(default_factory=list)

    def module(self) -> DumpModule:
        ordered = [s for s in self.stages.values() if s.kind in _ORDERED or self.key.number is None]
        others = [s for s in self.stages.values() if s not in ordered]
        return DumpModule(
            self.key.number,
            self.key.name,
            self.key.directory,
            self.key.timestamp,
            tuple(sorted(ordered, key=_stage_order)),
            tuple(sorted(others, key=lambda stage: stage.label)),
            tuple(sorted(self.captures, key=lambda c: (c.execution or 0, str(c.source)))),
            self.stablehlo[0].source if len(self.stablehlo) == 1 else None,
            artefacts=tuple(self.artefacts),
            change=self.key.change,
        )


def _stage_order(stage: Stage) -> tuple[int, int, str]:
    kind = _ORDERED.index(stage.kind) if stage.kind in _ORDERED else len(_ORDERED)
    late = 1 + max((i for i, word in enumerate(_LAST_STAGES) if stage.label.endswith(word)), default=-1)
    return kind, late if stage.sequence is None else stage.sequence, stage.label


def group(files: Iterable[DumpFile], notes: list[str]) -> tuple[list[DumpModule], list[DumpFile]]:
    """Modules in their fixed order, and the files that belong to none; `notes` gets what was passed over."""
    groups = _Groups(notes)
    later: list[DumpFile] = []
    for file in files:
        if file.name.kind in (Kind.SNAPSHOT, Kind.UNOPTIMIZED_SNAPSHOT, Kind.STABLEHLO, Kind.ARTEFACT):
            later.append(file)
        else:
            groups.add_stage(file)
    leftovers = [file for file in later if not groups.attach(file)]
    groups.settle_stablehlo()
    return groups.modules(), leftovers


class _Groups:
    """The modules found so far."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._groups: dict[_Key, _Group] = {}
        self._by_number: defaultdict[int | None, list[_Group]] = defaultdict(list)

    def modules(self) -> list[DumpModule]:
        ordered = sorted(self._groups, key=_Key.sort_key)
        found = joined([self._groups[key].module() for key in ordered], self._notes)
        names = Counter(module.name for module in found)
        titles = Counter(replace(module, change=None).title for module in found)
        return [
            replace(
                module,
                has_namesakes=names[module.name] > 1,
                change=module.change if titles[replace(module, change=None).title] > 1 else None,
            )
            for module in found
        ]

    def _group(self, key: _Key) -> _Group:
        if key not in self._groups:
            self._groups[key] = _Group(key)
            self._by_number[key.number].append(self._groups[key])
        return self._groups[key]

    def add_stage(self, file: DumpFile) -> None:
        name, group = file.name, self._group(_Key.of(file))
        if name.module_number is None:
            group.stages[name.kind, ""] = _stage(file)
            return
        slot = (name.kind, f"{name.sequence}.{name.label}")
        known = group.stages.get(slot)
        merged = _merge(known, _stage(file)) if known else _stage(file)
        if merged is None:
            self._notes.append(f"{file.path}: the same stage is there in another file; not used")
            return
        group.stages[slot] = merged

    def attach(self, file: DumpFile) -> bool:
        """Give `file` to its module; False when it has none."""
        if file.name.kind is Kind.ARTEFACT:
            return self._attach_artefact(file)
        if file.name.kind is Kind.STABLEHLO:
            return self._attach_stablehlo(file)
        found = self._candidates(file.directory, file.name)
        owner = found[0] if len(found) == 1 else self._group(_Key.of(file))
        owner.captures.append(Capture(file.name.kind, file.name.format, file.source, file.name.execution))
        return True

    def _attach_artefact(self, file: DumpFile) -> bool:
        folder, parent = parse_folder(file.directory.rpartition("/")[2]), file.directory.rpartition("/")[0]
        found = self._candidates(file.directory, file.name) or self._candidates(parent, folder)
        if len(found) == 1:
            found[0].artefacts.append(file)
        return len(found) == 1

    def _candidates(self, directory: str, name: DumpName) -> list[_Group]:
        """Modules of `directory` that a file called `name` may belong to: the longest fitting name wins."""
        rest = name.module_name or name.rest
        fitting = [
            group
            for group in self._by_number[name.module_number]
            if group.key.directory == directory
            and f"{rest}.".startswith(f"{group.key.name}.")
            and name.timestamp in (None, group.key.timestamp)
            and name.change in (None, group.key.change)
        ]
        longest = max((len(g.key.name) for g in fitting), default=0)
        return [g for g in fitting if len(g.key.name) == longest]

    def _attach_stablehlo(self, file: DumpFile) -> bool:
        """For the module that the file's folder names, in or below the folder around it; never one itself."""
        above, _, folder = file.directory.rpartition("/")
        name = parse_folder(folder)
        prefix = f"{above}/" if above else ""
        is_numbered = name.module_number is not None
        if not (is_numbered or name.module_name):
            return False
        found = [
            group
            for group in (self._by_number[name.module_number] if is_numbered else self._groups.values())
            if group.key.number is not None
            and group.key.name == name.module_name
            and name.change in (None, group.key.change)
            and f"{group.key.directory}/".startswith(prefix)
        ]
        if not is_numbered:
            # A time is no number: of several modules of that name it does not tell which one began with it.
            began = [g for g in found if any(kind is Kind.BEFORE_OPTIMIZATIONS for kind, _ in g.stages)]
            found = began if len(began) == 1 else []
        for group in found:
            group.stablehlo.append(file)
        return bool(found)

    def settle_stablehlo(self) -> None:
        """Keep only what is certain: the nearest folder wins, and one input cannot serve two compilations."""
        for group in self._groups.values():
            nearest = max((file.path.count("/") for file in group.stablehlo), default=0)
            group.stablehlo = [file for file in group.stablehlo if file.path.count("/") == nearest]
        claims = Counter(file.path for group in self._groups.values() for file in group.stablehlo)
        for group in self._groups.values():
            for file in group.stablehlo:
                if claims[file.path] > 1:
                    self._notes.append(f"{file.path}: may belong to several modules; not used")
                    group.stablehlo = []


def _stage(file: DumpFile) -> Stage:
    name, form = file.name, file.name.format
    return Stage(
        name.kind,
        name.label,
        name.platform,
        name.sequence,
        name.pipeline,
        name.after_pass,
        name.before_pass,
        text=file.source if form not in (Format.PROTO, Format.MLIR) else None,
        proto=file.source if form is Format.PROTO else None,
        mlir=file.source if form is Format.MLIR else None,
    )


def _merge(known: Stage, new: Stage) -> Stage | None:
    """One stage dumped in two formats; None when `new` brings nothing new."""
    if known.text is None and new.text is not None:
        return replace(known, text=new.text)
    if known.proto is None and new.proto is not None:
        return replace(known, proto=new.proto)
    return None
