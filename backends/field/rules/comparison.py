"""Comparisons, choices, sorting by the rank of pseudo-real values; conversions; random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from msgspec import structs

from hlotool.backends.field import words as w
from hlotool.backends.field.blockwise import key
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import call_means, means, plain
from hlotool.backends.field.snapping import dyadic
from hlotool.backends.field.trial import DIRECTIONS, Trial, embedded
from hlotool.backends.field.unknown import drawn
from hlotool.backends.field.values import (
    held_instruction,
    is_complex,
    is_float,
    pair,
    parts,
    residues,
)
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.comparators import SortKey
from hlotool.backends.numpy.elementwise import for_sizes
from hlotool.backends.numpy.kernels.annotation_calls import finds_largest
from hlotool.backends.numpy.kernels.sort import order_by_keys
from hlotool.backends.numpy.lanes import lanes, vectorised
from hlotool.backends.numpy.ordering import stable_order, take_along_last
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.precision import converter
from hlotool.backends.numpy.registry import RULES, Calling, Kernel
from hlotool.facts.retyping import retyped_shape, to_f64
from hlotool.facts.scalar_form import ScalarForm, select_outputs
from hlotool.facts.signs import Order
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, Shape, TupleShape, array_shapes


@means("compare")
def compare(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """a against b; NaN only differs, unless the order is total: there it is the largest."""
    direction = instruction.text("direction")
    trial = lowering.trial
    if direction not in DIRECTIONS:
        raise lowering.unsupported(instruction, f"comparison direction {direction}")
    if is_complex(instruction.operands[0].shape):
        return for_sizes(lambda a, b: _equal_pairs(trial, a, b) ^ (direction == "NE"), instruction)
    is_total = instruction.attributes.get("type") == "TOTALORDER"
    known = lowering.order(*instruction.operands)
    return for_sizes(lambda a, b: trial.compare(direction, a, b, is_total, known), instruction)


def _equal_pairs(trial: Trial, a: Array, b: Array) -> Array:
    real, imaginary = (trial.compare("EQ", x, y) for x, y in zip(parts(a), parts(b)))
    return real & imaginary


@means("maximum", "minimum")
def extremum(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The larger or smaller; NaN wins."""
    known = lowering.order(*instruction.operands)
    is_maximum = instruction.opcode == "maximum"
    if known is not None:
        takes_first = is_maximum is (known is Order.AT_LEAST)
        return for_sizes(lambda a, b: a if takes_first else b, instruction)
    trial = lowering.trial
    return for_sizes(
        lambda a, b: trial.kappa.maximum(a, b) if is_maximum else trial.kappa.minimum(a, b), instruction
    )


