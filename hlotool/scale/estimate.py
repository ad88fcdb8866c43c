"""What one execution of a program needs on the reference: memory and work, before anything is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlotool.analysis.trip_counts import loop_repetitions
from hlotool.analysis.work import Prices
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import array_shapes
from hlotool.ir.walk import Context, context_of_callees, reachable

#: What hands on the memory of its operand, or of nothing.
_FREE = frozenset(
    {
        "add-dependency", "bitcast", "broadcast", "constant", "get-tuple-element", "opt-barrier", "parameter",
        "reshape", "transpose", "tuple",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Need:
    """What one execution takes.

    Attributes:
        memory: bytes.
        work: units of `workers.work_limit`.
    """

    memory: int
    work: int


def need_of(module: Module) -> Need:
    """Estimate what one execution of `module` takes; loops count as often as they run."""
    return Need(_memory(module), _work(module))


def _work(module: Module) -> int:
    """Fused computations are counted where they are called; those of loops and branches by themselves."""
    prices, repetitions = Prices(), loop_repetitions(module)
    own: dict[Computation, int] = {module.entry: 1}
    for computation in reachable(module.entry):
        for instruction in computation.instructions:
            if instruction.opcode in ("while", "conditional"):
                own.update((called, repetitions.get(called, 1)) for called in instruction.called)
    return sum(times * prices.of(computation) for computation, times in own.items())


def _memory(module: Module) -> int:
    """Arguments and constants, and the most that is alive at once besides."""
    held = sum(map(_bytes, module.entry.parameters))
    held += sum(_bytes(i) for i in module.instructions() if i.opcode == "constant")
    peaks: dict[Computation, int] = {}
    for computation in reachable(module.entry):
        peaks[computation] = _peak(computation, peaks)
    return held + peaks[module.entry]


def _peak(computation: Computation, peaks: Mapping[Computation, int]) -> int:
    """What a computation allocates at once, with what it calls.

    Views are counted with what they show: a value lives until the last reader of all its views.
    """
    source: dict[Instruction, tuple[Instruction, ...]] = {}
    last: dict[Instruction, int] = {}
    for position, instruction in enumerate(computation.instructions):
        seen: tuple[Instruction, ...] = tuple(
            dict.fromkeys(one for operand in instruction.operands for one in source[operand])
        )
        for one in seen:
            last[one] = position
        is_view = instruction.opcode in _FREE
        source[instruction] = seen if is_view else (instruction,)
        if not is_view:
            last[instruction] = position
    for one in source[computation.root]:
        last[one] = len(computation.instructions)
    dying: dict[int, int] = {}
    for one, position in last.items():
        dying[position] = dying.get(position, 0) + _bytes(one)
    live = most = 0
    for position, instruction in enumerate(computation.instructions):
        if instruction.opcode not in _FREE:
            live += _bytes(instruction)
        inside = max((_inside(instruction, called, peaks) for called in instruction.called), default=0)
        most = max(most, live + inside)
        live -= dying.get(position, 0)
    return most


def _inside(instruction: Instruction, called: Computation, peaks: Mapping[Computation, int]) -> int:
    return 0 if context_of_callees(instruction) is Context.EMBEDDED else peaks.get(called, 0)


def _bytes(instruction: Instruction) -> int:
    return sum(shape.byte_size for shape in array_shapes(instruction.shape))
