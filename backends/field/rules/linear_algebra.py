"""Products over contracted dimensions, Fourier transforms, factorisations and triangular systems: exact.

Those that choose rows by size are unknown functions of the matrix, but for what a pivot can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import cos, pi, prod, sin
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.field import complexes
from hlotool.backends.field import words as w
from hlotool.backends.field.blockwise import splitmix
from hlotool.backends.field.complexes import Pair
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.numbers import Numbers
from hlotool.backends.field.products import MOST_TERMS, bilinear, matmul
from hlotool.backends.field.registry import call_means, means, plain
from hlotool.backends.field.trial import Trial, embedded
from hlotool.backends.field.unknown import black_box, without_model
from hlotool.backends.field.values import is_complex, is_float, pair, parts, residues
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.kernels.dot import dot_dimensions, refuse_structure, solve_triangular
from hlotool.backends.numpy.kernels.lapack_calls import named_call
from hlotool.backends.numpy.registry import RULES, Kernel
from hlotool.facts.retyping import retyped_shape
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import ConvolutionDimensions
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, array_shapes

#: From the words of both operands to those of the product.
_Product: TypeAlias = Callable[[Words, Words], Words]


@means("dot")
def dot(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The sum of products."""
    refuse_structure(instruction, lowering)
    dimensions = dot_dimensions(instruction)
    return _of_types(instruction, lowering, lambda a, b: dimensions.contract_by(matmul, a, b))


