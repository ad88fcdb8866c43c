"""Inspects the stages of one module. Runs in a worker process, prints nothing, returns plain records."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlotool.check.facts import function_of, program_facts
from hlotool.check.findings import FailedFile
from hlotool.dump.loading import load_stage, read_stage
from hlotool.dump.names import Kind
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import HlotoolError
from hlotool.inspect.kernel_records import KernelsInfo
from hlotool.inspect.records import ModuleInfo, StageInfo
from hlotool.inspect.stage import stage_info
from hlotool.ir.module import Module
from hlotool.replay.errors import error_record

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
    """

    dump: str
    module: DumpModule
    stages: tuple[Stage, ...]
    architecture: str = ""


def inspect_module(task: InspectTask) -> ModuleInfo:
    """What each stage holds; one that cannot be read costs itself only."""
    owner = task.module
    frontend, function, _ = function_of(owner.name)
    program = structure = ""
    stages: list[StageInfo] = []
    failures: list[FailedFile] = []
    for number, stage in enumerate(task.stages):
        try:
            module = read_stage(stage)
            stages.append(_stage_info(module, owner, stage))
        except HlotoolError as error:
            failures.append(failed_stage(owner, stage, error))
            continue
        if number == 0:
            facts = program_facts(module, owner.title, str(stage.source))
            frontend, function = facts.frontend, facts.function
            program, structure = facts.text, facts.structure
    return ModuleInfo(
        dump=task.dump,
        name=owner.title,
        function=function,
        frontend=frontend,
        program=program,
        structure=structure,
        labels=[label_of(stage) for stage in (*owner.stages, *owner.others)],
        passes=len(owner.passes),
        captures=len(owner.captures),
        stages=stages,
        failures=failures,
        kernels=_kernels(task) if task.architecture and stages else None,
    )


def label_of(stage: Stage) -> str:
    """What reports call a stage."""
    return stage.label or stage.kind.value


def failed_stage(owner: DumpModule, stage: Stage, error: HlotoolError) -> FailedFile:
    """The record of a stage that could not be read."""
    return FailedFile(file=str(stage.source), module=owner.title, error=error_record(error))


def _kernels(task: InspectTask) -> KernelsInfo:
    # The generator is not needed for anything else.
    from hlotool.inspect.kernels import kernels_of

    stage = task.stages[-1]
    label, file = label_of(stage), str(stage.source)
    try:
        module = load_stage(task.module, stage, may_compile=False)
    except HlotoolError as error:
        return KernelsInfo(label=label, file=file, architecture=task.architecture, error=error_record(error))
    return kernels_of(module, label, file, task.architecture)


def _stage_info(module: Module, owner: DumpModule, stage: Stage) -> StageInfo:
    allocated = _allocated(owner) if stage.kind is Kind.AFTER_OPTIMIZATIONS else None
    return stage_info(module, label_of(stage), str(stage.source), allocated)


def _allocated(owner: DumpModule) -> int | None:
    """The sum over all memory spaces of XLA's own report, where the dump has just one."""
    reports = [file for file in owner.artefacts if file.name.text.endswith(USAGE_REPORT)]
    totals = _TOTAL.findall(reports[0].source.read_text()) if len(reports) == 1 else []
    return sum(map(int, totals)) if totals else None