@means("clamp")
def clamp(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """min(max(low, x), high)."""
    trial = lowering.trial
    low, x, high = instruction.operands
    is_above, is_below = (lowering.order(*pair) is Order.AT_MOST for pair in ((low, x), (x, high)))

    def clamped(low: Words, x: Words, high: Words) -> Words:
        raised = x if is_above else trial.kappa.maximum(low, x)
        return raised if is_below else trial.kappa.minimum(raised, high)

    return for_sizes(clamped, instruction)


#: From operands with the sorted dimension last to the order along it.
_Order: TypeAlias = Callable[[Sequence[Array]], Array]


@means("sort")
def sort(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """All operands along one dimension, stable; see the numpy backend's."""
    (axis,) = instruction.integers("dimensions")
    order = _order_of(instruction, lowering)

    def kernel(*operands: Array) -> tuple[Array, ...]:
        rows = [np.moveaxis(operand, axis, -1) for operand in operands]
        chosen = order(rows)
        return tuple(np.moveaxis(take_along_last(row, chosen), -1, axis) for row in rows)

    if isinstance(instruction.shape, TupleShape):
        return kernel
    return lambda operand: kernel(operand)[0]


def _order_of(instruction: Instruction, lowering: FieldLowering) -> _Order:
    less = lanes(instruction.computation("to_apply"), lowering)
    return order_by_keys(less, partial(_by_keys, lowering=lowering))


def _by_keys(form: ScalarForm, keys: Sequence[SortKey], lowering: FieldLowering) -> _Order:
    evaluate = vectorised(select_outputs(form, [key.value for key in keys]), lowering)
    trial = lowering.trial

    def order(rows: Sequence[Array]) -> Array:
        values = evaluate(*(row for row in rows for _ in range(2)))
        return stable_order([_ranks(trial, key, value) for key, value in zip(keys, values)])

    return order


def _ranks(trial: Trial, key: SortKey, values: Array) -> Array:
    """See `SortKey.ranks`."""
    if not key.value.element_type.is_floating:
        return key.ranks(values)
    numbers = trial.kappa.places(values)
    return ~numbers if key.descending else numbers


@means("topk")
def topk(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The `k` largest (or smallest) elements of the last dimension, in order, and their indices."""
    if not is_float(instruction.operands[0].shape):
        raise lowering.unsupported(instruction, "topk of complex numbers: they have no order")
    return _top(lowering.trial, instruction.integer("k"), instruction.flag("largest", True))


@call_means("TopK", "__gpu$TopK")
def topk_call(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """As `topk`; the called computation says whether the largest or the smallest are wanted."""
    if not is_float(instruction.operands[0].shape):
        return RULES["custom-call"](instruction, lowering)
    k = array_shapes(instruction.shape)[0].dims[-1]
    return _top(lowering.trial, k, finds_largest(instruction, lowering))


def _top(trial: Trial, k: int, largest: bool) -> Kernel:
    def kernel(operand: Words) -> tuple[Array, Array]:
        numbers = trial.kappa.places(operand)
        order = stable_order([~numbers if largest else numbers])[..., :k]
        return take_along_last(operand, order), order.astype(np.int32)

    return kernel


_To = Callable[[Any], Any]


@means("convert")
def convert(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The same number in another type."""
    source, target = instruction.operands[0].element_type, instruction.element_type
    if source.is_complex and target.is_complex:
        return lambda z: z
    real = _real_conversion(source.real_part, target.real_part, lowering)
    if source.is_complex:
        return lambda z: real(parts(z)[0])
    if target.is_complex:
        return lambda x: pair(real(x), w.ZERO)
    return real


def _real_conversion(source: ElementType, target: ElementType, lowering: FieldLowering) -> _To:
    trial = lowering.trial
    if source.is_floating and target.is_floating:
        return lambda x: x
    if target is ElementType.PRED:
        return lambda x: ~w.equal(x, w.ZERO)
    if source.is_floating:
        to_integer = converter(ElementType.F64, target)
        return lambda x: to_integer(trial.kappa(x))
    return embedded


@means("is-finite", "stochastic-convert")
def of_sizes(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel on the pseudo-real values, as f64.

    The fraction by which `stochastic-convert` decides is that of the pseudo-real value: arithmetic in its
    place has another one.
    """
    trial = lowering.trial
    if instruction.opcode == "stochastic-convert":
        lowering.use_box(instruction, instruction.opcode)
    operands = tuple(
        Instruction(o.name, "parameter", retyped_shape(o.shape, to_f64), parameter_number=n)
        for n, o in enumerate(instruction.operands)
    )
    function = plain(RULES[instruction.opcode](replace(instruction, operands=operands), lowering.numbers))
    sized = [is_float(o.shape) for o in instruction.operands]
    return lambda *values: function(*(trial.kappa(v) if s else v for v, s in zip(values, sized)))


@means("bitcast-convert")
def bitcast_convert(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The bits of a float as an integer, and back.

    The bits are those of the pseudo-real value, rounded to the declared type. Those of a float as another
    float's, or of a complex number, are no mathematical function of its value.
    """
    old, new = instruction.operands[0].element_type, instruction.element_type
    if old is new:
        return RULES[instruction.opcode](held_instruction(instruction), lowering)
    if old.is_complex or new.is_complex or (old.is_floating and new.is_floating):
        raise lowering.unsupported(
            instruction, f"the bits of {old} as {new} are no mathematical function of its value"
        )
    reinterpreted = plain(RULES[instruction.opcode](instruction, lowering.numbers))
    if new.is_floating:
        constants = lowering.constants
        return lambda bits: constants.words_of_bits(reinterpreted(bits))
    trial, rounded = lowering.trial, converter(ElementType.F64, old)
    trial.digits = min(trial.digits, int(ml_dtypes.finfo(dtype_of(old)).nmant))  # type: ignore[no-untyped-call]
    return lambda x: reinterpreted(np.asarray(rounded(trial.kappa(x))))


@means("bitcast")
def bitcast(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The same buffer in another layout; in another type as `bitcast-convert`."""
    return bitcast_convert(instruction, lowering)


@means("iota")
def iota(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """0, 1, 2, … along one dimension, as exact numbers."""
    shape = instruction.array_shape
    integers = replace(instruction, shape=structs.replace(shape, element_type=ElementType.S64, layout=None))
    numbers = embedded(plain(RULES["iota"](integers, lowering.numbers))())
    value = pair(numbers, w.ZERO) if is_complex(shape) else numbers
    return lambda: value


@means("rng-bit-generator")
def random_floats(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's random bits, read as floats."""
    generate = plain(RULES["rng-bit-generator"](instruction, lowering.numbers))

    def words(shape: Shape, value: Any) -> Any:
        return dyadic(np.asarray(value).astype(np.float64)) if is_float(shape) else value

    def kernel(state: Any) -> Any:
        found = generate(state)
        if not isinstance(instruction.shape, TupleShape):
            return words(instruction.shape, found)
        return tuple(words(shape, part) for shape, part in zip(instruction.shape.elements, found))

    return kernel


@means("rng")
def rng(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Numbers keyed by the distribution, its limits and the order of execution, the same in every program.

    What they are keyed by is known to `rng` alone: a program that draws them by other instructions differs.
    """
    distribution = instruction.text("distribution")
    lowering.use_box(instruction, f"rng {distribution}")
    trial = lowering.trial

    def kernel(limits: list[Any], run: Run) -> Any:
        number = int(run.generator.integers(1 << 62))
        low, high = (int(residues(o.shape, limit)) for o, limit in zip(instruction.operands, limits))
        return drawn(instruction.shape, key("rng", trial.seed, distribution, low, high, number))

    return Calling(kernel)
