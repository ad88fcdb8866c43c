"""Inspects the stages of one module. Runs in a worker process, prints nothing, returns plain records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec

from hlotool.check.facts import digests, function_of
from hlotool.check.findings import FailedFile
from hlotool.dump.loading import captured_program, load_stage, read_execution, read_stage
from hlotool.dump.names import Kind
from hlotool.dump.records import Capture, DumpModule, Stage
from hlotool.errors import HlotoolError, Location, Unsupported
from hlotool.findings.errors import error_record
from hlotool.inspect.kernel_records import KernelsInfo
from hlotool.inspect.records import ModuleInfo, StageInfo
from hlotool.inspect.stage import stage_info
from hlotool.ir.module import Module
from hlotool.workers.collector import collector_off
from hlotool.workers.plain import encoded

#: What XLA reports about its allocations, and the line of each memory space in it.
USAGE_REPORT = "memory-usage-report.txt"
_TOTAL = re.compile(r"^Total bytes: (\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class InspectTask:
    """The stages of one module to look at.

    Attributes:
        dump: path as given.
        module: of the dump.
        stages: those to look at, in the order of compilation.
        architecture: of the GPUs that the last of them is compiled for; empty for no kernels.
        is_alone: no other module is inspected that its program could be told from.
    """

    dump: str
    module: DumpModule
    stages: tuple[Stage, ...]
    architecture: str = ""
    is_alone: bool = False


@dataclass(frozen=True, slots=True)
class _Program:
    """A program to look at.

    Attributes:
        label: of its stage, or what it was captured with.
        file: where it stands.
        read: reads it; constants may be elided.
        complete: reads it with all constants, or raises.
        allocated: bytes that XLA allocated for it, where that is known.
    """

    label: str
    file: str
    read: Callable[[], Module]
    complete: Callable[[], Module]
    allocated: int | None = None


def inspect_module(task: InspectTask) -> ModuleInfo:
    """What each stage holds; one that cannot be read costs itself only."""
    owner = task.module
    frontend, function, _ = function_of(owner.name)
    program = structure = ""
    stages: list[StageInfo] = []
    failures: list[FailedFile] = []
    programs = list(_programs(task))
    for number, one in enumerate(programs):
        try:
            with collector_off():
                module = one.read()
                stages.append(_countable(stage_info(module, one.label, one.file, one.allocated)))
                if number == 0:
                    frontend, function, _ = function_of(module.name)
                    if not task.is_alone:
                        structure, program = digests(list(module.instructions()))
        except HlotoolError as error:
            failures.append(FailedFile(file=one.file, module=owner.title, error=error_record(error)))
    return ModuleInfo(
        dump=task.dump,
        name=owner.title,
        function=function,
        frontend=frontend,
        program=program,
        structure=structure,
        labels=[stage.title for stage in (*owner.stages, *owner.others)],
        passes=len(owner.passes),
        captures=len(owner.captures),
        stages=stages,
        failures=failures,
        kernels=_kernels(programs[-1], task.architecture) if task.architecture and stages else None,
    )


def _countable(info: StageInfo) -> StageInfo:
    """What a stage holds, where 64 bits are enough for it.

    Raises:
        Unsupported: they are not; XLA counts with 64 bits, too.
    """
    try:
        encoded(info, msgspec.msgpack.encode)
    except OverflowError:
        why = "its elements, bytes or operations are more than 64 bits can count"
        raise Unsupported(why, location=Location(info.file)) from None
    return info


def _programs(task: InspectTask) -> Iterator[_Program]:
    """The stages; of a module that has none the program inside of its first captured execution."""
    owner = task.module
    for stage in task.stages:
        yield _Program(
            stage.title,
            str(stage.source),
            partial(read_stage, stage, reads_literals=False),
            partial(load_stage, owner, stage, may_compile=False),
            _allocated(owner) if stage.kind is Kind.AFTER_OPTIMIZATIONS else None,
        )
    if not owner.stages and not owner.others:
        for capture in owner.captures[:1]:
            complete = partial(captured_program, capture)
            yield _Program(capture.kind.value, str(capture.source), partial(_captured, capture), complete)


def _captured(capture: Capture) -> Module:
    """The program inside a captured execution; constants may be elided."""
    return read_execution(capture).module


def _kernels(program: _Program, architecture: str) -> KernelsInfo:
    # The generator is not needed for anything else.
    from hlotool.inspect.kernels import kernels_of

    try:
        module = program.complete()
    except HlotoolError as error:
        return KernelsInfo(
            label=program.label, file=program.file, architecture=architecture, error=error_record(error)
        )
    return kernels_of(module, program.label, program.file, architecture)


def _allocated(owner: DumpModule) -> int | None:
    """The sum over all memory spaces of XLA's own report, where the dump has just one."""
    reports = [file for file in owner.artefacts if file.name.text.endswith(USAGE_REPORT)]
    totals = _TOTAL.findall(reports[0].source.read_text()) if len(reports) == 1 else []
    return sum(map(int, totals)) if totals else None
