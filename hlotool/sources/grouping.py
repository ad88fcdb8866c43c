"""From dump files to modules: which files belong to one compilation, in which order its stages come.

Files of one module lie in one folder and share timestamp, number, name and change list. Captured executions
and artefacts are written without the timestamp, and the StableHLO input lies in a folder of its own, so
these are attached to the module they must belong to; where two modules could claim one, none gets it.

A TPU's compiler replaces a program that has 64-bit or complex values by one that has none
(X64_elimination), and the new one has a number of its own: `module_0000.jit_f.cl_1` has the program before
optimizations and the first passes, `module_0003.jit_f.cl_1` the other passes, counted from 0 again, and
what is compiled. The gap is 2 (libtpu 0.0.11 to 0.0.32) or 3 (0.0.42); 0.0.52 keeps the number.

Two such halves are joined only if they belong together beyond doubt: by folder, time, name and change list;
the second starts in the pipeline where the first ends, if passes are dumped; their entries have the same
parameters and results; and no other half fits. Halves that several fit are no whole compilation, and say
so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from msgspec import Struct, field, structs

from hlotool.errors import InputError
from hlotool.sources.file_names import DumpName, Format, Kind, parse_folder
from hlotool.sources.records import Capture, DumpFile, DumpModule, Stage

_SHAPE = re.compile(r"(\w+)\[([^\]]*)\]")
_SEVERAL = re.compile(r"\bnum_partitions=(?!1\b)")
#: Values that X64_elimination removes.
_WIDE = re.compile(r"\b(?:[su]64|f64|c64|c128)\[")
_ENTRY = "entry_computation_layout={"
_START = "pipeline-start"


@dataclass(frozen=True, eq=False)
class _Half:
    """A module that may be a part of a compilation."""

    module: DumpModule

    @cached_property
    def text(self) -> str:
        """Of its first stage; empty if that cannot be read."""
        try:
            return _text(self.module.stages[0])
        except InputError:
            return ""

    @cached_property
    def signature(self) -> list[tuple[str, str]]:
        """Element types and dimensions of parameters and results."""
        return _SHAPE.findall(_entry(self.text))

    @property
    def number(self) -> int:
        return self.module.number or 0


def joined(modules: Sequence[DumpModule], notes: list[str]) -> list[DumpModule]:
    """The modules, those that are one compilation made one, in the place of the first.

    Args:
        modules: in their order.
        notes: are told of halves that cannot be joined.
    """
    families: defaultdict[tuple[object, ...], list[_Half]] = defaultdict(list)
    for module in modules:
        if module.number is not None and module.stages:
            families[module.directory, module.timestamp, module.name, module.change].append(_Half(module))
    found: dict[DumpModule, DumpModule | None] = {}
    for family in families.values():
        found |= _joined_family(family, notes)
    kept = (found.get(module, module) for module in modules) if found else modules
    return [module for module in kept if module is not None]


def _joined_family(family: Sequence[_Half], notes: list[str]) -> dict[DumpModule, DumpModule | None]:
    """By module what becomes of it; None: it is a part of another one."""
    firsts = [half for half in family if half.module.after is None]
    seconds = [half for half in family if half.module.before is None and half.module.after is not None]
    fitting = {second: {first for first in firsts if _continues(first, second)} for second in seconds}
    found: dict[DumpModule, DumpModule | None] = {}
    while certain := [second for second, possible in fitting.items() if len(possible) == 1]:
        [first] = fitting[certain[0]]
        if sum(possible == {first} for possible in fitting.values()) > 1:
            break
        found |= {first.module: _whole(first.module, certain[0].module), certain[0].module: None}
        del fitting[certain[0]]
        for possible in fitting.values():
            possible.discard(first)
    doubtful: set[_Half] = set()
    for second, possible in fitting.items():
        doubtful |= {second, *possible} if possible else set()
    return found | _in_doubt(sorted(doubtful, key=lambda half: half.number), notes)


def _continues(first: _Half, second: _Half) -> bool:
    """Whether a compilation that began as `first` may have gone on as `second`."""
    if second.number < first.number or any(stage.platform for stage in second.module.stages):
        return False
    last, following = first.module.passes[-1:], second.module.passes[:1]
    repeated = {stage.pipeline for stage in first.module.passes} & {s.pipeline for s in second.module.passes}
    if repeated - {stage.pipeline for stage in last}:
        return False
    # A pipeline begins with its start, unless it began in another module.
    goes_on = bool(repeated) and following[0].pipeline in repeated and following[0].after_pass != _START
    if not (goes_on or _WIDE.search(first.text)):
        return False
    one, other = first.signature, second.signature
    if _SEVERAL.search(first.text.partition("\n")[0]):
        # The partitioner may have divided dimensions in between.
        one, other = ([(kind, str(dims.count(","))) for kind, dims in each] for each in (one, other))
    return bool(one) and one == other


def _whole(first: DumpModule, second: DumpModule) -> DumpModule:
    return replace(
        first,
        stages=(*first.stages, *second.stages),
        others=(*first.others, *second.others),
        captures=(*first.captures, *second.captures),
        stablehlo=first.stablehlo or second.stablehlo,
        artefacts=(*first.artefacts, *second.artefacts),
    )


def _in_doubt(halves: Sequence[_Half], notes: list[str]) -> dict[DumpModule, DumpModule | None]:
    """The halves as they are, with the reason why they are not compared."""
    if not halves:
        return {}
    names = ", ".join(replace(half.module, change=None).title for half in halves)
    notes.append(f"{names}: parts of compilations, and which belong together is not certain")
    why = f"a part of a compilation that changed its number; which of {names} belong together is not certain"
    return {half.module: replace(half.module, incomplete=why) for half in halves}


def _text(stage: Stage) -> str:
    if stage.text is not None:
        return stage.text.read_text()
    from hlotool.ir.printer import print_module
    from hlotool.parser.proto.module import parse_module_proto

    return print_module(parse_module_proto(stage.source.read_bytes(), str(stage.source)))


def _entry(text: str) -> str:
    """What the header says of parameters and results."""
    start = text.find(_ENTRY) + len(_ENTRY)
    if start < len(_ENTRY):
        return ""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start : brace.start()]
    return ""


_ORDERED = (Kind.BEFORE_OPTIMIZATIONS, Kind.PASS, Kind.AFTER_OPTIMIZATIONS)
_LAST_STAGES = ("_before_buffer_assignment", "_after_buffer_assignment", "after_codegen")


class _Key(Struct, frozen=True):
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


class _Group(Struct):
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
        return structs.replace(known, text=new.text)
    if known.proto is None and new.proto is not None:
        return structs.replace(known, proto=new.proto)
    return None
