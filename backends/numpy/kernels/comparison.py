"""Comparisons and choices, conversion of element types, rounding to integers and to fewer bits."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.bit_patterns import reinterpret
from hlotool.backends.numpy.elementwise import Function, elementwise, for_sizes
from hlotool.backends.numpy.integers import choose, some
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ordering import DIRECTIONS, SIGN_MAGNITUDE, total_order_keys
from hlotool.backends.numpy.precision import converter, widen
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType


@lowers("compare")
def compare(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a against b.

    Floats compare as IEEE says (NaN only NE everything), or with `type=TOTALORDER` by sign and magnitude of
    their bits: -NaN < -inf < … < -0 < +0 < … < inf < NaN. Complex numbers know EQ and NE only.
    XLA: operation_semantics.md#compare.
    """
    direction = instruction.text("direction")
    if direction not in DIRECTIONS:
        raise lowering.unsupported(instruction, f"comparison direction {direction}")
    function = DIRECTIONS[direction]
    if instruction.attributes.get("type") == "TOTALORDER":
        return _total_order(instruction, lowering, function)
    equality = function if direction in ("EQ", "NE") else None
    return elementwise(
        instruction, lowering, pred=function, integer=function, floating=function, complexes=equality
    )


#: From so many elements on it pays to see whether they are numbers of one zero, which compare as they are.
_MANY = 4096


def _total_order(instruction: Instruction, lowering: Lowering, function: Function) -> Kernel:
    def keyed(a: Array, b: Array) -> Any:
        if a.size >= _MANY and not any(floats.has_negative_zero(x) or some(np.isnan(x)) for x in (a, b)):
            return function(a, b)
        return function(total_order_keys(a), total_order_keys(b))

    element_type = instruction.operands[0].element_type
    if element_type in SIGN_MAGNITUDE:
        return for_sizes(keyed, instruction)
    return elementwise(instruction, lowering, pred=function, integer=function, floating=keyed)


