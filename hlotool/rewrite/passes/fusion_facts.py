"""What fusion needs to know of single instructions, and how work on a reduction is shared out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hlotool.facts.recognition import uniform
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, TupleShape
from hlotool.ir.walk import has_side_effect

_NEVER = opcodes_with(Trait.ASYNC, Trait.CONTROL_FLOW) | {"domain", "parameter"}
_ALWAYS = frozenset({"fusion", "map", "reduce", "reduce-window"})

#: Data movement that a loop over the result can express by where it reads.
_LOOP_MOVEMENT = opcodes_with(Trait.MOVES, Class.INDEXING) - {"scatter"} | {
    "bitcast-convert",
    "reduce-window",
}
#: Elementwise opcodes that take little time for every type, as XLA judges.
_CHEAP = frozenset(
    {
        "add", "and", "bitcast", "bitcast-convert", "broadcast", "ceil", "clamp", "compare", "complex",
        "concatenate", "constant", "convert", "copy", "count-leading-zeros", "dynamic-reshape",
        "dynamic-slice", "dynamic-update-slice", "floor", "get-tuple-element", "imag", "iota", "is-finite",
        "maximum", "minimum", "multiply", "negate", "not", "or", "pad", "popcnt", "real", "reduce-precision",
        "reshape", "reverse", "round-nearest-afz", "round-nearest-even", "select", "shift-left",
        "shift-right-arithmetic", "shift-right-logical", "slice", "stochastic-convert", "subtract",
        "transpose", "tuple", "xor",
    }
)  # fmt: skip
#: Cheap for real numbers, not for complex ones.
_CHEAP_REAL = frozenset({"abs", "cosine", "sign", "sine", "sinh", "tan"})
#: Worth neither a kernel nor an output of their own: they show what is there already, or make much of little.
TRIVIAL = opcodes_with(Trait.REGROUPS) - {"transpose"}
#: What takes nothing but an index to compute.
_FREE = opcodes_with(Trait.REGROUPS) - {"copy", "transpose"} | {"iota"}
#: Consumers that read elements of an operand more than once.
_REUSING = frozenset({"broadcast", "convolution", "dot", "gather", "reduce-window"})


# XLA: HloInstruction::IsFusible, gpu_fusible.cc (loop fusible, heroes), instruction_fusion.cc (expensive).


def is_fusible(instruction: Instruction) -> bool:
    """Whether a fusion may contain it at all."""
    if instruction.opcode in _NEVER:
        return False
    return instruction.opcode in _ALWAYS or not has_side_effect(instruction)


def is_elementwise(instruction: Instruction) -> bool:
    """Whether each element of the result needs just the same element of every operand."""
    return instruction.row.opcode_class is Class.ELEMENTWISE and bool(instruction.operands)


def is_loop_fusible(instruction: Instruction) -> bool:
    """Whether a loop over its elements can compute it, wherever it stands in a fusion."""
    if not isinstance(instruction.shape, ArrayShape) or instruction.shape.is_dynamic:
        return False
    if instruction.opcode == "fusion":
        return instruction.attributes.get("kind") == "kLoop"
    is_loop = is_elementwise(instruction) or instruction.opcode in _LOOP_MOVEMENT
    return is_loop or (instruction.opcode == "reduce" and not is_reduction(instruction))


def is_reduction(instruction: Instruction) -> bool:
    """Whether it combines elements with each other: over dimensions of size 1 it does not, and is a loop.

    XLA: algebraic_simplifier.cc, HandleReduce, has a reshape there.
    """
    if instruction.opcode != "reduce":
        return False
    shape = instruction.operands[0].shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        return True
    return any(shape.dims[d] != 1 for d in instruction.integers("dimensions"))


def is_loop_fusible_as_producer(instruction: Instruction) -> bool:
    """Whether a loop over the elements of a consumer can compute it on the way."""
    if instruction.opcode in ("constant", "iota"):
        return True
    if instruction.opcode == "reduce":
        return not isinstance(instruction.shape, TupleShape)
    return is_loop_fusible(instruction)


def is_expensive(instruction: Instruction) -> bool:
    """Whether computing it twice costs more than writing and reading its result."""
    opcode, shape = instruction.opcode, instruction.shape
    if opcode in _CHEAP_REAL:
        return isinstance(shape, ArrayShape) and shape.element_type.is_complex
    if opcode == "reduce":
        return is_reduction(instruction)
    if opcode in ("divide", "remainder"):
        whole = isinstance(shape, ArrayShape) and shape.element_type.is_integer
        return not whole or uniform(instruction.operands[1]) is None
    return opcode not in _CHEAP


def is_always_duplicable(instruction: Instruction) -> bool:
    """Whether every consumer may have a copy of its own: it makes much of little, or shows what is there."""
    if instruction.opcode == "convert":
        return instruction.operands[0].array_shape.byte_size < instruction.array_shape.byte_size
    return instruction.opcode in _FREE or is_scalar_constant(instruction)


def is_scalar_constant(instruction: Instruction) -> bool:
    """Whether it is a constant of one element."""
    shape = instruction.shape
    return instruction.opcode == "constant" and isinstance(shape, ArrayShape) and shape.size == 1


def reuses_operands(instruction: Instruction) -> bool:
    """Whether it reads elements of its operands more than once."""
    return instruction.opcode in _REUSING


def in_place_operand(instruction: Instruction) -> Instruction | None:
    """The operand whose buffer becomes the result's, where the operation works in place."""
    if instruction.opcode in ("dynamic-update-slice", "scatter"):
        return instruction.operands[0]
    return None


