"""How floats are rounded and sums are ordered: one legal execution of a program out of many.

By default every result is rounded to its declared type, and sums are as exact as can be. A policy changes it
by a program in other types (`facts.retyping`) and by kernels that are wrapped as the program is compiled:

- wide: everything in f64, the best estimate of what the program means;
- varied: every result is off by what its operation may be off by (`rounding_errors`), narrow types are
  rounded or not, and denormal numbers are flushed or not, as `Noise.member` says. A sum in another order is a
  sum of terms that are a little off, over n terms by about sqrt(n) roundings (Higham and Mary, "A new
  approach to probabilistic rounding error analysis", 2019);
- fused_excess: inside fusions nothing is rounded to a type narrower than f32, as XLA may do;
- unrounded: so do some instructions, wherever they are, and those that reduce precision do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import prod, sqrt
from typing import Any, TypeAlias

from hlotool.backends.numpy.custom_calls import backward_stability, computes_wide
from hlotool.backends.numpy.executions.changes import (
    Change,
    NormalisationOfTerms,
    Perturb,
    PerturbSaturating,
    PerturbTransform,
    ProductOfParts,
    RoundToNarrow,
    SumOfOneTerm,
    SumOfZeros,
    VarianceOfSquares,
)
from hlotool.backends.numpy.executions.flushed_products import FlushedProducts, sums_products
from hlotool.backends.numpy.executions.noise import Noise, PerturbMatrices, Stability
from hlotool.backends.numpy.executions.rounding_errors import (
    EXACT,
    SATURATING,
    Error,
    accumulator_of,
    declared_error,
    factor_error,
    order_error,
    power_error,
    sum_error,
    wide_error,
    zeros_of_terms,
)
from hlotool.backends.numpy.executions.sums import (
    PerturbTerms,
    is_long_sum,
    is_narrow_sum,
    sum_in_turn,
    summed_axes,
)
from hlotool.backends.numpy.registry import Calling, Kernel, Reading
from hlotool.facts.float_order import digits_of, epsilon, flush_threshold
from hlotool.facts.result_facts import does_arithmetic, sum_length
from hlotool.facts.retyping import Precision, Retyped, widened, without_narrow_floats
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.shapes.base import implied_source
from hlotool.ir.types import ArrayShape, ElementType, TupleShape, TypeClass, array_shapes, leaves
from hlotool.ir.walk import Context, contexts


@dataclass(frozen=True, slots=True)
class Policy:
    """What a backend does unlike the default.

    Attributes:
        wide: compute in f64.
        varied: follow `Noise.member`.
        fused_excess: keep f32 inside fusions.
        product_unit: what the hardware multiplies f32 in (`rounding_errors.sum_error`).
        f64_unit: relative error of an operation on f64 where the target makes it of pairs of f32; else 0.
        uncertain: of a wide program: instructions that are rounded in their declared types all the same
            (`facts.compiler_made`).
        factors: of these the constants that `product_unit` allows to be coarser.
        asked: of a wide program: to which bits `reduce-precision` rounds (`facts.retyping.widened`).
        unrounded: instructions whose results keep f32, or all bits where they reduce precision, be it in a
            reducer; all other narrow results are rounded. None leaves that to the execution.
    """

    wide: bool = False
    varied: bool = False
    fused_excess: bool = False
    product_unit: float = 0.0
    f64_unit: float = 0.0
    uncertain: frozenset[Instruction] = field(default=frozenset(), repr=False)
    factors: frozenset[Instruction] = field(default=frozenset(), repr=False)
    asked: frozenset[Precision] = frozenset()
    unrounded: frozenset[Instruction] | None = field(default=None, repr=False)

    def program(self, module: Module) -> Retyped:
        """What is executed in place of `module`."""
        if self.wide:
            copied = {i for i in self.uncertain if i.opcode == "constant"}
            return widened(module, copied, computes_wide, self.asked)
        if self.unrounded is not None:
            return without_narrow_floats(module, self.unrounded)
        if any(p.element_type.is_narrow_float for i in module.instructions() for p in array_shapes(i.shape)):
            return without_narrow_floats(module)
        return Retyped(module, {i: i for i in module.instructions()})


#: Elementwise operations on complex numbers that compute each part for itself.
_BY_PARTS = frozenset({"add", "convert", "subtract"})

_Changes: TypeAlias = Mapping[int, Change]
_Terms: TypeAlias = "Mapping[int, Perturb | PerturbMatrices | PerturbTerms]"


class KernelPolicy:
    """Wraps the kernels of one program.

    Args:
        policy: what to do.
        noise: which execution it is, and its random numbers.
        program: what is compiled.
        module: what it stands for.
    """

    def __init__(self, policy: Policy, noise: Noise, program: Retyped, module: Module) -> None:
        self._policy = policy
        self._noise = noise
        self._origins = program.origins
        self._unrounded = _fused(module) if policy.fused_excess else policy.unrounded

    def kernel(self, instruction: Instruction, kernel: Kernel) -> Kernel:
        """`kernel`, which executes `instruction`, under this policy."""
        origin = self._origins.get(instruction)
        if origin is None or isinstance(kernel, Reading) or not self._rounds(origin):
            return kernel
        changes = {
            number: self._change(origin, part, held)
            for number, ((_, part), (_, held)) in enumerate(
                zip(leaves(origin.shape), leaves(instruction.shape))
            )
            if isinstance(part, ArrayShape) and isinstance(held, ArrayShape) and part.element_type.is_inexact
        }
        if not changes:
            return kernel
        is_wide = self._policy.wide and instruction.shape != origin.shape
        terms = self._terms(origin, array_shapes(origin.shape)[0], is_wide) if self._policy.varied else {}
        if self._policy.varied and not isinstance(kernel, Calling):
            kernel = self._rewritten(origin, instruction, kernel, is_wide)
        return _around(kernel, terms, changes, isinstance(origin.shape, TupleShape))

    def _rewritten(
        self, origin: Instruction, held: Instruction, kernel: Callable[..., Any], is_wide: bool
    ) -> Callable[..., Any]:
        """What XLA expands, simplifies or sums as it does that, where it rounds otherwise."""
        if not is_wide and sums_products(origin):
            kernel = FlushedProducts(self._noise, kernel, held)
        if is_long_sum(origin) or is_narrow_sum(origin):
            kernel = sum_in_turn(self._noise, origin, held, kernel)
        if _is_complex_product(origin):
            product = array_shapes(origin.shape)[0]
            error = wide_error(origin, product, False) if is_wide else declared_error(origin, product)
            return ProductOfParts(self._noise, kernel, error.relative, error.zeros)
        if not origin.opcode.startswith("batch-norm"):
            return self._with_signs_of_zeros(origin, kernel)
        part = array_shapes(origin.shape)[-1]
        kind = ElementType.F64 if is_wide else part.element_type
        unit = epsilon(ElementType.F32 if kind.is_narrow_float else kind)
        given = origin.number("epsilon"), origin.integer("feature_index")
        if origin.opcode == "batch-norm-training":
            relative = (2 + sqrt(sum_length(origin, part))) * unit
            by_squares = VarianceOfSquares(self._noise, relative, *given)
            return lambda x, scale, offset: by_squares(kernel(x, scale, offset), offset)
        if origin.opcode == "batch-norm-inference":
            # A root, a quotient, a product and a sum each.
            of_terms = NormalisationOfTerms(self._noise, 4 * unit, *given)
            return lambda *values: of_terms(kernel(*values), *values)
        return kernel

    def _with_signs_of_zeros(self, origin: Instruction, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """A sum whose zeros have the signs that a simplifier leaves them."""
        if not _adds_real_floats(origin):
            return kernel
        if origin.opcode == "add":
            return SumOfZeros(self._noise, kernel)
        return SumOfOneTerm(self._noise, kernel, 1 if origin.opcode == "reduce" else 2)

    def _rounds(self, origin: Instruction) -> bool:
        """Whether results are rounded here; constants have kernels only where they are uncertain."""
        if origin.opcode == "constant" or _converts(origin):
            return True
        if origin.opcode == "fusion":
            return self._policy.fused_excess
        return does_arithmetic(origin)

    def _change(self, origin: Instruction, part: ArrayShape, held: ArrayShape) -> Change:
        """What happens to a result declared as `part` and computed in the type of `held`."""
        kind = part.element_type
        if self._policy.wide:
            if origin in self._policy.factors:
                return self._perturb(origin, Error(self._policy.product_unit, 0))
            is_kept = held.element_type is kind and kind.real_part is not ElementType.F64
            error = declared_error(origin, part) if is_kept else self._wide_error(origin, part)
            return self._perturb(origin, self._of_f64(kind, error))
        rounded = origin.opcode == "fusion" or _converts(origin)
        error = EXACT if rounded else declared_error(origin, part, self._policy.product_unit)
        if kind.is_narrow_float:
            keeps = None if self._unrounded is None else origin in self._unrounded
            return RoundToNarrow(self._noise, error, kind, keeps)
        return self._perturb(origin, self._of_f64(kind, error), flush_threshold(kind))

    def _of_f64(self, kind: ElementType, error: Error) -> Error:
        """The error of a result of a type that is declared, where the target has no f64 of its own."""
        unit = self._policy.f64_unit
        is_coarser = kind.real_part is ElementType.F64 and error.relative and unit > error.relative
        if not is_coarser:
            return error
        # What f32 holds is exact in a pair, too.
        return Error(unit, digits_of(ElementType.F64) - digits_of(ElementType.F32) if error.zeros else 0)

    def _perturb(self, origin: Instruction, error: Error, tiny: float = 0.0) -> Change:
        if origin.opcode == "fft":
            return PerturbTransform(self._noise, error, len(origin.integers("fft_length")))
        is_real = isinstance(origin.shape, ArrayShape) and not origin.shape.element_type.is_complex
        perturb = Perturb(self._noise, error, tiny, whole=not is_real and _multiplies(origin))
        return PerturbSaturating(perturb) if origin.opcode in SATURATING and is_real else perturb

    def _wide_error(self, origin: Instruction, part: ArrayShape) -> Error:
        is_uncertain = origin in self._policy.uncertain
        if _converts(origin) and not is_uncertain:
            return EXACT
        return wide_error(origin, part, is_uncertain)

    def _terms(self, origin: Instruction, part: ArrayShape, is_wide: bool) -> _Terms:
        """What happens to the operands that are summed or raised, in their declared types or in f64."""
        if (stability := backward_stability(origin)) is not None:
            return self._of_matrices(origin, part, stability, is_wide)
        error = self._term_error(origin, part)
        if not error.relative:
            return {}
        if is_wide:
            wide = wide_error(origin, part, is_uncertain=False)
            error = Error(wide.relative, wide.zeros if error.zeros else 0)
        change = self._of_terms(origin, part, error, is_wide)
        # Hardware that multiplies in a narrower type rounds both factors.
        narrow = factor_error(origin, part, 0.0 if is_wide else self._policy.product_unit)
        others = {1: Perturb(self._noise, narrow)} if narrow.relative else {}
        terms = {
            number: change
            for number in _summed_operands(origin)
            if isinstance(shape := origin.operands[number].shape, ArrayShape)
            and shape.element_type.is_inexact
        }
        return {**terms, **others}

    def _of_matrices(
        self, origin: Instruction, part: ArrayShape, stability: Stability, is_wide: bool
    ) -> dict[int, PerturbMatrices]:
        """Of a matrix of m rows and n columns m·n roundings meet in an element (Higham, theorem 19.4)."""
        kind = ElementType.F64 if is_wide else part.element_type.real_part
        roundings = max(prod(o.array_shape.dims[-2:]) for o in origin.operands)
        change = PerturbMatrices(self._noise, order_error(roundings, kind), stability)
        return dict.fromkeys(range(len(origin.operands)), change)

    def _of_terms(
        self, origin: Instruction, part: ArrayShape, error: Error, is_wide: bool
    ) -> Perturb | PerturbTerms:
        if origin.opcode == "power":
            return Perturb(self._noise, error)
        accumulator = ElementType.F64 if is_wide else accumulator_of(origin, part.element_type.real_part)
        length = sum_length(origin, part)
        makes_products = origin.row.opcode_class is Class.CONTRACTION
        return PerturbTerms(
            self._noise,
            error,
            order_error(length, accumulator),
            digits_of(accumulator),
            length,
            summed_axes(origin),
            1 if makes_products else None,
        )

    def _term_error(self, origin: Instruction, part: ArrayShape) -> Error:
        if origin.opcode == "power":
            return power_error(part)
        unit = self._policy.product_unit
        return Error(sum_error(origin, part, unit), zeros_of_terms(origin, part, unit))


def _converts(instruction: Instruction) -> bool:
    """Whether it does nothing to a number but give it another type, as it says or without a word."""
    if instruction.opcode == "convert":
        return True
    return implied_source(instruction) is not None and not does_arithmetic(instruction)


def _is_complex_product(instruction: Instruction) -> bool:
    """Whether each element of its result is one product of complex numbers."""
    shape = instruction.shape
    if instruction.opcode not in ("convolution", "dot", "multiply") or not isinstance(shape, ArrayShape):
        return False
    kinds = (shape.element_type, *(operand.array_shape.element_type for operand in instruction.operands))
    return all(kind.is_complex for kind in kinds) and sum_length(instruction, shape) == 1


def _multiplies(instruction: Instruction) -> bool:
    """Whether the parts of a complex result are mixed, instead of being computed each for itself."""
    if instruction.opcode == "reduce":
        return instruction.computation("to_apply").root.opcode == "multiply"
    kind = instruction.row.opcode_class
    return kind is Class.CONTRACTION or (kind is Class.ELEMENTWISE and instruction.opcode not in _BY_PARTS)


def _adds_real_floats(instruction: Instruction) -> bool:
    """Whether it adds two real floats, or sums one for each element of its result."""
    shape = instruction.shape
    if instruction.opcode not in ("add", "convolution", "dot", "reduce") or not isinstance(shape, ArrayShape):
        return False
    kinds = (operand.array_shape.element_type for operand in instruction.operands)
    return all(kind.family is TypeClass.FLOATING for kind in kinds) and sum_length(instruction, shape) == 1


def _summed_operands(instruction: Instruction) -> range:
    """The operands whose elements are the terms of sums, or factors of such terms; also those of a power."""
    operands = len(instruction.operands)
    match instruction.row.opcode_class, instruction.opcode:
        case _, "power":
            return range(operands)
        case _, "scatter":
            return range(operands // 2 + 1, operands)
        case _, "select-and-scatter":
            return range(1, 2)
        case Class.REDUCTION, _:
            return range(operands // 2)
        case Class.CONTRACTION, _:
            return range(1)
        case Class.LIBRARY, _:
            return range(operands)
    return range(0)


def _fused(module: Module) -> frozenset[Instruction]:
    """All instructions inside of fusions."""
    return frozenset(
        instruction
        for computation, found in contexts(module).items()
        if Context.FUSED in found
        for instruction in computation.instructions
    )


def _around(kernel: Calling | Callable[..., Any], terms: _Terms, changes: _Changes, is_tuple: bool) -> Kernel:
    """`kernel` with changed operands and results."""

    def before(values: list[Any]) -> list[Any]:
        for number, change in terms.items():
            if isinstance(change, PerturbTerms) and change.factor is not None:
                values[number] = change(values[number], values[change.factor])
            else:
                values[number] = change(values[number])
        return values

    def after(value: Any) -> Any:
        if not is_tuple:
            return changes[0](value)
        return _changed_leaves(value, changes, count())

    if isinstance(kernel, Calling):
        function = kernel.function
        return Calling(lambda values, run: after(function(before(values), run)))
    return lambda *values: after(kernel(*before(list(values))))


def _changed_leaves(value: Any, changes: _Changes, numbers: Iterator[int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_changed_leaves(part, changes, numbers) for part in value)
    change = changes.get(next(numbers))
    return value if change is None else change(value)