@means("convolution")
def convolution(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's convolution of 16-bit limbs in f64, in which all sums are exact."""
    terms = _terms(instruction)
    if terms > MOST_TERMS:
        raise lowering.unsupported(instruction, f"sums of {terms} products; {MOST_TERMS} are exact in f64")
    operands = tuple(
        Instruction(o.name, "parameter", retyped_shape(o.shape, _to_f64), parameter_number=n)
        for n, o in enumerate(instruction.operands)
    )
    shape = retyped_shape(instruction.shape, _to_f64)
    in_f64 = replace(instruction, operands=operands, shape=shape)
    convolve = plain(RULES["convolution"](in_f64, lowering.numbers))
    return _of_types(instruction, lowering, lambda a, b: bilinear(convolve, a, b, terms))


def _terms(convolution: Instruction) -> int:
    """How many products an element of the result is the sum of."""
    labels = convolution.attribute("dim_labels", ConvolutionDimensions)
    kernel = convolution.operands[1].dims
    return prod(size for dim, size in enumerate(kernel) if dim != labels.kernel_output_feature)


def _to_f64(element_type: ElementType) -> ElementType:
    """The limbs of whatever type are f64."""
    return ElementType.F64


def _of_types(instruction: Instruction, lowering: FieldLowering, product: _Product) -> Kernel:
    """A kernel for the operands' types: complex numbers take four products, integers are embedded."""
    if not instruction.element_type.is_inexact:
        raise lowering.unsupported(instruction, "a product of floats that is an integer")
    to_words = [_same if o.element_type.is_inexact else embedded for o in instruction.operands]
    if not is_complex(instruction.shape):
        left, right = to_words
        return lambda a, b: product(left(a), right(b))
    to_pairs = [
        parts if is_complex(o.shape) else _real_pair if is_float(o.shape) else _integer_pair
        for o in instruction.operands
    ]

    def kernel(x: Any, y: Any) -> Any:
        (a, b), (c, d) = (to_pair(value) for to_pair, value in zip(to_pairs, (x, y)))
        real = w.subtract(product(a, c), product(b, d))
        return pair(real, w.add(product(a, d), product(b, c)))

    return kernel


def _same(value: Any) -> Any:
    return value


def _real_pair(value: Words) -> tuple[Words, Words]:
    return value, np.zeros_like(value)


def _integer_pair(value: Any) -> tuple[Words, Words]:
    return _real_pair(embedded(value))


#: A transform of more points along one dimension is a black box: as a matrix it would take long.
_MOST_POINTS = 256

_Pair: TypeAlias = tuple[Words, Words]


@means("fft")
def fft(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The sum of the elements times roots of unity, whose parts are constants like others."""
    kind, lengths = instruction.text("fft_type"), instruction.integers("fft_length")
    if kind not in ("FFT", "IFFT", "RFFT", "IRFFT"):
        raise lowering.unsupported(instruction, f"fft_type {kind}")
    if max(lengths, default=1) > _MOST_POINTS or not prod(instruction.dims):
        return black_box(instruction, lowering, f"{kind} of length {lengths}")
    constants, rank = lowering.constants, instruction.array_shape.rank
    is_inverse = kind.startswith("I")
    scale = w.rational(1, prod(lengths)) if is_inverse else w.ONE
    maps = [_roots(n, n, is_inverse, constants) for n in lengths]
    last, axes = lengths[-1], range(rank - len(lengths), rank)
    if kind == "RFFT":
        maps[-1] = _roots(last, last // 2 + 1, is_inverse, constants)
    if kind == "IRFFT":
        maps[-1] = _from_half_spectrum(last, constants)

    def kernel(x: Any) -> Any:
        value = parts(x) if is_complex(instruction.operands[0].shape) else (x, np.zeros_like(x))
        for axis, roots in zip(axes, maps):
            value = _along(axis, roots, value)
        real, imaginary = (w.multiply(part, scale) for part in value)
        return pair(real, imaginary) if is_complex(instruction.shape) else real

    return kernel


def _along(axis: int, roots: _Pair, value: _Pair) -> _Pair:
    """The products with a matrix of roots [from, to] along one dimension."""

    def by(part: Words, matrix: Words) -> Words:
        rows = np.moveaxis(part, axis, -1)
        flat = np.ascontiguousarray(rows).reshape(-1, rows.shape[-1])
        found = matmul(flat, matrix).reshape(*rows.shape[:-1], matrix.shape[1])
        return np.moveaxis(found, -1, axis)

    (a, b), (c, d) = value, roots
    return w.subtract(by(a, c), by(b, d)), w.add(by(a, d), by(b, c))


def _roots(points: int, results: int, is_inverse: bool, constants: Constants) -> _Pair:
    """exp(∓2πi k m / points) for k below `points` and m below `results`."""
    cosines, sines = (constants.words(_turns(f, points)) for f in (cos, sin))
    powers = np.outer(np.arange(points), np.arange(results)) % points
    return cosines[powers], sines[powers] if is_inverse else w.negate(sines[powers])


def _from_half_spectrum(points: int, constants: Constants) -> _Pair:
    """The inverse for a spectrum of which the half stands for the whole; only real parts are asked for."""
    cosines, sines = (part[: points // 2 + 1] for part in _roots(points, points, True, constants))
    weights = np.full((points // 2 + 1, 1), 2)
    weights[0] = 1
    if points % 2 == 0:
        weights[-1] = 1
    twice = w.integers(weights)
    return w.multiply(cosines, twice), w.multiply(sines, twice)


def _turns(function: Callable[[float], float], points: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """`function`, cosine or sine, of 2πk / points; what is equal by symmetry is equal to the bit."""
    return np.array([_at_turn(function, Fraction(k, points)) for k in range(points)])


def _at_turn(function: Callable[[float], float], turn: Fraction) -> float:
    if turn > Fraction(1, 2):
        return _at_turn(function, 1 - turn) * (1 if function is cos else -1)
    if turn > Fraction(1, 4):
        return _at_turn(function, Fraction(1, 2) - turn) * (-1 if function is cos else 1)
    if turn > Fraction(1, 8):
        other: Callable[[float], float] = sin if function is cos else cos
        return _at_turn(other, Fraction(1, 4) - turn)
    return function(2 * pi * float(turn))


_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


@means("cholesky")
def cholesky(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The factor of a symmetric matrix, of which one triangle is read; the other one of the result is 0."""
    lower, trial = instruction.flag("lower"), lowering.trial
    if is_complex(instruction.shape):
        return lambda a: pair(*_complex_factor(parts(a), lower, trial))
    return lambda a: _in_triangle(a, lower, trial)


def _complex_factor(a: Pair, lower: bool, trial: Trial) -> Pair:
    factor = complexes.factor(a if lower else complexes.adjoint(a), trial)
    return factor if lower else complexes.adjoint(factor)


def _in_triangle(a: Words, lower: bool, trial: Trial) -> Words:
    return _factor(a, trial) if lower else _factor(a.swapaxes(-1, -2), trial).swapaxes(-1, -2)


def _factor(a: Words, trial: Trial) -> Words:
    """The lower factor of the matrices in the last two dimensions, column by column."""
    factor = np.zeros_like(a)
    for column in range(a.shape[-1]):
        rest = a[..., column:, column]
        if column:
            done = factor[..., column:, :column]
            rest = w.subtract(rest, matmul(done, done[..., :1, :].swapaxes(-1, -2))[..., 0])
        pivot = trial.sqrt(rest[..., :1])
        factor[..., column, column] = pivot[..., 0]
        factor[..., column + 1 :, column] = w.divide(rest[..., 1:], pivot)
    return factor


@call_means("lapack_spotrf_ffi", "lapack_dpotrf_ffi")
def potrf(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The factor in the triangle `uplo`, the other one as it was; no matrix is singular."""
    lower = named_call(instruction, lowering).is_option("uplo", "L")
    _, info = array_shapes(instruction.shape)
    size, trial = instruction.operands[0].dims[-1], lowering.trial
    in_triangle = np.tri(size, dtype=np.bool_) if lower else np.tri(size, dtype=np.bool_).T

    def kernel(a: Words) -> tuple[Any, ...]:
        return np.where(in_triangle, _in_triangle(a, lower, trial), a), np.zeros(info.dims, np.int32)

    return kernel


@means("triangular-solve")
def triangular_solve(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The solution of a triangular system."""
    transpose, unit = instruction.text("transpose_a", "NO_TRANSPOSE"), instruction.flag("unit_diagonal")
    left, lower = instruction.flag("left_side"), instruction.flag("lower")
    if is_complex(instruction.shape):
        return lambda a, b: pair(*complexes.solution(parts(a), parts(b), left, lower, transpose, unit))
    return _solution(lowering, left, lower, transpose, unit)


@call_means("lapack_strsm_ffi", "lapack_dtrsm_ffi")
def trsm(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The solution of a triangular system."""
    call = named_call(instruction, lowering)
    transpose = _TRANSPOSES[chr(call.option("trans_x"))]
    left, lower = not call.is_option("side", "R"), call.is_option("uplo", "L")
    solved = _solution(lowering, left, lower, transpose, call.is_option("diag", "U"))
    if len(instruction.operands) == 2:
        return solved
    # jaxlib 0.4.38 and 0.5.0 hand over a factor of the right side.
    return lambda a, b, alpha: solved(a, w.multiply(b, alpha))


def _solution(
    lowering: FieldLowering, left: bool, lower: bool, transpose: str, unit: bool
) -> Callable[[Words, Words], Words]:
    """The numpy backend's substitution; transposed and adjoint are the same for real numbers."""
    real = "TRANSPOSE" if transpose == "ADJOINT" else transpose

    def kernel(a: Words, b: Words) -> Words:
        matrix, right = (Numbers(np.asarray(value), np.dtype(np.float64), lowering.trial) for value in (a, b))
        solution: Any = solve_triangular(matrix, right, left, lower, real, unit)  # type: ignore[arg-type]
        words: Words = solution.words
        return words

    return kernel


_LAPACK = tuple(f"lapack_{letter}getrf{ending}" for letter in "sdcz" for ending in ("", "_ffi"))
_GPU = tuple(
    f"{platform}{name}"
    for platform in ("cu", "hip", "oneapi")
    for name in ("solver_getrf", "solver_getrf_ffi", "blas_getrf_batched")
)


@call_means(*_LAPACK, *_GPU)
def getrf(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Factors of which nothing is known; the row that each one changes places with, from 1 on; `info`."""
    return _with_pivots(instruction, lowering, first=1)


@call_means("LuDecomposition")
def lu(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The same with rows counted from 0, and the order of the rows that the exchanges make."""
    kernel = plain(_with_pivots(instruction, lowering, first=0))

    def with_order(*operands: Any) -> tuple[Any, ...]:
        factors, pivots, _ = kernel(*operands)
        rows = np.shape(factors)[-2]
        return factors, pivots, np.apply_along_axis(_order, -1, pivots, rows).astype(pivots.dtype)

    return with_order


def _with_pivots(instruction: Instruction, lowering: FieldLowering, first: int) -> Kernel:
    """The black box of a call, with pivots that depend on the factors."""
    box = plain(without_model(instruction, lowering))
    shape, *_ = array_shapes(instruction.shape)

    def kernel(*operands: Any) -> tuple[Any, ...]:
        factors, zeros, *others = box(*operands)
        return factors, (_pivots(residues(shape, factors)) + first).astype(zeros.dtype), *others

    return kernel


def _pivots(factors: Array) -> Array:
    """Of each row one of those from it on: a number for each element of the diagonals of `factors`, s64."""
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    row = np.arange(diagonal.shape[-1], dtype=np.uint64)
    left = np.uint64(factors.shape[-2]) - row
    return (row + splitmix(np.ascontiguousarray(diagonal, np.uint64)) % left).astype(np.int64)


def _order(pivots: Array, rows: int) -> Array:
    """The rows after row k has changed places with row `pivots[k]`, for every k in turn."""
    order = np.arange(rows)
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order