def loop_shape(instruction: Instruction) -> tuple[int, ...]:
    """The dimensions that a kernel for this root would iterate over: those of what a reduction reads."""
    shape = instruction.operands[0].shape if is_reduction(instruction) else instruction.shape
    return shape.dims if isinstance(shape, ArrayShape) else ()


#: So few elements, terms of a product or elements of a window are combined by one thread, wherever the result
#: is read: threads that share them, at least a warp of 32, would have one each.
SERIAL = 32
#: So many rows keep a GPU busy with a block or a warp for each. Fewer are cut into chunks, each for a block,
#: if they are longer than this; shorter ones are done before a second pass has begun.
_ENOUGH_ROWS, _LONGEST_ROW = 512, 1 << 16


# `RowFusion` puts reductions into a fusion with what is computed along their rows because one generated
# kernel (`backends/cuda/codegen`) does it all. Both read here when that is so.


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the reductions of one kernel have in common.

    Attributes:
        dims: of the inputs.
        reduced: dimensions that go away, in ascending order.
    """

    dims: tuple[int, ...]
    reduced: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The other dimensions."""
        return tuple(d for d in range(len(self.dims)) if d not in self.reduced)

    @property
    def results(self) -> int:
        """Number of elements of a result."""
        return prod(self.dims[d] for d in self.kept)

    @property
    def length(self) -> int:
        """Number of elements that one result combines."""
        return prod(self.dims[d] for d in self.reduced)

    @property
    def is_serial(self) -> bool:
        """Whether one thread combines all elements of a result."""
        return self.length <= SERIAL

    @property
    def has_few_long_rows(self) -> bool:
        """Whether more blocks are needed than there are results."""
        return self.results < _ENOUGH_ROWS and self.length > _LONGEST_ROW

    @property
    def is_by_row(self) -> bool:
        """Whether neighbours in memory go into the same result."""
        longer = [d for d in range(len(self.dims)) if self.dims[d] > 1]
        return not longer or longer[-1] in self.reduced

    @property
    def has_whole_rows(self) -> bool:
        """Whether all that goes into the same result lies together."""
        kept, reduced = ([d for d in which if self.dims[d] != 1] for which in (self.kept, self.reduced))
        return not kept or not reduced or max(kept) < min(reduced)
