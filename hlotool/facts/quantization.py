"""Float8 in a program: which tensors are rounded to it, how they are scaled, which products read them.

The patterns: xla/service/gpu/transforms/gemm_rewriter.cc (`MatchFp8Param`: a convert from float8, and a
multiplication or division by a broadcast scale before the product; `F8ScaleD`, `F8ConvertD`: a scale, a clamp
and a convert behind it); Transformer Engine and Flax's fp8_ops, which take the scale from an argument that
holds the largest magnitudes of earlier steps.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlotool.facts.flow import reducing_opcode
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, array_shapes

FLOAT8 = frozenset(t for t in ElementType if t.is_floating and t.bits == 8)

#: What gives the same numbers in other dimensions, or in another type.
_CARRYING = opcodes_with(Trait.SAME_ORDER, Trait.CONVERTS, Trait.FORWARDS) | {"transpose"}
#: What a tensor may go through, besides, on its way to a product (`FindF8SubgraphRecursive` there).
_MOVING = _CARRYING | opcodes_with(Trait.MOVES) - {"concatenate"} | {"dynamic-slice"}
#: What makes a tensor, or is one to begin with.
_MAKING = opcodes_with(Trait.ROUNDS, Trait.STRUCTURE) | {"custom-call", "bitcast-convert"}
#: What applies a scale to a factor of a product.
_SCALING = frozenset({"multiply", "divide"})
#: Calls of libraries that multiply tensors of float8.
F8_CALLS = frozenset({"__cublas$lt$matmul$f8", "__cublas$lt$matmul$mx", "__cudnn$convForwardGraph"})


class Scaling(enum.Enum):
    """Where a scale comes from."""

    NONE = "none"
    CONSTANT = "constant"
    #: From the largest magnitude of the tensor itself.
    DYNAMIC = "dynamic"
    #: An argument, or what arguments say of earlier steps.
    DELAYED = "delayed"


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """A tensor of a float8 type that is not merely moved.

    Attributes:
        tensor: it, as it is made, or handed to the computation.
        source: what it is rounded from, before a clamp; None of arguments, and of what a product returns.
        unscaled: that before it is scaled; `source` where there is no scale.
        scale: what is applied; None likewise.
        divides: the scale divides.
        clamped: what is beyond the type's range is clamped before it is rounded.
        scaling: where the scale comes from.
    """

    tensor: Instruction
    source: Instruction | None = None
    unscaled: Instruction | None = None
    scale: Instruction | None = None
    divides: bool = False
    clamped: bool = False
    scaling: Scaling = Scaling.NONE

    @property
    def kind(self) -> ElementType:
        """Its type."""
        return next(_f8_parts(self.tensor))


@dataclass(frozen=True, slots=True, eq=False)
class F8Product:
    """A product that reads tensors of float8.

    Attributes:
        product: dot, convolution, or call of a library.
        factors: the tensors that it reads, by the number of the operand.
        path: what stands between these and it, operands first: conversions, scales, transpositions.
        is_scaled: a factor is multiplied by its scale before the product, as before XLA's GemmRewriter.
    """

    product: Instruction
    factors: dict[int, Instruction]
    path: Sequence[Instruction]
    is_scaled: bool


class Float8:
    """What a program in which calls and fusions are inlined has of float8.

    Args:
        module: the program.
    """

    def __init__(self, module: Module) -> None:
        self._module = module

    @cached_property
    def tensors(self) -> list[Quantized]:
        """All of them, in order."""
        found = (self._quantized(i) for i in self._instructions() if any(True for _ in _f8_parts(i)))
        return [one for one in found if one is not None]

    @cached_property
    def products(self) -> list[F8Product]:
        """All products that read any, in order."""
        made = {one.tensor for one in self.tensors}
        found = (_product(i, made) for i in self._instructions() if _is_product(i))
        return [one for one in found if one.factors]

    def _instructions(self) -> Iterator[Instruction]:
        embedded = {
            c
            for i in self._module.instructions()
            if i.opcode not in ("while", "conditional")
            for c in i.called
        }
        for computation in self._module.computations:
            if computation not in embedded:
                yield from computation.instructions

    def _quantized(self, instruction: Instruction) -> Quantized | None:
        opcode = instruction.opcode
        if opcode == "convert":
            return _scaled(instruction)
        if opcode not in _MAKING - _CARRYING or not isinstance(instruction.shape, ArrayShape):
            return None
        if opcode == "get-tuple-element":
            made_by = instruction.operands[0]
            return Quantized(instruction) if made_by.opcode in ("custom-call", "parameter") else None
        return Quantized(instruction)


def _f8_parts(instruction: Instruction) -> Iterator[ElementType]:
    return (part.element_type for part in array_shapes(instruction.shape) if part.element_type in FLOAT8)


def _scaled(convert: Instruction) -> Quantized:
    """What a conversion to float8 rounds, up to the tensor that was scaled for it."""
    source, clamped = _before_clamp(convert.operands[0])
    if source.opcode not in _SCALING:
        return Quantized(convert, source, source, clamped=clamped)
    for number in (1, 0) if source.opcode == "multiply" else (1,):
        unscaled, scale = _carried(source.operands[1 - number]), _spread(source.operands[number])
        if scale is not None and (scaling := _scaling(scale, unscaled)) is not None:
            divides = source.opcode == "divide"
            return Quantized(convert, source, unscaled, scale, divides, clamped, scaling)
    return Quantized(convert, source, source, clamped=clamped)


def _before_clamp(value: Instruction) -> tuple[Instruction, bool]:
    """What is clamped between constants, or converted, and whether it is clamped."""
    clamped = False
    while True:
        if value.element_type in FLOAT8:
            return value, clamped
        if value.opcode == "clamp":
            value, clamped = value.operands[1], True
        elif value.opcode in ("minimum", "maximum") and (bounded := _bounded(value)) is not None:
            value, clamped = bounded, True
        elif value.opcode in _CARRYING - {"transpose"} and value.operands[0].element_type.is_floating:
            value = value.operands[0]
        else:
            return value, clamped


def _bounded(value: Instruction) -> Instruction | None:
    """The operand that a `minimum` or `maximum` bounds by a constant."""
    for number in (0, 1):
        scale = _spread(value.operands[number])
        bound = value.operands[number] if scale is None else scale
        if _is_constant(bound):
            return value.operands[1 - number]
    return None


def _carried(value: Instruction) -> Instruction:
    """What a value is a conversion of."""
    while value.opcode == "convert" and value.operands[0].element_type.is_floating:
        value = value.operands[0]
    return value


def _spread(value: Instruction) -> Instruction | None:
    """The smaller array that is broadcast to `value`; None where none is."""
    size = value.array_shape.size
    while value.opcode == "broadcast" or value.opcode in _CARRYING:
        value = value.operands[0]
        if not isinstance(value.shape, ArrayShape):
            return None
    return value if value.array_shape.size < size or size == 1 else None


def _is_constant(value: Instruction) -> bool:
    return all(one.opcode == "constant" for one in _sources(value))


def _sources(value: Instruction) -> Iterator[Instruction]:
    """What a value is computed from in its computation, and that reads nothing; loops and calls stop here."""
    seen = {value}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if not one.operands:
            yield one
        for operand in one.operands:
            if operand not in seen:
                seen.add(operand)
                waiting.append(operand)


def _scaling(scale: Instruction, unscaled: Instruction) -> Scaling | None:
    """Where a scale comes from; None of a vector that is no scale as far as that can be told."""
    if _is_constant(scale):
        return Scaling.CONSTANT
    if _reads_amax_of(scale, unscaled):
        return Scaling.DYNAMIC
    # A vector that is an argument may be the weight of a normalisation as well.
    return Scaling.DELAYED if scale.array_shape.size == 1 else None


def _reads_amax_of(scale: Instruction, unscaled: Instruction) -> bool:
    """Whether a scale is computed from the largest magnitudes of a tensor."""
    seen = {scale}
    waiting = [scale]
    while waiting:
        one = waiting.pop()
        if one.opcode == "reduce" and _is_maximum(one) and _is_magnitude_of(one.operands[0], unscaled):
            return True
        for operand in one.operands:
            if operand not in seen:
                seen.add(operand)
                waiting.append(operand)
    return False


def _is_maximum(reduce: Instruction) -> bool:
    return all(reducing_opcode(computation) == "maximum" for computation in reduce.called)


def _is_magnitude_of(value: Instruction, unscaled: Instruction) -> bool:
    while value is not unscaled and (value.opcode in _CARRYING or value.opcode in ("abs", "reduce")):
        value = value.operands[0]
    return value is unscaled or _carried(value) is _moved(unscaled)


def _moved(value: Instruction) -> Instruction:
    while value.opcode in _CARRYING:
        value = value.operands[0]
    return value


def _is_product(instruction: Instruction) -> bool:
    is_product = instruction.row.opcode_class is Class.CONTRACTION
    return is_product or instruction.custom_call_target in F8_CALLS


def _product(product: Instruction, made: set[Instruction]) -> F8Product:
    """A product, and the tensors of float8 among its factors."""
    factors: dict[int, Instruction] = {}
    path: dict[Instruction, None] = {}
    is_scaled = False
    for number, operand in enumerate(product.operands[:2]):
        steps: list[Instruction] = []
        while operand not in made:
            if operand.opcode in _MOVING:
                inner = operand.operands[0]
            elif operand.opcode == "select":
                inner = operand.operands[1]
            elif operand.opcode in _SCALING and (factor := _scaled_factor(operand)) is not None:
                inner = factor
                is_scaled = True
            else:
                break
            steps.append(operand)
            operand = inner
        if operand in made:
            factors[number] = operand
            path |= dict.fromkeys(reversed(steps))
    return F8Product(product, factors, list(path), is_scaled and bool(factors))


def _scaled_factor(scaling: Instruction) -> Instruction | None:
    """What a multiplication or division applies a scale to."""
    for number in (1, 0) if scaling.opcode == "multiply" else (1,):
        if _spread(scaling.operands[number]) is not None:
            return scaling.operands[1 - number]
    return None
