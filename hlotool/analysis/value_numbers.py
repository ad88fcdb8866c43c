"""Which instructions have the same value, wherever they stand: through tuples, calls and fusions.

An optimised program computes a value in several fusions, which read it as parameters. Two instructions have
the same number if they apply the same operation, elementwise or one that moves data, or the same reduction,
to the same numbers. Conversions between float types do not count: values are taken for real numbers.
"""

from __future__ import annotations

from collections.abc import Hashable

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import INLINED, Part, handed_on
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape

#: Their value is that of their operand, as a real number.
_SAME_NUMBER = opcodes_with(Trait.CONVERTS) | {"copy"}
#: Attributes that say nothing about the value.
_NO_MEANING = frozenset(
    {"backend_config", "frontend_attributes", "operand_precision", "sharding", "statistics"}
)
_COMMUTE = opcodes_with(Trait.ASSOCIATIVE) - opcodes_with(Trait.BITWISE)


class ValueNumbers:
    """Numbers of the values of one program's instructions, given when first asked for.

    Args:
        calls: of the program, which must not change meanwhile.
    """

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls
        self._numbers: dict[Instruction, int] = {}
        self._known: dict[Hashable, int] = {}

    def same(self, a: Instruction, b: Instruction) -> bool:
        """Whether both have the same value and the same dimensions whenever both are computed."""
        return self.of(a) == self.of(b)

    def of(self, instruction: Instruction) -> int:
        """The number of the value of an instruction."""
        pending = [instruction]
        while pending:
            origin = self.origin(pending[-1])
            if origin in self._numbers:
                self._numbers.setdefault(pending.pop(), self._numbers[origin])
                continue
            unknown = [o for o in origin.operands if o not in self._numbers] if _is_pure(origin) else []
            if unknown:
                pending += unknown
                continue
            self._numbers[origin] = self._known.setdefault(self._key(origin), len(self._known))
        return self._numbers[instruction]

    def origin(self, instruction: Instruction) -> Instruction:
        """The instruction that computes the value: what only hands it on is looked through.

        Calls of a computation that others call, too, are not: their values are not one.
        """
        part: Part = (instruction, ())
        while True:
            one, index = part
            if not index and one.opcode in _SAME_NUMBER and _keeps_the_number(one):
                part = (one.operands[0], ())
                continue
            if one.opcode in INLINED and self._calls.only_caller(next(one.called)) is not one:
                return instruction if index else one
            sources = list(handed_on(part, self._calls))
            if len(sources) != 1:
                return instruction if index else one
            part = sources[0]
            if not part[1]:
                instruction = part[0]

    def _key(self, instruction: Instruction) -> Hashable:
        if not _is_pure(instruction):
            return instruction
        operands = [self._numbers[o] for o in instruction.operands]
        if instruction.opcode in _COMMUTE:
            operands.sort()
        shape, literal = instruction.shape, instruction.literal
        attributes = sorted(instruction.attributes.items(), key=lambda item: item[0])
        return (
            instruction.opcode,
            shape.dims if isinstance(shape, ArrayShape) else shape,
            # Between floats the type does not count; of integers it says where they wrap.
            None if isinstance(shape, ArrayShape) and shape.element_type.is_floating else shape,
            tuple(operands),
            tuple((k, _attribute(v)) for k, v in attributes if k not in _NO_MEANING),
            literal if literal is None or literal.has_elided else literal.key,
        )


def _attribute(value: Hashable) -> Hashable:
    return reducing_opcode(value) or value if isinstance(value, Computation) else value


def _keeps_the_number(instruction: Instruction) -> bool:
    """Whether source and result hold the same real numbers, up to rounding."""
    shape, source = instruction.shape, instruction.operands[0].shape
    if not isinstance(shape, ArrayShape) or not isinstance(source, ArrayShape):
        return False
    floats = shape.element_type.is_floating and source.element_type.is_floating
    return floats or shape.element_type is source.element_type


def _is_pure(instruction: Instruction) -> bool:
    """Whether equal operands make equal values."""
    if instruction.opcode == "reduce":
        return reducing_opcode(instruction.computation("to_apply")) is not None
    if instruction.opcode in ("constant", "iota"):
        return instruction.literal is None or not instruction.literal.has_elided
    pure = (Class.ELEMENTWISE, Class.DATA_MOVEMENT)
    return (
        bool(instruction.operands)
        and instruction.row.opcode_class in pure
        and isinstance(instruction.shape, ArrayShape)
        and not any(instruction.called)
    )


def reducing_opcode(computation: Computation) -> str | None:
    """The opcode of a reducer that is one operation on its two parameters, conversions of floats aside."""

    def stripped(instruction: Instruction) -> Instruction:
        while instruction.opcode in _SAME_NUMBER and _keeps_the_number(instruction):
            instruction = instruction.operands[0]
        return instruction

    root = stripped(computation.root)
    operands = [stripped(o) for o in root.operands]
    is_plain = (
        len(operands) == 2
        and {o.opcode for o in operands} == {"parameter"}
        and operands[0] is not operands[1]
    )
    return root.opcode if is_plain and root.opcode in _COMMUTE else None
