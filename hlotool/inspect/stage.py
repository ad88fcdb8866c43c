"""Everything that is counted in one program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest

import msgspec

from hlotool.analysis.memory import memory_of, parameter_aliases
from hlotool.analysis.sizes import Sizes, total_bytes
from hlotool.analysis.trip_counts import trip_count
from hlotool.check.facts import parameter_name
from hlotool.findings.provenance import source_of, source_of_output
from hlotool.inspect.costs import Cost, CostAnalysis
from hlotool.inspect.records import (
    BusyInfo,
    CostInfo,
    LoopInfo,
    MemoryInfo,
    ParameterInfo,
    ResultInfo,
    StageInfo,
)
from hlotool.inspect.traffic import collectives, custom_calls, host_transfers
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import leaves
from hlotool.ir.walk import Context, contexts

#: Instructions with the most work that are named.
_BUSIEST = 8


def stage_info(module: Module, label: str, file: str, allocated: int | None = None) -> StageInfo:
    """Count what `module` holds.

    Args:
        module: a stage of a dump.
        label: of the stage.
        file: where it stands.
        allocated: bytes that XLA allocated for it, where that is known.
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
        memory=_memory_info(module, allocated, once.sizes),
        busiest=list(_busiest(module, once.of_instruction)),
        loops=[LoopInfo(source=source_of(module, [i]), iterations=count) for i, count in loops.items()],
        collectives=collectives(instructions),
        host_transfers=host_transfers(instructions),
        custom_calls=custom_calls(instructions),
    )


def _memory_info(module: Module, allocated: int | None, sizes: Sizes) -> MemoryInfo:
    found = memory_of(module, sizes=sizes)
    return MemoryInfo(
        arguments=found.arguments,
        results=found.results,
        constants=found.constants,
        peak=found.peak,
        allocated=allocated,
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
