"""Inspects dumps: all that is counted in the stages of each module, then in all modules together.

Stages are counted in worker processes, which print nothing and return plain records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nlargest

import msgspec

from hlotool.checks.facts import digests, function_of, parameter_name
from hlotool.checks.inspect.costs import Cost, CostAnalysis
from hlotool.checks.inspect.traffic import collectives, custom_calls, host_transfers
from hlotool.checks.inspect_records import CompileTimeInfo, PeakInfo
from hlotool.checks.records import (
    BusyInfo,
    CostInfo,
    FailedFile,
    FunctionInfo,
    KernelsInfo,
    LoopInfo,
    MemoryInfo,
    ModuleInfo,
    ParameterInfo,
    ResultInfo,
    StageInfo,
)
from hlotool.errors import BackendFailed, HlotoolError, Location, Unsupported, UsageError
from hlotool.facts.buffers import Sizes, total_bytes
from hlotool.facts.dataflow import source_of, source_of_output
from hlotool.facts.memory import memory_of, parameter_aliases
from hlotool.facts.trip_counts import trip_count
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import leaves
from hlotool.ir.walk import Context, contexts
from hlotool.judge.failures import error_record
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import captured_program, load_stage, read_execution, read_stage
from hlotool.sources.records import (
    Capture,
    Dump,
    DumpModule,
    Stage,
    first_and_last,
    modules_matching,
    stages_matching,
)
from hlotool.system.executor import Executor
from hlotool.system.records import encoded
from hlotool.system.resources import collector_off
from hlotool.system.user_input import did_you_mean

#: Instructions with the most work that are named.
_BUSIEST = 8


def stage_info(
    module: Module, label: str, file: str, allocated: int | None = None, *, at_peak: bool = False
) -> StageInfo:
    """Count what `module` holds.

    Args:
        module: a stage of a dump.
        label: of the stage.
        file: where it stands.
        allocated: bytes that XLA allocated for it, where that is known.
        at_peak: say what is alive when it needs the most memory, too.
    """
    instructions = list(module.instructions())
    loops = {i: trip_count(i) for i in instructions if i.opcode == "while"}
    known = {loop: count for loop, count in loops.items() if count is not None}
    once = CostAnalysis()
    repeated = CostAnalysis(lambda loop: known.get(loop, 1), once) if known else once
    return StageInfo(
        label=label,
        file=file,
        name=module.name,
        cut=module.cut,
        scheduled=module.is_scheduled,
        replicas=module.replica_count,
        partitions=module.num_partitions,
        computations=len(module.computations),
        instructions=len(instructions),
        fusions=sum(i.opcode == "fusion" for i in instructions),
        opcodes=dict(Counter(i.opcode for i in instructions).most_common()),
        parameters=list(_parameters(module)),
        results=list(_results(module)),
        costs=_cost_info(once, module),
        costs_with_loops=_cost_info(repeated, module),
        memory=_memory_info(module, allocated, once.sizes, at_peak),
        busiest=list(_busiest(module, once.of_instruction)),
        loops=[LoopInfo(source=source_of(module, [i]), iterations=count) for i, count in loops.items()],
        collectives=collectives(instructions),
        host_transfers=host_transfers(instructions),
        custom_calls=custom_calls(instructions),
    )


def _peak_info(module: Module, sizes: Sizes) -> PeakInfo:
    # Asked for seldom, and others import this file for what it says of a program.
    from hlotool.checks.inspect.peak import peak_info

    return peak_info(module, sizes)


def _memory_info(module: Module, allocated: int | None, sizes: Sizes, at_peak: bool) -> MemoryInfo:
    found = memory_of(module, sizes=sizes)
    return MemoryInfo(
        arguments=found.arguments,
        results=found.results,
        constants=found.constants,
        peak=found.peak,
        allocated=allocated,
        at_peak=_peak_info(module, sizes) if at_peak else None,
    )


def _parameters(module: Module) -> Iterator[ParameterInfo]:
    donated = {alias.parameter for alias in parameter_aliases(module)}
    for number, parameter in enumerate(module.entry.parameters):
        yield ParameterInfo(
            number=number,
            name=parameter_name(parameter),
            shape=str(parameter.shape),
            bytes=total_bytes(parameter.shape),
            donated=number in donated,
        )


def _results(module: Module) -> Iterator[ResultInfo]:
    for index, shape in leaves(module.entry.root.shape):
        source = source_of_output(module, index)
        yield ResultInfo(index=list(index), shape=str(shape), bytes=total_bytes(shape), source=source)


def _cost_info(analysis: CostAnalysis, module: Module) -> CostInfo:
    return msgspec.convert(analysis.of_computation(module.entry), CostInfo, from_attributes=True)


def _busiest(module: Module, cost: Callable[[Instruction], Cost]) -> Iterator[BusyInfo]:
    """By arithmetic, then by bytes; what calls others is not named, but what it calls."""
    costs = ((instruction, cost(instruction)) for instruction in _executed(module))
    found = ((i, c) for i, c in costs if c.flops or c.transcendentals or c.bytes_accessed)
    busiest = nlargest(
        _BUSIEST, found, lambda row: (row[1].flops + row[1].transcendentals, row[1].bytes_accessed)
    )
    for instruction, spent in busiest:
        yield BusyInfo(
            source=source_of(module, [instruction]),
            flops=spent.flops + spent.transcendentals,
            bytes_accessed=spent.bytes_accessed,
        )


def _executed(module: Module) -> Iterable[Instruction]:
    """What runs one by one; fusions as a whole."""
    for computation, found in contexts(module).items():
        if Context.CONTROL_FLOW in found:
            yield from (
                i for i in computation.instructions if i.opcode not in opcodes_with(Trait.CONTROL_FLOW)
            )


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
                at_peak = task.memory and one is programs[-1]
                info = stage_info(module, one.label, one.file, one.allocated, at_peak=at_peak)
                stages.append(_countable(info))
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
        compile_time=_compile_time(owner, failures) if task.compile_time else None,
    )


def _compile_time(owner: DumpModule, failures: list[FailedFile]) -> CompileTimeInfo | None:
    from hlotool.checks.inspect.compile_time import compile_time_of

    try:
        return compile_time_of(owner)
    except HlotoolError as error:
        failures.append(FailedFile(file=owner.title, module=owner.title, error=error_record(error)))
        return None


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
    from hlotool.checks.inspect.kernels import kernels_of

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


#: What a worker imports before its first module.
PRELOAD = ("hlotool.checks.inspect.run", "hlotool.parser.reader")

_decoder = msgspec.msgpack.Decoder(ModuleInfo)


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
    kept = tuple(file for file in module.artefacts if file.name.text.endswith(USAGE_REPORT))
    return replace(module, artefacts=kept)


def _chosen(module: DumpModule, patterns: Sequence[str]) -> tuple[Stage, ...]:
    if patterns:
        return stages_matching((*module.stages, *module.others), patterns)
    return first_and_last(module)


def inspect_all(tasks: Sequence[InspectTask], pool: Executor) -> list[ModuleInfo]:
    """What each module holds, in the order of the tasks."""
    ends = pool.call_all("hlotool.checks.inspect.run:inspect_module", tasks)
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
