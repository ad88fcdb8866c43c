"""Where the time of a compilation goes: passes, constants that they compute, loops that they unroll.

XLA writes a file after each pass that changes something, so the times of these files tell how long passes
took; a copy of a dump keeps them only where it was made so. Instructions are counted by their names, which
are unique in a module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import msgspec

from hlotool.checks.compile_lints import unrolled_loop
from hlotool.checks.inspect_records import (
    AlarmInfo,
    CompileTimeInfo,
    FoldedInfo,
    PassInfo,
    UnrolledInfo,
)
from hlotool.checks.rules import Subject
from hlotool.errors import HlotoolError, InputError
from hlotool.facts.buffers import total_bytes
from hlotool.facts.dataflow import source_of
from hlotool.ir.module import Instruction, Module
from hlotool.sources.file_names import Kind
from hlotool.sources.locations import Source
from hlotool.sources.records import Dump, DumpModule, Stage
from hlotool.sources.stages import read_stage

#: An instruction in a text: its name and its opcode.
_OPCODE = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = (?:\([^\n]*?\)|\S+) ([\w-]+)\(", re.MULTILINE)
#: Bytes from which on a constant that a pass made is listed, and how many of them are.
_LARGE, _MOST = 1024, 8
#: Seconds below which passes that changed nothing are left out.
_SHORT = 0.001
_CODE = "code generation"


@dataclass(frozen=True)
class _Point:
    """A stage, as far as it is counted."""

    stage: Stage

    @cached_property
    def opcodes(self) -> dict[str, str]:
        """The opcode of each instruction; empty where there is no text."""
        return dict(_OPCODE.findall(self.stage.text.read_text())) if self.stage.text else {}

    @cached_property
    def module(self) -> Module:
        """The program; large constants may be elided."""
        return read_stage(self.stage, reads_literals=False)

    def named(self, names: Sequence[str]) -> dict[str, Instruction]:
        """Its instructions of these names."""
        wanted = set(names)
        return {i.name: i for i in self.module.instructions() if i.name in wanted}


@dataclass(slots=True)
class _Sum:
    """What all runs of a pass came to."""

    pipelines: dict[str, None] = field(default_factory=dict)
    runs: int = 0
    seconds: float = 0.0
    added: int = 0
    removed: int = 0


def compile_time_of(owner: DumpModule) -> CompileTimeInfo:
    """Where the time of the compilation of a module went.

    Raises:
        InputError: a stage cannot be read.
    """
    stages = [s for s in owner.stages if s.kind is not Kind.FUSION]
    points = [_Point(stage) for stage in stages]
    times = _times(owner, stages)
    sums: dict[str, _Sum] = {}
    folded: list[FoldedInfo] = []
    unrolled: list[UnrolledInfo] = list(_by_the_frontend(points[0])) if points else []
    for number, (before, after) in enumerate(pairwise(points)):
        name = _name(after.stage)
        one = sums.setdefault(name, _Sum())
        one.pipelines[after.stage.pipeline] = None
        added = after.opcodes.keys() - before.opcodes.keys()
        removed = before.opcodes.keys() - after.opcodes.keys()
        one.runs += bool(added or removed)
        one.added += len(added)
        one.removed += len(removed)
        one.seconds += times[number + 1] - times[number] if times else 0.0
        made = [n for n in added if after.opcodes[n] == "constant"]
        if made and removed:
            folded += _folded(before, after, made, sorted(removed), name)
        loops = [n for n in removed if before.opcodes[n] == "while"]
        if loops and len(added) > len(removed):
            unrolled += _unrolled(before, loops, name, len(added))
    if times and (end := _end(owner)) > times[-1]:
        sums[_CODE] = _Sum(runs=1, seconds=end - times[-1])
        times.append(end)
    passes = [
        PassInfo(
            name=name,
            pipelines=[p for p in one.pipelines if p],
            runs=one.runs,
            seconds=round(one.seconds, 6) if times else None,
            added=one.added,
            removed=one.removed,
        )
        for name, one in sums.items()
        if one.runs or one.seconds >= _SHORT
    ]
    return CompileTimeInfo(
        seconds=round(times[-1] - times[0], 6) if times else None,
        first=len(points[0].opcodes) if points else 0,
        last=len(points[-1].opcodes) if points else 0,
        passes=sorted(passes, key=lambda one: (-(one.seconds or 0.0), -one.added - one.removed)),
        folded=sorted(folded, key=lambda one: -one.bytes)[:_MOST],
        unrolled=unrolled,
        unfinished=owner.unfinished,
    )


def _name(stage: Stage) -> str:
    """The pass that a stage was written after."""
    if stage.kind is Kind.AFTER_OPTIMIZATIONS:
        return "what follows the last pass that left a file"
    return stage.after_pass if stage.after_pass != "pipeline-start" else f"start of {stage.pipeline}"


def _times(owner: DumpModule, stages: Sequence[Stage]) -> list[float]:
    """When each stage was written, in seconds; none where the files do not say so."""
    found = [_written(stage.source) for stage in stages]
    known = [time for time in found if time is not None]
    is_of_copies = len(set(known)) < len(known) or known != sorted(known)
    return [] if len(known) < max(2, len(found)) or is_of_copies else known


def _written(source: Source) -> float | None:
    """When a file was written; None for a member of an archive, whose times are whole seconds."""
    if source.member or source.span is not None or source.item is not None:
        return None
    try:
        return os.stat(source.path).st_mtime_ns * 1e-9
    except OSError:
        return None


def _end(owner: DumpModule) -> float:
    """When the last file of a module was written."""
    return max((_written(file.source) or 0.0 for file in owner.artefacts), default=0.0)


def _folded(
    before: _Point, after: _Point, made: Sequence[str], gone: Sequence[str], by: str
) -> Iterator[FoldedInfo]:
    """Large constants that a pass made, each with what it was computed by: of the same name of operation."""
    constants = {name: i for name, i in after.named(made).items() if total_bytes(i.shape) >= _LARGE}
    if not constants:
        return
    replaced = before.named(gone)
    for name, constant in constants.items():
        like = [
            i
            for i in replaced.values()
            if i.shape == constant.shape and _op_name(i) == _op_name(constant) and i.opcode != "constant"
        ]
        found = like[0] if like else constant
        module = before.module if like else after.module
        yield FoldedInfo(
            constant=name,
            shape=str(constant.shape),
            bytes=total_bytes(constant.shape),
            by=by,
            source=source_of(module, [found]),
        )


def _op_name(i: Instruction) -> str:
    return i.metadata.op_name if i.metadata is not None else ""


def _unrolled(before: _Point, loops: Sequence[str], by: str, added: int) -> Iterator[UnrolledInfo]:
    for loop in before.named(loops).values():
        what = f"a loop became copies of its body: {added} instructions"
        yield UnrolledInfo(by=by, added=added, what=what, source=source_of(before.module, [loop]))


def _by_the_frontend(first: _Point) -> Iterator[UnrolledInfo]:
    for problem in unrolled_loop(Subject(first.module)):
        at = problem.where
        if isinstance(at, Instruction):
            source = source_of(first.module, [at])
            added = int(re.findall(r"\d+", problem.message)[-1])
            yield UnrolledInfo(by="the frontend", added=added, what=problem.message, source=source)


# What XLA says of slow operations (xla/service/slow_operation_alarm.cc).

_TOOK = r"(?:The operation took (?P<took>[\dhms.]+)\s+)?"
_FOLDING = re.compile(
    rf"{_TOOK}Constant folding an instruction is taking > (?P<over>\d+)s"
    r":?\s*(?:\n\s*)*(?P<instruction>%?[\w.-]+ = [^\n]+)?"
)
_COMPILING = re.compile(rf"{_TOOK}(?:\*+\s+)?\[Compiling module (?P<module>\S+?)\] Very slow compile")
#: Of the end of a log, so many bytes are read.
_LOG_BYTES = 64 << 20


def alarms_in(path: str, text: str) -> list[AlarmInfo]:
    """The slow operations that a log tells of; of what was said several times, the last."""
    found: dict[tuple[str, str], AlarmInfo] = {}
    for match in _FOLDING.finditer(text):
        took = _seconds(match["took"] or "")
        instruction = " ".join((match["instruction"] or "").split())
        found["constant folding", instruction.partition(" ")[0]] = AlarmInfo(
            file=path,
            what="constant folding",
            seconds=took or float(match["over"]),
            is_over=bool(took),
            instruction=instruction[:200],
        )
    for match in _COMPILING.finditer(text):
        took = _seconds(match["took"] or "")
        known = found.get(("compilation", match["module"]))
        if took or known is None:
            found["compilation", match["module"]] = AlarmInfo(
                file=path, what="compilation", seconds=took, is_over=bool(took), module=match["module"]
            )
    return list(found.values())


def _seconds(text: str) -> float:
    """A duration as XLA prints it: `1m3.5s`; 0 for none."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 0.0}
    return sum(float(n) * units[u] for n, u in re.findall(r"([\d.]+)(h|ms|m|s)", text))


