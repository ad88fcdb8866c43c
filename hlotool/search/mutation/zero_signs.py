"""Whether a lost sign of a zero can become more than another sign of a zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.constants import is_zero
from hlotool.analysis.custom_calls import TRANSPARENT
from hlotool.analysis.machine_ranges import MachineRanges
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType

#: What tells -0 from 0, by the operands in which it does so; None for all of them.
_READS: Final[Mapping[str, tuple[int, ...] | None]] = {
    "atan2": None,
    "bitcast-convert": None,
    "cholesky": None,
    "custom-call": None,
    "divide": (1,),
    "power": (0,),
    "rsqrt": None,
    "topk": None,
    "triangular-solve": (0,),
}

#: What is the same of both zeros.
_FORGETS: Final = opcodes_with(Trait.EVEN) | {"exponential", "log", "logistic"}


def sign_of_zero_is_read(module: Module, starts_at: Callable[[Instruction], bool]) -> bool:
    """Whether something decides by the signs of zeros that some instructions return.

    What does not, hands on values that differ in signs of zeros at most: sums, products, comparisons, data
    movement. XLA does not keep these signs: `x + 0` is `x` to its simplifier.

    Args:
        module: the program.
        starts_at: tells those instructions.
    """
    calls = CallGraph(module)
    ranges = MachineRanges(calls)
    marked = _Marks(module, starts_at, ranges).marked
    return any(_reads(instruction, marked, ranges) for instruction in module.instructions())


def _reads(instruction: Instruction, marked: set[Instruction], ranges: MachineRanges) -> bool:
    if not any(operand in marked for operand in instruction.operands):
        return False
    shape = instruction.shape
    if isinstance(shape, ArrayShape) and shape.element_type.is_complex:
        return True
    if instruction.opcode == "compare":
        return "type" in instruction.attributes
    if instruction.opcode not in _READS or instruction.custom_call_target in TRANSPARENT:
        return False
    places = _READS[instruction.opcode]
    operands = instruction.operands if places is None else [instruction.operands[n] for n in places]
    return any(operand in marked and ranges.of(operand).holds_zero for operand in operands)


class _Marks:
    """The instructions that the values of some others reach, whichever part of a tuple they are in."""

    def __init__(
        self, module: Module, starts_at: Callable[[Instruction], bool], ranges: MachineRanges
    ) -> None:
        self._ranges = ranges
        self.marked = {i for i in module.instructions() if starts_at(i)}
        size = -1
        while size != len(self.marked):
            size = len(self.marked)
            for computation in module.computations:
                for instruction in computation.instructions:
                    self._visit(instruction)

    def _visit(self, instruction: Instruction) -> None:
        if any(operand in self.marked for operand in instruction.operands) and not self._forgets(instruction):
            self.marked.add(instruction)
        for called in instruction.called:
            self._enter(instruction, called)
            if called.root in self.marked:
                self.marked.add(instruction)

    def _forgets(self, instruction: Instruction) -> bool:
        """Whether a result is the same to the bit, whatever the signs of zeros among the operands are.

        What makes integers or preds of such signs is among what reads them, or does not see them.
        """
        shape = instruction.shape
        if not isinstance(shape, ArrayShape) or any(instruction.called):
            return False
        if instruction.opcode == "select" and self._replaces_zeros(instruction):
            return True
        if instruction.opcode in ("add", "subtract"):
            # A zero of either sign leaves any other number as it is.
            return any(not self._ranges.of(operand).holds_zero for operand in instruction.operands)
        is_whole = shape.element_type.is_integer or shape.element_type is ElementType.PRED
        return is_whole or instruction.opcode in _FORGETS

    def _replaces_zeros(self, select: Instruction) -> bool:
        """Whether it is `select(x == 0, c, x)`, as sorts of floats ask before they compare all bits."""
        mask, chosen, value = select.operands
        if chosen in self.marked or mask.opcode != "compare" or mask.attributes.get("direction") != "EQ":
            return False
        if "type" in mask.attributes or value not in mask.operands:
            return False
        return is_zero(mask.operands[1 - mask.operands.index(value)])

    def _enter(self, caller: Instruction, called: Computation) -> None:
        """The parameters of a computation, of which those of loops and reducers stand for many values."""
        if caller.opcode in ("call", "fusion"):
            pairs = zip(called.parameters, caller.operands)
            self.marked.update(parameter for parameter, operand in pairs if operand in self.marked)
        elif caller in self.marked or called.root in self.marked:
            self.marked.update(called.parameters)
