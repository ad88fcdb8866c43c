"""What one module holds: what a worker finds. It prints nothing and returns plain records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import nlargest

import msgspec

from hlotool.checks.facts import digests, function_of, parameter_name
from hlotool.checks.inspect.allocations import Allocated, allocated_for
from hlotool.checks.inspect.costs import Cost, CostAnalysis
from hlotool.checks.inspect.run import InspectTask
from hlotool.checks.inspect.traffic import collectives, custom_calls, host_transfers
from hlotool.checks.inspect_records import CompileTimeInfo, PeakInfo
from hlotool.checks.records import (
    BusyInfo,
    CostInfo,
    FailedFile,
    KernelsInfo,
    LoopInfo,
    MemoryInfo,
    ModuleInfo,
    ParameterInfo,
    ResultInfo,
    StageInfo,
)
from hlotool.errors import HlotoolError, Location, Unsupported
from hlotool.facts.buffers import Sizes, total_bytes
from hlotool.facts.dataflow import source_of, source_of_output
from hlotool.facts.memory import memory_of, parameter_aliases
from hlotool.facts.trip_counts import trip_count
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import leaves
from hlotool.ir.verifier import verify_or_raise
from hlotool.ir.walk import Context, contexts
from hlotool.judge.failures import error_record
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import captured_program, load_stage, read_execution
from hlotool.sources.records import (
    Capture,
    DumpModule,
)
from hlotool.sources.stages import read_stage
from hlotool.system.records import encoded
from hlotool.system.resources import collector_off

#: Instructions with the most work that are named.
_BUSIEST = 8
#: What `allocated_for` says where no dump does.
_UNKNOWN: Allocated = (None, {})


def stage_info(
    module: Module, label: str, file: str, allocated: Allocated = _UNKNOWN, *, at_peak: bool = False
) -> StageInfo:
    """Count what `module` holds.

    Args:
        module: a stage of a dump.
        label: of the stage.
        file: where it stands.
        allocated: what `allocated_for` says of it.
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


def _memory_info(module: Module, allocated: Allocated, sizes: Sizes, at_peak: bool) -> MemoryInfo:
    found = memory_of(module, sizes=sizes)
    return MemoryInfo(
        arguments=found.arguments,
        results=found.results,
        constants=found.constants,
        peak=found.peak,
        allocated=allocated[0],
        allocated_for=dict(allocated[1]),
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


@dataclass(frozen=True, slots=True)
class _Program:
    """A program to look at.

    Attributes:
        label: of its stage, or what it was captured with.
        file: where it stands.
        read: reads it; constants may be elided.
        complete: reads it with all constants, or raises.
        allocated: what `allocated_for` says of it.
    """

    label: str
    file: str
    read: Callable[[], Module]
    complete: Callable[[], Module]
    allocated: Allocated = _UNKNOWN


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
                try:
                    info = stage_info(module, one.label, one.file, one.allocated, at_peak=at_peak)
                except (ArithmeticError, LookupError, TypeError, ValueError):
                    verify_or_raise(module)  # a program that breaks a rule is at fault
                    raise
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
    # Asked for seldom.
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
            allocated_for(owner) if stage.kind is Kind.AFTER_OPTIMIZATIONS else _UNKNOWN,
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
