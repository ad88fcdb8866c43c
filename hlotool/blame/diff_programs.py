"""Structural differences: of two HLO files, or of the modules of two dump directories."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from hlotool.blame.diff_records import (
    ChangeRecord,
    ComputationRecord,
    LineRecord,
    OpcodeRecord,
    ProgramDiffRecord,
)
from hlotool.errors import HlotoolError, UsageError
from hlotool.facts.alignment.align import Alignment, Change, align
from hlotool.facts.alignment.difference import (
    ComputationDifference,
    Difference,
    Line,
    Status,
    count_by_opcode,
    difference,
)
from hlotool.facts.dataflow import source_of
from hlotool.ir.module import Module
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.judge.failures import error_record
from hlotool.sources.elided import elided_constants
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import read_stage
from hlotool.sources.records import Dump, DumpModule, Stage
from hlotool.system.records import SourceRecord
from hlotool.system.user_input import did_you_mean

#: What is compared of a module unless other stages are asked for.
_ENDS = frozenset({Kind.BEFORE_OPTIMIZATIONS, Kind.AFTER_OPTIMIZATIONS})


@dataclass(frozen=True, slots=True)
class StagePair:
    """Two stages to compare.

    Attributes:
        name: of both, or of the pair.
        left: one stage.
        right: the other.
        owners: the modules of the dumps that they belong to.
    """

    name: str
    left: Stage
    right: Stage
    owners: tuple[DumpModule, DumpModule]


@dataclass(frozen=True, slots=True)
class Pairing:
    """What of two dumps is compared with what.

    Attributes:
        pairs: stages.
        only_left: names of modules or stages without a partner.
        only_right: likewise.
    """

    pairs: tuple[StagePair, ...]
    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()


def pair_dumps(left: Dump, right: Dump, patterns: Sequence[str] = ()) -> Pairing:
    """The stages of two dumps that belong together.

    Two single files make one pair, whatever they are called. In directories modules are paired by folder and
    name, those of one name in the order of their numbers; of each module the first and the last stage are
    compared, or those whose labels match a pattern.

    Raises:
        UsageError: nothing belongs together.
    """
    ones, others = _single(left), _single(right)
    if ones is not None and others is not None:
        owners = left.modules[0], right.modules[0]
        return Pairing((StagePair(ones.label or "module", ones, others, owners),))
    pairs: list[StagePair] = []
    lost: tuple[list[str], list[str]] = ([], [])
    first, second = _by_name(left), _by_name(right)
    for name in dict.fromkeys([*first, *second]):
        mine, theirs = first.get(name, []), second.get(name, [])
        for one, other in zip(mine, theirs):
            _pair_stages(one, other, patterns, pairs, lost)
        lost[0].extend(module.title for module in mine[len(theirs) :])
        lost[1].extend(module.title for module in theirs[len(mine) :])
    if not pairs:
        labels = [s.label for d in (left, right) for m in d.modules for s in (*m.stages, *m.others)]
        meant = next(filter(None, (did_you_mean(pattern, labels) for pattern in patterns)), "")
        raise UsageError(f"{left.path} and {right.path} have no stage of a module in common{meant}")
    return Pairing(tuple(pairs), tuple(lost[0]), tuple(lost[1]))


def _single(dump: Dump) -> Stage | None:
    """The only stage of a dump that is one file."""
    stages = [stage for module in dump.modules for stage in (*module.stages, *module.others)]
    return stages[0] if len(stages) == len(dump.modules) == 1 else None


def _by_name(dump: Dump) -> dict[tuple[str, str], list[DumpModule]]:
    found: dict[tuple[str, str], list[DumpModule]] = {}
    for module in dump.modules:
        folder = "" if module.number is None else module.directory
        found.setdefault((folder, module.name), []).append(module)
    return found


def _pair_stages(
    one: DumpModule,
    other: DumpModule,
    patterns: Sequence[str],
    pairs: list[StagePair],
    lost: tuple[list[str], list[str]],
) -> None:
    first, second = _chosen(one, patterns), _chosen(other, patterns)
    for key in dict.fromkeys([*first, *second]):
        if key in first and key in second:
            pairs.append(StagePair(f"{one.title} {key}", first[key], second[key], (one, other)))
        else:
            lost[key in second].append(f"{(other if key in second else one).title} {key}")


def _chosen(module: DumpModule, patterns: Sequence[str]) -> dict[str, Stage]:
    """Stages by what pairs them: their label, numbered where a pass ran again; or the two ends."""
    known = [*module.stages, *module.others]
    if not patterns:
        ends = {stage.kind.value: stage for stage in module.stages if stage.kind in _ENDS}
        if ends:
            return ends
    found: dict[str, Stage] = {}
    counts: Counter[str] = Counter()
    for stage in known:
        if not patterns or any(fnmatchcase(stage.label, pattern) for pattern in patterns):
            label = stage.title
            counts[label] += 1
            found[label if counts[label] == 1 else f"{label} #{counts[label]}"] = stage
    return found


def diff_stages(pair: StagePair, context: int) -> ProgramDiffRecord:
    """The difference of two stages; an error becomes part of the record.

    Args:
        pair: what to compare.
        context: equal instructions shown around what differs.
    """
    began = time.perf_counter()
    try:
        record = diff_modules(pair.name, read_stage(pair.left), read_stage(pair.right), context)
    except HlotoolError as error:
        record = ProgramDiffRecord(
            name=pair.name,
            left=str(pair.left.source),
            right=str(pair.right.source),
            error=error_record(error),
        )
    return msgspec.structs.replace(record, seconds=time.perf_counter() - began)


def diff_modules(name: str, left: Module, right: Module, context: int = 3) -> ProgramDiffRecord:
    """The difference of two programs.

    Args:
        name: of the pair.
        left: one program.
        right: the other.
        context: equal instructions shown around what differs.
    """
    alignment = align(left, right)
    found = difference(alignment)
    lines = list(found.lines)
    statuses = Counter(line.status for line in lines)
    return ProgramDiffRecord(
        name=name,
        left=left.path or "left",
        right=right.path or "right",
        is_same=found.is_same,
        left_instructions=len(alignment.left.graph.home),
        right_instructions=len(alignment.right.graph.home),
        matched=len(alignment.matching.left_of),
        renamed=sum(line.renamed for line in lines),
        moved=statuses[Status.MOVED],
        reordered=sum(line.reordered for line in lines),
        changed=statuses[Status.CHANGED],
        only_left=statuses[Status.ONLY_LEFT],
        only_right=statuses[Status.ONLY_RIGHT],
        header=[_change(change) for change in found.header],
        computations=_Writer(alignment).computations(found, context),
        opcodes=_opcodes(lines),
        notes=_notes(left, right),
    )


def _notes(left: Module, right: Module) -> list[str]:
    notes = [f"{module.path}: {module.cut}" for module in (left, right) if module.cut]
    elided = max(len(elided_constants(left)), len(elided_constants(right)))
    return [*notes, f"{elided} constants are elided: their values were not compared"] if elided else notes


def _change(change: Change) -> ChangeRecord:
    return ChangeRecord(what=change.what, left=change.left, right=change.right)


def _opcodes(lines: Sequence[Line]) -> list[OpcodeRecord]:
    counts = count_by_opcode(lines)
    return [
        OpcodeRecord(
            opcode=opcode,
            same=counts[opcode][Status.SAME],
            moved=counts[opcode][Status.MOVED],
            changed=counts[opcode][Status.CHANGED],
            only_left=counts[opcode][Status.ONLY_LEFT],
            only_right=counts[opcode][Status.ONLY_RIGHT],
        )
        for opcode in sorted(counts)
    ]


class _Writer:
    """Turns differing lines into records."""

    def __init__(self, alignment: Alignment) -> None:
        self._left, self._right = alignment.left.graph, alignment.right.graph

    def computations(self, found: Difference, context: int) -> list[ComputationRecord]:
        """The computations in which something differs."""
        return [
            ComputationRecord(
                left=computation.left.name if computation.left else "",
                right=computation.right.name if computation.right else "",
                is_entry=self._right.module.entry is computation.right,
                hunks=[[self._line(line) for line in hunk] for hunk in hunks(computation, context)],
            )
            for computation in found.computations
            if not computation.is_same
        ]

    def _line(self, line: Line) -> LineRecord:
        one, other = line.left, line.right
        return LineRecord(
            status=line.status.value,
            left=print_instruction(one, SHORT) if one else "",
            right=print_instruction(other, SHORT) if other else "",
            left_line=one.line if one else 0,
            right_line=other.line if other else 0,
            left_computation=self._left.home[one].name if one else "",
            right_computation=self._right.home[other].name if other else "",
            changes=[_change(change) for change in line.changes],
            renamed=line.renamed,
            reordered=line.reordered,
            source=None if line.status is Status.SAME else self._source(line),
        )

    def _source(self, line: Line) -> SourceRecord | None:
        if line.right is not None:
            return source_of(self._right.module, [line.right])
        return source_of(self._left.module, [line.left]) if line.left is not None else None


def hunks(computation: ComputationDifference, context: int) -> Iterator[Sequence[Line]]:
    """What differs in a computation, with up to `context` equal instructions before and after."""
    lines = computation.lines
    wanted = [i for i, line in enumerate(lines) if line.status is not Status.SAME or line.reordered]
    start = end = -1
    for i in wanted:
        if start >= 0 and i - context > end:
            yield lines[start:end]
            start = -1
        if start < 0:
            start = max(0, i - context)
        end = min(len(lines), i + context + 1)
    if start >= 0:
        yield lines[start:end]
