"""Inspects dumps: all that is counted in the stages of each module, then in all modules together.

Stages are counted in worker processes, which print nothing and return plain records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from hlotool.checks.records import (
    FailedFile,
    FunctionInfo,
    ModuleInfo,
)
from hlotool.errors import BackendFailed, UsageError
from hlotool.judge.failures import error_record
from hlotool.sources.records import (
    Dump,
    DumpModule,
    Stage,
    first_and_last,
    modules_matching,
    stages_matching,
)
from hlotool.system.executor import Executor
from hlotool.system.user_input import did_you_mean

#: What XLA reports about its allocations, and the line of each memory space in it.
USAGE_REPORT = "memory-usage-report.txt"
#: All allocations, with what each is for.
ASSIGNMENT = "buffer-assignment.txt"


@dataclass(frozen=True, slots=True)
class InspectTask:
    """The stages of one module to look at.

    Attributes:
        dump: path as given.
        module: of the dump.
        stages: those to look at, in the order of compilation.
        architecture: of the GPUs that the last of them is compiled for; empty for no kernels.
        memory: say what is alive when the last of them needs the most memory.
        compile_time: say where the time of the compilation went.
        is_alone: no other module is inspected from which its program has to be distinguished.
    """

    dump: str
    module: DumpModule
    stages: tuple[Stage, ...]
    architecture: str = ""
    memory: bool = False
    compile_time: bool = False
    is_alone: bool = False


#: What a worker imports before its first module.
PRELOAD = ("hlotool.checks.inspect.programs", "hlotool.parser.reader")


def find_tasks(
    dumps: Iterable[Dump],
    only: str | None,
    stages: Sequence[str] = (),
    architecture: str = "",
    memory: bool = False,
    compile_time: bool = False,
) -> list[InspectTask]:
    """The modules to look at.

    Args:
        dumps: as `open_dump` found them.
        only: regular expression on the names of modules.
        stages: shell patterns of stage names; without any, the first and the last stage of each module.
        architecture: of the GPUs that kernels are compiled for; empty for no kernels.
        memory: say what is alive when the last stage needs the most memory.
        compile_time: say where the time of each compilation went.

    Raises:
        UsageError: there are none.
    """
    wanted = modules_matching(dumps, only)
    alone = len(wanted) == 1
    tasks = [
        InspectTask(
            *(dump.path, m if compile_time else _slim(m), _chosen(m, stages), architecture),
            *(memory, compile_time, alone),
        )
        for dump, m in wanted
    ]
    if stages and not any(task.stages for task in tasks):
        labels = dict.fromkeys(stage.title for _, m in wanted for stage in (*m.stages, *m.others))
        meant = next(filter(None, (did_you_mean(pattern, labels) for pattern in stages)), "")
        raise UsageError(
            f"no stage matches --stages {','.join(stages)!r}; there are: {', '.join(labels)}{meant}"
        )
    return tasks


def _slim(module: DumpModule) -> DumpModule:
    """Without what need not travel to the workers: a dump has hundreds of object files."""
    kept = tuple(file for file in module.artefacts if file.name.text.endswith((USAGE_REPORT, ASSIGNMENT)))
    return replace(module, artefacts=kept)


def _chosen(module: DumpModule, patterns: Sequence[str]) -> tuple[Stage, ...]:
    if patterns:
        return stages_matching((*module.stages, *module.others), patterns)
    return first_and_last(module)


def inspect_all(tasks: Sequence[InspectTask], pool: Executor) -> list[ModuleInfo]:
    """What each module holds, in the order of the tasks."""
    ends = pool.call_all("hlotool.checks.inspect.programs:inspect_module", tasks)
    return [_result(task, end.value) for task, end in zip(tasks, ends)]


def _result(task: InspectTask, value: bytes | BackendFailed) -> ModuleInfo:
    if isinstance(value, BackendFailed):
        file = str(task.stages[0].source) if task.stages else task.module.title
        failure = FailedFile(file=file, module=task.module.title, error=error_record(value))
        return ModuleInfo(
            dump=task.dump, name=task.module.title, function=task.module.name, failures=[failure]
        )
    return msgspec.msgpack.decode(value, type=ModuleInfo)


def functions_of(modules: Sequence[ModuleInfo]) -> list[FunctionInfo]:
    """Modules by the function of the user's program that they were made from, each folder by itself.

    PyTorch/XLA calls all programs alike: there the operations tell functions apart.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, module in enumerate(modules):
        distinct = module.structure if module.frontend == "torch" else ""
        key = (_folder(module), module.frontend, module.function, distinct)
        groups.setdefault(key, []).append(number)
    return [_function(modules[numbers[0]], numbers, modules) for numbers in groups.values()]


def _folder(module: ModuleInfo) -> str:
    """A plain file has no folder in its dump: its name there is its path."""
    inside = module.name.rpartition("/")[0]
    return f"{module.dump}/{inside}" if inside and inside != module.dump else module.dump


def _function(first: ModuleInfo, numbers: list[int], modules: Sequence[ModuleInfo]) -> FunctionInfo:
    programs = len({modules[number].program for number in numbers} - {""})
    if len(numbers) == 1:
        programs = max(programs, int(bool(first.stages)))
    return FunctionInfo(
        function=first.function,
        frontend=first.frontend,
        folder=_folder(first),
        compilations=len(numbers),
        programs=programs,
        modules=numbers,
    )
