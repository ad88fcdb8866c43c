"""What `open_dump` finds: modules, stages in the order of compilation, captured executions; choosing some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct

from hlotool.errors import UsageError
from hlotool.sources.file_names import DumpName, Format, Kind
from hlotool.sources.locations import Source
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from hlotool.ir.devices import DeviceGrid
    from hlotool.ir.module import Module


class DumpFile(Struct, frozen=True):
    """A file of a dump and what its name (or its content) says.

    Attributes:
        path: relative to the dump, with `/`.
        source: where to read it.
        name: its name taken apart.
    """

    path: str
    source: Source
    name: DumpName

    @property
    def directory(self) -> str:
        """The folder it lies in, relative to the dump; empty for the dump itself."""
        return self.path.rpartition("/")[0]


class Stage(Struct, frozen=True):
    """The program at one point of its compilation.

    Attributes:
        kind: BEFORE_OPTIMIZATIONS, PASS, NAMED, AFTER_OPTIMIZATIONS, FUSION or PLAIN.
        label: as in the file name, such as `simplification.after_algsimp.before_dce`.
        platform: the compiler's target, where the name tells it: `cpu`, `sm_9.0_gpu`.
        sequence: number of a pass stage.
        pipeline: of a pass stage.
        after_pass: the pass that has just run.
        before_pass: the pass that runs next.
        text: the HLO text, if dumped.
        proto: the binary HLO, if dumped. It holds all constants in full.
        mlir: StableHLO, where there is nothing else; jaxlib makes it HLO.
    """

    kind: Kind
    label: str
    platform: str = ""
    sequence: int | None = None
    pipeline: str = ""
    after_pass: str = ""
    before_pass: str = ""
    text: Source | None = None
    proto: Source | None = None
    mlir: Source | None = None

    @property
    def title(self) -> str:
        """What reports call it: its label, or its kind where the file name has none."""
        return self.label or self.kind.value

    @property
    def numbered(self) -> str:
        """Its title with the number in front that the file name gives it."""
        return self.title if self.sequence is None else f"{self.sequence:04d} {self.title}"

    @property
    def source(self) -> Source:
        """What to read: the text where there is one."""
        source = self.text or self.proto or self.mlir
        assert source is not None
        return source

    @property
    def format(self) -> Format:
        """How `source` is written."""
        return Format.TEXT if self.text else Format.PROTO if self.proto else Format.MLIR


class Capture(Struct, frozen=True):
    """Arguments (and perhaps the result) of one execution.

    Attributes:
        kind: SNAPSHOT (with result) or UNOPTIMIZED_SNAPSHOT (arguments per partition).
        format: PROTO or TEXT_PROTO.
        source: where it lies.
        execution: its number in the file's name, None when that does not tell.
        ordinal: which execution of the module it is, from 1; 0 where earlier ones may have gone unnoticed.
    """

    kind: Kind
    format: Format
    source: Source
    execution: int | None = None
    ordinal: int = 0


@dataclass(frozen=True, slots=True)
class DumpModule:
    """One compiled program.

    Attributes:
        number: of `module_NNNN`, None for a plain file.
        name: of the module.
        directory: the folder of its files, relative to the dump; of a plain file its path.
        timestamp: microseconds, when the dump has them.
        stages: in the order of compilation: before optimizations, passes by number, after optimizations.
        others: HLO whose place in that order is unknown: named stages, extracted fusions.
        captures: executions, in order.
        stablehlo: what the frontend handed over, with all constants in full.
        companions: stages that were not asked for, when `open_dump` got one file of a dump directory;
            they serve to fill in elided constants.
        artefacts: other files of the module.
        arguments: path of the .npz beside a file that was asked for by name: what the program is run on.
        devices: that its programs are for, where the user says so and their headers do not.
        takes_opaque: custom calls that cannot be executed get stand-ins.
        generates_elided: seed of values for constants that are elided for good; None: these are refused.
        entry: the function that is run of a StableHLO program, where the user names one.
        has_namesakes: other modules of the dump have the same name.
        change: change list of the compiler, where that of another one made a module of this number and name.
        incomplete: why its stages are no whole compilation; empty where nothing says so.
        unfinished: that the compiler began with it and did not come to an end, and where; empty where that is
            not known.
        programs: of stages that were read already, or made of what was read, by their sources; they are what
            loading gives. They must not be edited.
    """

    number: int | None
    name: str
    directory: str = ""
    timestamp: int | None = None
    stages: tuple[Stage, ...] = ()
    others: tuple[Stage, ...] = ()
    captures: tuple[Capture, ...] = ()
    stablehlo: Source | None = None
    companions: tuple[Stage, ...] = ()
    artefacts: tuple[DumpFile, ...] = ()
    arguments: str = ""
    devices: DeviceGrid | None = None
    takes_opaque: bool = False
    generates_elided: int | None = None
    entry: str = ""
    has_namesakes: bool = False
    change: int | None = None
    incomplete: str = ""
    unfinished: str = ""
    programs: Mapping[str, Module] = field(default_factory=dict, compare=False, hash=False)

    @property
    def title(self) -> str:
        """`folder/module_0002.jit_f`, or the path of a plain file."""
        if self.number is None:
            return self.directory
        stamp = "" if self.timestamp is None else str(self.timestamp)
        change = "" if self.change is None else f"cl_{self.change}"
        name = ".".join(filter(None, [stamp, f"module_{self.number:04d}", self.name, change]))
        return f"{self.directory}/{name}" if self.directory else name

    def matches(self, only: str | None) -> bool:
        """Whether the regular expression `only` matches the title somewhere; None matches all."""
        return only is None or re.search(only, self.title) is not None

    @property
    def before(self) -> Stage | None:
        """The program as the frontend gave it."""
        return next((s for s in self.stages if s.kind is Kind.BEFORE_OPTIMIZATIONS), None)

    @property
    def after(self) -> Stage | None:
        """The program that was compiled to machine code: the last one, where there are several."""
        return next((s for s in reversed(self.stages) if s.kind is Kind.AFTER_OPTIMIZATIONS), None)

    @property
    def passes(self) -> tuple[Stage, ...]:
        """The stages between passes, by number."""
        return tuple(s for s in self.stages if s.kind is Kind.PASS)

    @property
    def pair(self) -> tuple[Stage, Stage] | None:
        """The first and the last stage, whose programs must compute the same; None when there is but one.

        Stages after optimizations for one platform make none: nearly all was done before any of them.
        """
        platforms = {s.platform if s.kind is Kind.AFTER_OPTIMIZATIONS else None for s in self.stages}
        is_late = None not in platforms and len(platforms) == 1
        if self.incomplete or is_late or len(self.stages) < 2:
            return None
        return self.stages[0], self.stages[-1]

    @property
    def unpaired_reason(self) -> str:
        """Why there is no pair, in one line; empty when there is one."""
        if self.pair or self.incomplete:
            return self.incomplete
        if self.unfinished:
            return self.unfinished
        if not self.stages:
            return self._no_stage_reason()
        if self.number is None:
            return "a single module, no other stage to compare it with"
        if self.before:
            return (
                "no *after_optimizations* file: the compilation did not finish, the file is missing, "
                "or --xla_dump_max_hlo_modules cut the dump"
            )
        return "no *before_optimizations* file: it is missing, or the module was made inside the compiler"

    def _no_stage_reason(self) -> str:
        if self.captures:
            return "captured executions only: --xla_dump_hlo_unoptimized_snapshots suppresses the other dumps"
        return "only stages whose place in the compilation is unknown"


class Dump(Struct, frozen=True):
    """All that was found under a path.

    Attributes:
        path: as given.
        modules: in a fixed order: by folder, timestamp, number, name.
        artefacts: files that belong to no module.
        notes: what was passed over and why, one line each.
    """

    path: str
    modules: tuple[DumpModule, ...]
    artefacts: tuple[DumpFile, ...] = ()
    notes: tuple[str, ...] = ()


def modules_matching(dumps: Iterable[Dump], only: str | None) -> list[tuple[Dump, DumpModule]]:
    """Modules, each with the dump that it is of.

    Args:
        dumps: as `open_dump` found them.
        only: regular expression that the title must match somewhere; None for all modules.

    Raises:
        UsageError: no module matches.
    """
    modules = [(dump, module) for dump in dumps for module in dump.modules]
    wanted = [(dump, m) for dump, m in modules if m.matches(only)]
    if not wanted:
        names = ", ".join(m.title for _, m in modules[:5]) + (", …" if len(modules) > 5 else "")
        known = (name for _, m in modules for name in (m.name, m.title))
        meant = did_you_mean(re.sub(r"[\\^$]", "", only or ""), known)
        raise UsageError(f"no module matches --only {only!r}; there are: {names}{meant}")
    return wanted


def stages_matching(stages: Iterable[Stage], patterns: Sequence[str]) -> tuple[Stage, ...]:
    """Stages whose title matches one of the shell patterns."""
    return tuple(s for s in stages if any(fnmatchcase(s.title, pattern) for pattern in patterns))


def first_and_last(module: DumpModule) -> tuple[Stage, ...]:
    """The first and the last stage of a module; the only one where there are no two."""
    available = module.stages or module.others
    return (available[0], available[-1]) if len(available) > 1 else tuple(available)
