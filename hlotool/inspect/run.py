"""Inspects dumps: every module in a worker process, then what only shows when modules are put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from hlotool.check.findings import FailedFile
from hlotool.dump.records import Dump, DumpModule, Stage, first_and_last, modules_matching, stages_matching
from hlotool.errors import BackendFailed, UsageError
from hlotool.findings.errors import error_record
from hlotool.inspect.records import FunctionInfo, ModuleInfo
from hlotool.inspect.task import USAGE_REPORT, InspectTask
from hlotool.names import did_you_mean
from hlotool.workers.executor import Executor

#: What a worker imports before its first module.
PRELOAD = ("hlotool.inspect.task", "hlotool.parse.reader")

_decoder = msgspec.msgpack.Decoder(ModuleInfo)


def find_tasks(
    dumps: Iterable[Dump], only: str | None, stages: Sequence[str] = (), architecture: str = ""
) -> list[InspectTask]:
    """The modules to look at.

    Args:
        dumps: as `open_dump` found them.
        only: regular expression on the names of modules.
        stages: shell patterns of stage names; without any, the first and the last stage of each module.
        architecture: of the GPUs that kernels are compiled for; empty for no kernels.

    Raises:
        UsageError: there are none.
    """
    wanted = modules_matching(dumps, only)
    alone = len(wanted) == 1
    tasks = [InspectTask(dump.path, _slim(m), _chosen(m, stages), architecture, alone) for dump, m in wanted]
    if stages and not any(task.stages for task in tasks):
        labels = dict.fromkeys(stage.title for _, m in wanted for stage in (*m.stages, *m.others))
        meant = next(filter(None, (did_you_mean(pattern, labels) for pattern in stages)), "")
        raise UsageError(
            f"no stage matches --stages {','.join(stages)!r}; there are: {', '.join(labels)}{meant}"
        )
    return tasks


def _slim(module: DumpModule) -> DumpModule:
    """Without what need not travel to the workers: a dump has hundreds of object files."""
    kept = tuple(file for file in module.artefacts if file.name.text.endswith(USAGE_REPORT))
    return replace(module, artefacts=kept)


def _chosen(module: DumpModule, patterns: Sequence[str]) -> tuple[Stage, ...]:
    if patterns:
        return stages_matching((*module.stages, *module.others), patterns)
    return first_and_last(module)


def inspect_all(tasks: Sequence[InspectTask], pool: Executor) -> list[ModuleInfo]:
    """What each module holds, in the order of the tasks."""
    ends = pool.call_all("hlotool.inspect.task:inspect_module", tasks)
    return [_result(task, end.value) for task, end in zip(tasks, ends)]


def _result(task: InspectTask, value: bytes | BackendFailed) -> ModuleInfo:
    if isinstance(value, BackendFailed):
        file = str(task.stages[0].source) if task.stages else task.module.title
        failure = FailedFile(file=file, module=task.module.title, error=error_record(value))
        return ModuleInfo(
            dump=task.dump, name=task.module.title, function=task.module.name, failures=[failure]
        )
    return _decoder.decode(value)


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
