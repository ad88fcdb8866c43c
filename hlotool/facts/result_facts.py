"""What a result leaf depends on, as far as comparing it goes, and what each instruction adds to that.

Facts flow forward through a module (`dataflow`): a leaf inherits those of everything it is computed from.
Instructions add randomness, decisions, rounding, sums.

XLA: operation_semantics.md says what each opcode computes; that backends sum in any order, keep f32 between
narrow operations and approximate transcendental functions follows from hlo_evaluator_typed_visitor.h,
elemental_ir_emitter.cc and the float-normalization and simplify-fp-conversions passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hlotool.facts import recognition
from hlotool.facts.float_order import epsilon
from hlotool.ir.attributes import ConvolutionDimensions
from hlotool.ir.devices import GroupMode, expand_groups, group_mode
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.shapes.base import implied_source
from hlotool.ir.types import ArrayShape, ElementType, Shape, array_shapes, leaves


class Origin(Struct, frozen=True, order=True):
    """The instruction that a fact comes from, as plain data."""

    line: int
    name: str
    opcode: str

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.opcode} %{self.name}{where}"


def origin_of(instruction: Instruction) -> Origin:
    """Name, opcode and line of `instruction`."""
    return Origin(instruction.line, instruction.name, instruction.opcode)


class Sum(Struct, frozen=True):
    """A float accumulation: the larger `error`, the more its result depends on the order of the terms.

    Attributes:
        length: number of terms, loops around it included.
        error: sqrt(length) ulps of the type that accumulates, as a relative error.
        origin: the instruction that adds.
    """

    length: int
    error: float
    origin: Origin


class Rounding(Struct, frozen=True):
    """The coarsest rounding of an intermediate float value.

    Attributes:
        epsilon: one ulp at 1 of the type or the precision rounded to.
        element_type: that type.
        origin: the first instruction that rounds to it.
    """

    epsilon: float
    element_type: ElementType
    origin: Origin


class Facts(Struct, frozen=True):
    """What is known of one leaf; every field is None where nothing of the kind is upstream.

    Attributes:
        random: an instruction whose result differs between legal executions.
        decision: an instruction that makes an integer or a pred of rounded floats: one ulp may flip it.
        rounding: coarsest float arithmetic upstream.
        sum: the accumulation with the largest error upstream.
        transcendental: an instruction that each backend approximates in its own way.
    """

    random: Origin | None = None
    decision: Origin | None = None
    rounding: Rounding | None = None
    sum: Sum | None = None
    transcendental: Origin | None = None

    def join(self, other: Facts) -> Facts:
        """Facts of something computed from both."""
        if self == other or other == NOTHING:
            return self
        if self == NOTHING:
            return other
        return Facts(
            _first(self.random, other.random),
            _first(self.decision, other.decision),
            _first(self.rounding, other.rounding, lambda r: (-r.epsilon, r.origin)),
            _first(self.sum, other.sum, lambda s: (-s.error, s.origin)),
            _first(self.transcendental, other.transcendental),
        )

    @property
    def control(self) -> Facts:
        """What passes from a predicate to the values that it selects: randomness and decisions."""
        return Facts(random=self.random, decision=self.decision)


#: Facts of a parameter or a constant.
NOTHING = Facts()


_T = TypeVar("_T")


def _first(a: _T | None, b: _T | None, rank: Callable[[_T], Any] = lambda fact: fact) -> _T | None:
    """Of two facts of one kind, each None where nothing is known, the one of lower rank."""
    return a or b if a is None or b is None else min(a, b, key=rank)


#: Their results differ between legal executions.
_RANDOM = frozenset({"rng", "rng-get-and-update-state"})

#: Elementwise operations whose float results are exact: they choose, split or flip signs.
EXACT = opcodes_with(Trait.EXACT)

#: A square root is rounded correctly everywhere.
_TRANSCENDENTAL = opcodes_with(Trait.TRANSCENDENTAL) - {"sqrt"}
_DOTS = opcodes_with(Class.CONTRACTION) - {"convolution"}

#: Collectives that combine values of several devices, arithmetically if their computation does.
_SUMMING_COLLECTIVES = opcodes_with(Class.COLLECTIVE) & opcodes_with(Trait.COMBINES)

#: One ulp at 1 of what the dot algorithms round their inputs to, by the part of the name that says so; the
#: split algorithms (`…_x3` and more) come close to f32 and are not listed.
_ALGORITHM_EPSILON = {"tf32_tf32_f32": 2.0**-10, "bf16_bf16_f32": 2.0**-7, "bf16_bf16_bf16": 2.0**-7}


def contribution(
    instruction: Instruction, inherited: Facts, repetitions: int, devices: int = 1
) -> tuple[Facts, ...]:
    """Facts of every leaf of the result.

    Args:
        instruction: one that depends on all of its operands (no call, no tuple).
        inherited: joined facts of the operands.
        repetitions: iterations of the loops around it.
        devices: of the program, all of which take part in a collective that names no groups.
    """
    if instruction.opcode in _RANDOM:
        inherited = inherited.join(Facts(random=origin_of(instruction)))
    parts = leaves(instruction.shape)
    return tuple(_leaf(instruction, inherited, part, repetitions, devices) for _, part in parts)


def _leaf(instruction: Instruction, inherited: Facts, part: Shape, repetitions: int, devices: int) -> Facts:
    if not isinstance(part, ArrayShape):
        return inherited
    if not part.element_type.is_inexact:
        return _decided(instruction, inherited)
    unit = rounding_epsilon(instruction, part.element_type)
    if unit == 0:
        return inherited
    origin = origin_of(instruction)
    own = Facts(
        rounding=Rounding(unit, part.element_type, origin),
        sum=_sum(instruction, part, origin, repetitions, devices),
        transcendental=origin if instruction.opcode in _TRANSCENDENTAL else None,
    )
    return inherited.join(own)


def _decided(instruction: Instruction, inherited: Facts) -> Facts:
    """Integers and preds made of rounded floats may flip when the float moves by an ulp."""
    if inherited.decision is None and inherited.rounding is not None:
        types = (t for o in instruction.operands for t in _element_types(o.shape))
        if any(t.is_inexact for t in types):
            return replace(inherited, decision=origin_of(instruction))
    return inherited


def _element_types(shape: Shape) -> Iterator[ElementType]:
    return (part.element_type for part in array_shapes(shape))


def rounding_epsilon(instruction: Instruction, target: ElementType) -> float:
    """One ulp at 1 of the rounding that the instruction does; 0 when its result is exact."""
    opcode, own = instruction.opcode, epsilon(target)
    if opcode == "convert":
        return _convert_epsilon(instruction.operands[0].element_type, target)
    if opcode == "reduce-precision":
        return max(own, 2.0 ** -instruction.integer("mantissa_bits"))
    if opcode in _DOTS:
        algorithm = instruction.text("algorithm", "").removeprefix("dot_")
        return max(own, _ALGORITHM_EPSILON.get(algorithm, 0.0))
    if does_arithmetic(instruction):
        return own
    source = implied_source(instruction)
    return 0.0 if source is None else _convert_epsilon(source, target)


def _convert_epsilon(given: ElementType, target: ElementType) -> float:
    own = epsilon(target)
    if given.is_inexact:
        return own if own > epsilon(given) else 0.0
    fits = given.bits <= 1 - math.log2(own) or given is ElementType.PRED
    return 0.0 if fits else own


def does_arithmetic(instruction: Instruction) -> bool:
    """Whether float results of `instruction` are rounded, instead of being chosen or moved."""
    if instruction.opcode == "custom-call":
        return instruction.custom_call_target not in recognition.EXACT
    match instruction.row.opcode_class:
        case Class.ELEMENTWISE:
            return instruction.opcode not in EXACT
        case Class.CONTRACTION | Class.LIBRARY:
            return True
        case Class.REDUCTION | Class.INDEXING | Class.COLLECTIVE:
            return any(map(_combines, instruction.called))
    return False


def _combines(reducer: Computation) -> bool:
    """Whether a reducer does arithmetic on floats, instead of only choosing among its arguments."""
    return any(_rounds(i) or any(map(_combines, i.called)) for i in reducer.instructions)


def _rounds(instruction: Instruction) -> bool:
    """Whether an instruction of a reducer does arithmetic on floats; its converts only widen and narrow."""
    if instruction.row.opcode_class is not Class.ELEMENTWISE or instruction.opcode in EXACT:
        return False
    return instruction.opcode != "convert" and any(t.is_inexact for t in _element_types(instruction.shape))


def sum_length(instruction: Instruction, part: ArrayShape, devices: int = 1) -> int:
    """How many terms one element of `part`, a leaf of the result, is summed from; 1 where it is no sum.

    Args:
        instruction: any.
        part: a leaf of its result.
        devices: of the program.
    """
    if instruction.opcode in _SUMMING_COLLECTIVES:
        return _participants(instruction, devices)
    count = _TERMS.get(instruction.opcode)
    return max(1, count(instruction, part)) if count is not None else 1


def _participants(instruction: Instruction, devices: int) -> int:
    """How many devices a collective combines; all of them where the groups do not say."""
    named = max(map(len, expand_groups(instruction.replica_groups)), default=0)
    if not named or group_mode(instruction) is GroupMode.CROSS_REPLICA_AND_PARTITION:
        return max(named, devices)
    return named


def _sum(
    instruction: Instruction, part: ArrayShape, origin: Origin, repetitions: int, devices: int
) -> Sum | None:
    length = repetitions * sum_length(instruction, part, devices)
    if length == 1:
        return None
    accumulator = part.element_type
    makes_products = instruction.row.opcode_class is Class.CONTRACTION or instruction.opcode == "custom-call"
    if makes_products and accumulator.is_narrow_float:
        accumulator = ElementType.F32
    return Sum(length, math.sqrt(length) * epsilon(accumulator), origin)


def _dot_terms(instruction: Instruction, _: ArrayShape) -> int:
    dims = instruction.operands[0].dims
    return prod(dims[d] for d in instruction.integers("lhs_contracting_dims", ()))


def _convolution_terms(instruction: Instruction, _: ArrayShape) -> int:
    labels, kernel = instruction.attribute("dim_labels", ConvolutionDimensions), instruction.operands[1].dims
    return kernel[labels.kernel_input_feature] * prod(kernel[d] for d in labels.kernel_spatial)


def _reduce_terms(instruction: Instruction, part: ArrayShape) -> int:
    return instruction.operands[0].array_shape.size // max(1, part.size)


def _window_terms(instruction: Instruction, _: ArrayShape) -> int:
    return prod(d.size for d in instruction.window.dims)


def _scatter_terms(instruction: Instruction, _: ArrayShape) -> int:
    """All updates may fall on one element."""
    indices = len(instruction.operands) // 2
    return instruction.operands[indices].array_shape.size


def _scan_terms(instruction: Instruction, _: ArrayShape) -> int:
    dims = instruction.operands[0].dims
    return prod(dims[d] for d in instruction.integers("dimensions", ()))


def _fft_terms(instruction: Instruction, _: ArrayShape) -> int:
    """A fast transform sums in log2(n) levels."""
    return 1 + math.ceil(math.log2(max(1, prod(instruction.integers("fft_length", ())))))


def _matrix_terms(instruction: Instruction, _: ArrayShape) -> int:
    return instruction.operands[0].dims[-1]


def _batch_norm_terms(instruction: Instruction, _: ArrayShape) -> int:
    shape = instruction.operands[0].array_shape
    return shape.size // max(1, shape.dims[instruction.integer("feature_index")])


def _custom_call_terms(instruction: Instruction, part: ArrayShape) -> int:
    """Products and convolutions by their sizes; any other library routine sums along a dimension at most."""
    target = instruction.custom_call_target
    shapes = [o.shape for o in instruction.operands if isinstance(o.shape, ArrayShape)]
    longest = max((max(s.dims, default=1) for s in shapes), default=1)
    if len(shapes) < 2:
        return longest
    if "conv" in target:
        return _library_convolution_terms(instruction, target, shapes[1], part)
    if "gemm" in target or "matmul" in target:
        return max(longest, math.isqrt(shapes[0].size * shapes[1].size // max(1, part.size)))
    return longest


def _library_convolution_terms(
    instruction: Instruction, target: str, second: ArrayShape, part: ArrayShape
) -> int:
    """How many products an element of a convolution, or of one of its gradients, is the sum of.

    `second` is the kernel, or the gradient of the output.

    Calls without labels say in their configuration which dimension holds the output's features: one whose
    size both the kernel and the output have.
    """
    labels = instruction.attribute("dim_labels", ConvolutionDimensions, None)
    if labels is None:
        return second.size // max(1, min((d for d in second.dims if d in part.dims), default=1))
    if "BackwardFilter" in target:
        return second.size // max(1, second.dims[labels.output_feature])
    if "BackwardInput" in target:
        parts = instruction.integer("feature_group_count", 1)
        return second.size // max(1, second.dims[labels.kernel_input_feature] * parts)
    return second.size // max(1, second.dims[labels.kernel_output_feature])


_TERMS: dict[str, Callable[[Instruction, ArrayShape], int]] = {
    "dot": _dot_terms,
    "ragged-dot": _dot_terms,
    "scaled-dot": _dot_terms,
    "convolution": _convolution_terms,
    "reduce": _reduce_terms,
    "reduce-window": _window_terms,
    "select-and-scatter": _window_terms,
    "scatter": _scatter_terms,
    "scan": _scan_terms,
    "fft": _fft_terms,
    "cholesky": _matrix_terms,
    "triangular-solve": _matrix_terms,
    "batch-norm-grad": _batch_norm_terms,
    "batch-norm-training": _batch_norm_terms,
    "custom-call": _custom_call_terms,
}
