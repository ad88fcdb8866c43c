"""Between floats and numbers that are no words, and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.blockwise import key
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import means, plain
from hlotool.backends.field.snapping import dyadic
from hlotool.backends.field.trial import embedded
from hlotool.backends.field.unknown import drawn
from hlotool.backends.field.values import (
    held_instruction,
    is_complex,
    is_float,
    pair,
    parts,
    residues,
)
from hlotool.backends.numpy.casting import converter
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.registry import RULES, Calling, Kernel
from hlotool.facts.retyping import retyped_shape, to_f64
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, Shape, TupleShape

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
    float's, or of a complex number, are no function of real numbers.
    """
    old, new = instruction.operands[0].element_type, instruction.element_type
    if old is new:
        return RULES[instruction.opcode](held_instruction(instruction), lowering)
    if old.is_complex or new.is_complex or (old.is_floating and new.is_floating):
        raise lowering.unsupported(instruction, f"the bits of {old} as {new} are no function of real numbers")
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
    integers = replace(instruction, shape=replace(shape, element_type=ElementType.S64, layout=None))
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
