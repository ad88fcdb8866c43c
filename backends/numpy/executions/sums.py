"""Orders and terms of sums: one running sum, which rounds worst; terms that are exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.numpy.contraction import operand_dtype
from hlotool.backends.numpy.executions.noise import Noise, looks_exact
from hlotool.backends.numpy.executions.rounding_errors import Error
from hlotool.backends.numpy.kernels.convolution import convolver, in_terms_of_sums
from hlotool.backends.numpy.kernels.dot import dot_dimensions
from hlotool.backends.numpy.kernels.reduce import rows_of, running_axis
from hlotool.backends.numpy.precision import narrow, widen
from hlotool.backends.numpy.windows import output_sizes, window_slices
from hlotool.facts.result_facts import sum_length
from hlotool.facts.scalar_form import monoid_opcodes, scalar_form
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, array_shapes

#: Terms that are summed before they are added to the running sum, by execution: each alone, as many as XLA's
#: code for a vector takes at a time, and a block of a product of matrices.
STEPS = (1, 8, 64)
#: Shorter sums are not in question: 250 equal numbers in turn are at most 2.1 times as far off as perturbed
#: ones, 400 are 2.7 times (60 products of vectors each), and results are wrong from 3 on.
_LONG = 256
#: Additions of one sum, and of a program: what takes more stays as it is. Large products are made in blocks.
_MOST, _MOST_OF_PROGRAM = 1 << 27, 1 << 30
#: Places in a window, and terms of a sum in a narrow type, each of which is a round of a loop.
_ROUNDS = 1 << 17
#: Results of so many elements are made by products of narrow matrices, others term by term.
_LARGE = 4096

#: From a step and operands to a result.
_InTurn: TypeAlias = Callable[..., Any]


def has_long_sums(module: Module) -> bool:
    """Whether there are sums whose terms may be added in turn, and not too many of them."""
    additions = sum(_additions(i) for i in module.instructions() if is_long_sum(i))
    return 0 < additions <= _MOST_OF_PROGRAM


def is_long_sum(instruction: Instruction) -> bool:
    """Whether it adds up many floats for each element of its result."""
    return _sums_floats(instruction) and 0 < _additions(instruction) <= _MOST


def has_narrow_sums(module: Module) -> bool:
    """Whether there are sums of a narrow type that round it at every addition."""
    return any(map(is_narrow_sum, module.instructions()))


def is_narrow_sum(instruction: Instruction) -> bool:
    """Whether it adds up many floats of a narrow type for each element of its result, and not too many."""
    if instruction.opcode != "reduce" or not isinstance(instruction.shape, ArrayShape):
        return False
    kind = instruction.shape.element_type
    terms = sum_length(instruction, instruction.shape)
    return kind.is_narrow_float and _LONG <= terms <= _ROUNDS and _adds_up(instruction)


def _adds_up(reduction: Instruction) -> bool:
    form = scalar_form(reduction.computation("to_apply"))
    return form is not None and monoid_opcodes(form) == ["add"]


def _sums_floats(instruction: Instruction) -> bool:
    parts = array_shapes(instruction.shape)
    if not parts or not all(part.element_type.is_inexact for part in parts):
        return False
    is_narrow = parts[-1].element_type.is_narrow_float
    match instruction.opcode:
        case "dot" | "convolution":
            return not any(kind.is_integer for kind in instruction.operand_types)
        case "reduce" | "reduce-window":
            return _adds_up(instruction) and not (instruction.opcode == "reduce" and is_narrow)
        case "batch-norm-training":
            return not is_narrow
    return False


def _additions(instruction: Instruction) -> int:
    """To running sums, each term alone; 0 where sums are short, or have too many places."""
    part = array_shapes(instruction.shape)[-1]
    terms = sum_length(instruction, part)
    if terms < _LONG:
        return 0
    if instruction.opcode != "reduce-window":
        return part.size * terms
    if _runs(instruction, part.element_type) is not None:
        return part.size
    return part.size * terms if terms <= _ROUNDS else 0


def _runs(instruction: Instruction, kind: ElementType) -> int | None:
    """The axis of running sums that no step rounds to a narrow type; None for other windows."""
    dims = instruction.operands[0].dims
    return None if kind.is_narrow_float else running_axis(instruction.window.dims, dims)


@dataclass(frozen=True, slots=True)
class SumInTurn:
    """A kernel that sums, some executions of which add terms in turn.

    Attributes:
        noise: which execution it is.
        kernel: sums as exactly as can be.
        in_turn: likewise, so many terms at a time.
        is_narrow: a sum that is rounded to a narrow type at every addition (`is_narrow_sum`).
    """

    noise: Noise
    kernel: Callable[..., Any]
    in_turn: _InTurn
    is_narrow: bool

    def __call__(self, *values: Any) -> Any:
        member = self.noise.member
        step = 0 if self.is_narrow and not member.narrow else member.in_turn
        return self.in_turn(step, *values) if step else self.kernel(*values)


def sum_in_turn(
    noise: Noise, origin: Instruction, held: Instruction, kernel: Callable[..., Any]
) -> SumInTurn:
    """The kernel of a long sum (`is_long_sum`, `is_narrow_sum`) that follows `noise`.

    Args:
        noise: which execution it is.
        origin: the instruction.
        held: the one that is executed in its place, in f32 where a type is narrow.
        kernel: of `held`.
    """
    kind = array_shapes(origin.shape)[-1].element_type
    return SumInTurn(noise, kernel, _in_turn(held, kind), is_narrow_sum(origin))


def _in_turn(held: Instruction, kind: ElementType) -> _InTurn:
    match held.opcode:
        case "dot" | "convolution":
            return lambda step, *values: contracted_by(held, _by(step))(*values)
        case "reduce":
            axes = tuple(sorted(held.integers("dimensions")))
            if kind.is_narrow_float:
                return lambda step, x, start: _reduced_narrow(x, start, axes, step, kind)
            return lambda step, x, start: _reduced(x, start, axes, step)
        case "reduce-window":
            return lambda step, x, start: _windows(held, kind, step, x, start)
    axis = held.integer("feature_index")

    def of_features(step: int, *values: Array) -> Any:
        others = tuple(d for d in range(values[0].ndim) if d != axis)
        zero = values[0].dtype.type(0)
        return in_terms_of_sums(held, lambda x: _reduced(x, zero, others, step), *values)

    return of_features


def _by(step: int) -> Callable[[Array, Array], Array]:
    """Multiplies matrices `step` terms at a time."""
    return lambda lhs, rhs: _product(lhs, rhs, step)


def _product(lhs: Array, rhs: Array, step: int) -> Array:
    """lhs [batch…, m, k] times rhs [batch…, k, n]."""
    total = zeros_for(lhs, rhs)
    if total.size >= _LARGE:
        for start in range(0, lhs.shape[-1], step):
            some = slice(start, start + step)
            total += np.matmul(lhs[..., some], rhs[..., some, :])
        return total
    for terms in terms_of(lhs, rhs, rows_held(total.size, step)):
        total = _running(total, terms, step)
    return total


def _running(total: Array, terms: Array, step: int) -> Array:
    """`total` and then the terms, along the first dimension, `step` of them at a time."""
    with np.errstate(all="ignore"):
        groups = np.concatenate([total[None], _groups(terms, step)])
        summed: Array = np.add.accumulate(groups, axis=0)[-1]
    return summed


def _groups(terms: Array, step: int) -> Array:
    """Sums of `step` terms each along the first dimension, and of those that are left."""
    if step == 1:
        return terms
    whole = len(terms) - len(terms) % step
    sums = terms[:whole].reshape((-1, step, *terms.shape[1:])).sum(1, dtype=terms.dtype)
    return np.concatenate([sums, terms[whole:].sum(0, keepdims=True, dtype=terms.dtype)])


def _reduced(x: Array, start: Array, axes: tuple[int, ...], step: int) -> Array:
    """The sum over some dimensions."""
    rows = rows_of(x, axes)
    total = np.broadcast_to(start, rows.shape[1:]).astype(x.dtype)
    block = rows_held(total.size, step)
    for first in range(0, len(rows), block):
        total = _running(total, rows[first : first + block], step)
    return total


def _reduced_narrow(x: Array, start: Array, axes: tuple[int, ...], step: int, kind: ElementType) -> Array:
    """The same rounded to `kind` at every addition: what is small beside the sum so far is lost."""
    rows = rows_of(x, axes)
    total = np.broadcast_to(start, rows.shape[1:]).astype(x.dtype)
    for group in _groups(rows, step):
        total = _added(total, group, kind)
    return total


def _added(one: Array, other: Array, kind: ElementType) -> Array:
    with np.errstate(all="ignore"):
        total: Array = widen(narrow(one + other, kind), kind)
    return total


def _windows(held: Instruction, kind: ElementType, step: int, x: Array, start: Array) -> Array:
    """Sums in windows, whose elements are taken in row-major order; they are rounded to `kind`."""
    dims = held.window.dims
    running = _runs(held, kind)
    if running is not None:
        return _cumulative(x, start, running, backwards=dims[running].pad_low == 0)
    sizes = output_sizes(dims, x.shape)
    total, group = np.broadcast_to(start, sizes).astype(x.dtype), np.zeros(sizes, x.dtype)
    for number, (_, outputs, elements) in enumerate(window_slices(dims, x.shape, sizes), 1):
        if step == 1:
            total[outputs] = _added(total[outputs], x[elements], kind)
            continue
        group[outputs] += x[elements]
        if number % step == 0:
            total, group = _added(total, group, kind), np.zeros_like(group)
    return _added(total, group, kind)


def _cumulative(x: Array, start: Array, axis: int, backwards: bool) -> Array:
    """Sums of all that lies before each element, or behind it: each adds one term to the next one."""
    rows = np.flip(x, axis) if backwards else x
    with np.errstate(all="ignore"):
        sums: Array = start + np.add.accumulate(rows, axis=axis)
    return np.flip(sums, axis) if backwards else sums


# Dots and convolutions whose terms are seen one by one, which a product of matrices of NumPy's hides.

#: Makes [batch…, m, n] of [batch…, m, k] and [batch…, k, n].
Multiply: TypeAlias = Callable[[Array, Array], Array]

#: Elements of terms that are held at a time.
BLOCK = 1 << 21


def contracted_by(held: Instruction, multiply: Multiply) -> Callable[..., Any]:
    """The kernel of a dot or convolution that multiplies matrices in a way of its own.

    Args:
        held: the instruction, in the types in which it is executed.
        multiply: makes products of matrices.
    """
    if held.opcode == "convolution":
        return convolver(held, multiply)
    dimensions = dot_dimensions(held)
    dtype = operand_dtype(held.element_type, *held.operand_types)

    def kernel(lhs: Array, rhs: Array) -> Array:
        left, right = (value.astype(dtype, copy=False) for value in (lhs, rhs))
        return dimensions.contract_by(multiply, left, right)

    return kernel


def zeros_for(lhs: Array, rhs: Array) -> Array:
    """Zeros in the shape of the product of matrices [batch…, m, k] and [batch…, k, n]."""
    batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    return np.zeros((*batch, lhs.shape[-2], rhs.shape[-1]), lhs.dtype)


def terms_of(lhs: Array, rhs: Array, rows: int) -> Iterator[Array]:
    """The terms of that product, [terms, batch…, m, n] for `rows` of the terms at a time."""
    for start in range(0, lhs.shape[-1], rows):
        some = slice(start, start + rows)
        left, right = np.moveaxis(lhs[..., some], -1, 0), np.moveaxis(rhs[..., some, :], -2, 0)
        yield left[..., :, None] * right[..., None, :]


def rows_held(size: int, step: int = 1) -> int:
    """How many rows of so many elements are held at a time, a multiple of `step`."""
    return max(1, BLOCK // max(1, size) // step) * step


_Floats = npt.NDArray[np.float64]

#: Integers as wide as the floats, and the bits of the mantissa, by the floats' codes.
_MANTISSAS: Final[dict[str, tuple[type[np.unsignedinteger[Any]], int]]] = {
    "f": (np.uint32, 23),
    "d": (np.uint64, 52),
}


@dataclass(frozen=True, slots=True)
class PerturbTerms:
    """Random errors of the terms of a sum.

    Attributes:
        noise: which execution it is.
        error: of terms that do not look exact.
        late: relative error of those that do, where their sum is not exact in every order.
        digits: of the accumulator.
        length: terms of one sum at most.
        axes: dimensions of the operand that are summed; None where a sum may be of any of its elements.
        factor: the operand that the terms are multiplied by; None for a plain sum.
    """

    noise: Noise
    error: Error
    late: float
    digits: int
    length: int
    axes: tuple[int, ...] | None = None
    factor: int | None = None

    def __call__(self, value: Any, factor: Any = None) -> Any:
        """The changed terms; `factor` is what they are multiplied by, as it is."""
        changed = self.noise.perturbed(value, self.error.relative, self.error.zeros)
        is_plain = self.noise.member.seed is None or not value.size
        if is_plain or not looks_exact(value, self.error.zeros):
            return changed
        is_exact = self._are_exact(value, factor)
        if is_exact.all():
            return changed
        off = self.noise.perturbed(value, self.late, 0)
        return np.where(is_exact | (changed != value), changed, off)[()]

    def _are_exact(self, value: Array, factor: Array | None) -> npt.NDArray[np.bool_]:
        """For each element, in dimensions that broadcast: whether its sum is exact in every order."""
        magnitudes, units = _magnitudes(value), _units(value)
        with np.errstate(all="ignore"):
            if self.axes is None:
                total, unit = magnitudes.max(keepdims=True) * self.length, units.min(keepdims=True)
                count = np.count_nonzero(magnitudes, keepdims=True)
            else:
                total = magnitudes.sum(self.axes, keepdims=True)
                unit = units.min(self.axes, keepdims=True)
                count = np.count_nonzero(magnitudes, self.axes, keepdims=True)
            if factor is not None and factor.size:
                total = total * _magnitudes(factor).max()
                unit = unit * _units(factor).min()
            is_exact: npt.NDArray[np.bool_] = np.asarray(total <= unit * 2.0**self.digits)
        # Of a single term nothing has an order.
        return is_exact | (np.asarray(count) <= 1)


def summed_axes(instruction: Instruction) -> tuple[int, ...] | None:
    """The dimensions of the first operand along which terms are added up; None where that is not so plain."""
    match instruction.opcode:
        case "reduce":
            return instruction.integers("dimensions")
        case "dot":
            return instruction.integers("lhs_contracting_dims", ())
    return None


def _magnitudes(value: Array) -> _Floats:
    """Of complex numbers those of both parts together."""
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        own = np.asarray(value).astype(wide)
        return np.asarray(np.abs(own.real) + np.abs(own.imag))


def _units(value: Array) -> _Floats:
    """The largest power of two that each number is a multiple of; infinite for 0, NaN for NaN."""
    if value.dtype.kind == "c":
        parts = np.asarray(value)
        return np.minimum(_units(np.array(parts.real)), _units(np.array(parts.imag)))
    held = np.array(value, np.float64 if value.dtype.char not in _MANTISSAS else None, order="C", ndmin=1)
    kind, digits = _MANTISSAS[held.dtype.char]
    bits = held.view(kind)
    without_last = (bits & (bits - kind(1))).view(held.dtype)
    has_fraction = (bits & kind((1 << digits) - 1)) != 0
    with np.errstate(all="ignore"):
        unit = np.where(has_fraction, np.abs(held.astype(np.float64) - without_last), np.abs(held))
    return np.asarray(np.where(held == 0, np.inf, unit), np.float64).reshape(np.shape(value))