@lowers("maximum")
def maximum(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The larger; NaN wins; +0 is larger than -0; `or` on pred. XLA: operation_semantics.md#max."""
    return elementwise(instruction, lowering, pred=operator.or_, integer=np.maximum, floating=floats.maximum)


@lowers("minimum")
def minimum(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The smaller; NaN wins; -0 is smaller than +0; `and` on pred. XLA: operation_semantics.md#min."""
    return elementwise(instruction, lowering, pred=operator.and_, integer=np.minimum, floating=floats.minimum)


@lowers("clamp")
def clamp(instruction: Instruction, lowering: Lowering) -> Kernel:
    """min(max(low, x), high): NaN anywhere is NaN, and `high` wins over a larger `low`.

    The limits may be scalars where x is not. XLA: operation_semantics.md#clamp.
    """
    return elementwise(
        instruction,
        lowering,
        pred=_clamped(operator.or_, operator.and_),
        integer=_clamped(np.maximum, np.minimum),
        floating=_clamped(floats.maximum, floats.minimum),
    )


def _clamped(larger: Function, smaller: Function) -> Function:
    return lambda low, x, high: smaller(larger(low, x), high)


@lowers("select")
def select(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a where the predicate holds, b elsewhere; a scalar predicate chooses one array whole.

    XLA: operation_semantics.md#select.
    """
    if instruction.operands[0].array_shape.rank == 0 and instruction.array_shape.rank > 0:
        return lambda p, a, b: a if p else b
    return for_sizes(choose, instruction)


@lowers("is-finite")
def is_finite(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Neither NaN nor infinite. XLA: operation_semantics.md#isfinite."""
    return elementwise(instruction, lowering, floating=np.isfinite)


@lowers("floor")
def floor(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The next integer below. XLA: operation_semantics.md#floor."""
    return elementwise(instruction, lowering, floating=np.floor)


@lowers("ceil")
def ceil(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The next integer above. XLA: operation_semantics.md#ceil."""
    return elementwise(instruction, lowering, floating=np.ceil)


@lowers("round-nearest-even")
def round_nearest_even(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The nearest integer, halfway cases to the even one. XLA: operation_semantics.md#roundnearesteven."""
    return elementwise(instruction, lowering, floating=np.rint)


@lowers("round-nearest-afz")
def round_nearest_afz(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The nearest integer, halfway cases away from zero. XLA: operation_semantics.md#round."""
    return elementwise(instruction, lowering, floating=floats.round_nearest_afz)


@lowers("reduce-precision")
def reduce_precision(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Rounding to `exponent_bits` and `mantissa_bits`.

    The exponent is cut where it has fewer bits than the type's own format; f4 and f8 are f16 here, as on
    XLA's CPU, and f8e8m0fnu is f32. XLA: operation_semantics.md#reduceprecision. With 0 mantissa bits XLA's
    evaluator turns NaN into infinity.
    """
    element_type = instruction.element_type
    exponent_bits = instruction.integer("exponent_bits")
    mantissa_bits = instruction.integer("mantissa_bits")
    reduce = partial(floats.reduce_precision, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
    if element_type in (ElementType.F16, ElementType.BF16):
        return reduce
    if element_type.bits <= 8 and element_type is not ElementType.F8E8M0FNU:
        return elementwise(instruction, lowering, floating=lambda x: _in_f16(reduce, x))
    return elementwise(instruction, lowering, floating=reduce)


def _in_f16(function: Function, x: Array) -> Array:
    """`function` of f32 values that f16 holds exactly."""
    result: Array = function(x.astype(np.float16))
    return result.astype(x.dtype)


@lowers("stochastic-convert")
def stochastic_convert(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A float made integer: truncated, then one further from zero if the random bits are below the fraction.

    The second operand holds unsigned numbers as wide as the float; they are compared with as many leading
    bits of the dropped fraction. NaN becomes 0 and what is too large saturates.
    XLA: hlo_evaluator.cc (StochasticConvertOp).
    """
    source, noise = (operand.element_type for operand in instruction.operands)
    target = instruction.element_type
    if not (source.is_floating and noise.is_unsigned and target.is_integer):
        raise lowering.unsupported(instruction, f"stochastic-convert from {source} and {noise} to {target}")
    to_integer = converter(_wide(source), target)

    def kernel(values: Any, random: Any) -> Array:
        x = widen(values, source)
        whole = np.trunc(x)
        fraction = np.ldexp(np.abs(np.subtract(x, whole, dtype=np.float64)), noise.bits)
        up = random.astype(np.uint64) < fraction.astype(np.uint64)
        return to_integer(whole + np.copysign(up.astype(x.dtype), x))

    return kernel


def _wide(source: ElementType) -> ElementType:
    """The type in which `widen` holds values of `source`."""
    return ElementType.F32 if source.is_narrow_float else source


# From one element type to another.


@lowers("convert")
def convert(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The same value in another type; `casting` has the rules. XLA: #convertelementtype."""
    source = instruction.operands[0].element_type
    return converter(source, instruction.element_type)


@lowers("bitcast-convert")
def bitcast_convert(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The same bits in another type.

    A wider type joins the elements of the last dimension, a narrower one adds a last dimension of its parts,
    lowest bits first. Of types of one width, scalars may be arrays of lanes.
    XLA: operation_semantics.md#bitcastconverttype.
    """
    source, target = instruction.operands[0].array_shape, instruction.array_shape
    old, new = source.element_type, target.element_type
    if source.is_dynamic or target.is_dynamic:
        raise lowering.unsupported(instruction, "bitcast-convert of an array of dynamic size")
    if source.size * old.bits != target.size * new.bits:
        raise lowering.unsupported(instruction, f"{source} and {target} have unequal numbers of bits")
    if old.bits == new.bits:
        return lambda x: reinterpret(x, old, new).reshape(x.shape)
    dims = target.dims
    return lambda x: reinterpret(x, old, new).reshape(dims)
