"""Where a buffer goes and where it comes from: positions (instruction, shape index) across computations.

XLA: host_offload_utils.cc, GetSuccessors and GetPredecessors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hlotool.analysis.flow import Part
from hlotool.check.offload.annotations import Placement, placement
from hlotool.check.subject import Subject
from hlotool.ir.attributes import OperandAlias
from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import branches, through_tuple

#: A part of an instruction's result.
Position: TypeAlias = Part

#: What hands a buffer on as it is. XLA: IsValidDuringPureMemoryOffload.
PASSES_ON = frozenset(
    {
        "get-tuple-element", "bitcast", "tuple", "call", "while", "conditional", "parameter", "opt-barrier",
        "async-start", "async-done", "custom-call",
    }
)  # fmt: skip


class Positions:
    """Successors and predecessors of positions in one module."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._calls = subject.calls

    def successors(self, position: Position) -> list[Position]:
        """Where the buffer at `position` is next."""
        instruction, index = position
        found: list[Position] = []
        computation = self._calls.home[instruction]
        if instruction is computation.root:
            found += [(caller, index) for caller in self._calls.callers[computation]]
        for user in self._subject.users[instruction]:
            found += self._into(user, instruction, index)
        return found

    def _into(self, user: Instruction, instruction: Instruction, index: ShapeIndex) -> Iterator[Position]:
        numbers = [number for number, operand in enumerate(user.operands) if operand is instruction]
        match user.opcode:
            case "tuple":
                yield from ((user, (number, *index)) for number in numbers)
            case "get-tuple-element":
                if index and index[0] == user.integer("index"):
                    yield user, index[1:]
            case "call" | "while" | "async-start":
                for number in numbers:
                    yield from ((parameter, index) for parameter in self._parameters(user, number))
            case "conditional":
                taken = branches(user)
                yield from ((taken[number - 1].parameters[0], index) for number in numbers if number)
            case "custom-call":
                yield from ((user, index) for number in numbers[:1] if hands_on(user, number))
            case _:
                yield user, index

    def _parameters(self, user: Instruction, number: int) -> Iterator[Instruction]:
        """Parameter `number` of what a call, while or async-start calls; the body of a while comes first."""
        called = list(user.called)
        if user.opcode == "while":
            called = [user.computation("body"), user.computation("condition")]
        for computation in called:
            parameters = computation.parameters
            if number < len(parameters):
                yield parameters[number]

    def predecessors(self, position: Position) -> list[Position] | None:
        """Where the buffer at `position` was before; None where it is computed from several operands."""
        instruction, index = position
        if (source := through_tuple(instruction, index)) is not None:
            return [source]
        match instruction.opcode:
            case "tuple":
                return None
            case "call":
                return [(instruction.computation("to_apply").root, index)]
            case "while":
                return [(instruction.computation("body").root, index)]
            case "parameter":
                number = instruction.parameter_number or 0
                callers = self._calls.callers[self._calls.home[instruction]]
                return [(caller.operands[number], index) for caller in callers]
            case "dynamic-slice" | "dynamic-update-slice" | "pad":
                return [(instruction.operands[0], index)]
        return [(instruction.operands[0], index)] if len(instruction.operands) == 1 else None

    def history(self, position: Position) -> set[Instruction]:
        """What the buffer at `position` went through before, and the instruction itself."""
        seen, waiting = {position}, [position]
        while waiting:
            for before in self.predecessors(waiting.pop()) or ():
                if before not in seen:
                    seen.add(before)
                    waiting.append(before)
        return {instruction for instruction, _ in seen}

    def is_entry_root(self, instruction: Instruction) -> bool:
        """It makes the program's result."""
        return instruction is self._subject.module.entry.root


def hands_on(custom_call: Instruction, operand: int) -> bool:
    """Whether the custom call returns the buffer of that operand: moves do, and what is aliased."""
    if placement(custom_call) in (Placement.TO_HOST, Placement.TO_DEVICE):
        return True
    aliases = custom_call.listed("output_to_operand_aliasing", OperandAlias, ())
    return any(alias.operand == operand for alias in aliases)