def alarms_of(dumps: Sequence[Dump], logs: Sequence[str]) -> list[AlarmInfo]:
    """The slow operations of all logs, with the lines of what was folded where a module has it.

    Args:
        dumps: their logs, and modules to look the instructions up in.
        logs: other files.
    """
    sources = [Source(path) for path in logs]
    sources += [f.source for d in dumps for f in d.artefacts if f.path.endswith((".log", ".err", ".txt"))]
    found: list[AlarmInfo] = []
    for source in sources:
        try:
            text = source.read_bytes()[-_LOG_BYTES:].decode("utf-8", "backslashreplace")
        except InputError:
            continue
        found += alarms_in(str(source), text)
    modules = [module for dump in dumps for module in dump.modules]
    return [_located(alarm, modules) for alarm in found]


def _located(alarm: AlarmInfo, modules: Sequence[DumpModule]) -> AlarmInfo:
    """The alarm with the line of what was folded, from the first stage that has it."""
    name = alarm.instruction.partition(" ")[0].lstrip("%")
    if not name:
        return alarm
    for module in modules:
        for stage in module.stages:
            try:
                point = _Point(stage)
                if name not in point.opcodes:
                    continue
                instruction = point.named([name])[name]
                source = source_of(point.module, [instruction])
            except HlotoolError:
                continue
            return msgspec.structs.replace(alarm, module=module.title, source=source)
    return alarm
