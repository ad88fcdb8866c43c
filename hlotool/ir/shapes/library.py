"""Operations that stand for a library: linear algebra, FFT, batch normalisation, custom calls.

XLA: shape_inference.cc (InferFftShape, InferCholeskyShape, InferTriangularSolveShape, InferBatchNorm…Shape),
hlo_verifier.cc (HandleCustomCall).
"""

from __future__ import annotations

from dataclasses import replace

from hlotool.ir.shapes.base import (
    Op,
    array_of,
    check_same_dimensions,
    check_same_types,
    checks,
    infers,
    tuple_of,
)
from hlotool.ir.shapes.compatibility import compatible, same_dimensions, same_sizes
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, Shape

_COMPLEX_OF = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}


def _matrix(op: Op, shape: ArrayShape, role: str) -> None:
    """Square in the last two dimensions, of floating-point or complex numbers."""
    op.check_type(
        shape.element_type.is_inexact, f"{role} must be floating-point or complex, not {shape.element_type}"
    )
    op.check_shape(
        shape.rank >= 2 and same_sizes(shape.dims[-1], shape.dims[-2]),
        f"{role} must be square in its last two dimensions, not {shape.logical_text()}",
    )


@infers("cholesky")
def infer_cholesky(op: Op) -> Shape:
    """The operand's shape."""
    matrix = op.array(0)
    _matrix(op, matrix, "the operand of cholesky")
    return matrix


@infers("triangular-solve")
def infer_triangular_solve(op: Op) -> Shape:
    """The shape of b."""
    a, b = op.array(0, "a"), op.array(1, "b")
    _matrix(op, a, "a")
    op.check_type(a.element_type is b.element_type, "a and b must have one element type")
    shared = -2 if op.flag("left_side") else -1
    op.check_shape(
        b.rank == a.rank and a.dims[:-2] == b.dims[:-2] and same_sizes(a.dims[-1], b.dims[shared]),
        f"a and b must agree in batch dimensions and in dimension {shared} of b: "
        f"{a.logical_text()} and {b.logical_text()}",
    )
    op.word("transpose_a", ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"), "NO_TRANSPOSE")
    return b


@infers("fft")
def infer_fft(op: Op) -> Shape:
    """Real transforms halve the last dimension on their complex side."""
    operand, lengths = op.array(0), op.integers("fft_length", ())
    kind = op.word("fft_type", ("FFT", "IFFT", "RFFT", "IRFFT"))
    op.check_value(
        1 <= len(lengths) <= min(3, operand.rank),
        f"fft_length must have 1 to {min(3, operand.rank)} entries, not {len(lengths)}",
    )
    if kind == "RFFT":
        return _real_fft(op, operand, lengths)
    op.check_type(operand.element_type.is_complex, f"{kind} needs complex input, not {operand}")
    return _inverse_real_fft(op, operand, lengths) if kind == "IRFFT" else operand


def _real_fft(op: Op, operand: ArrayShape, lengths: tuple[int, ...]) -> ArrayShape:
    op.check_type(operand.element_type in _COMPLEX_OF, f"RFFT needs f32 or f64, not {operand.element_type}")
    _check_lengths(op, operand.dims[-len(lengths) :], lengths)
    last = lengths[-1] // 2 + 1 if lengths[-1] else operand.dims[-1]
    return _with_last(operand, _COMPLEX_OF[operand.element_type], last)


def _inverse_real_fft(op: Op, operand: ArrayShape, lengths: tuple[int, ...]) -> ArrayShape:
    half = lengths[-1] // 2 + 1
    if operand.dims[-1] == lengths[-1] == 0:
        half = 0
    _check_lengths(op, operand.dims[-len(lengths) :], (*lengths[:-1], half))
    return _with_last(operand, operand.element_type.real_part, lengths[-1])


def _check_lengths(op: Op, dims: tuple[int, ...], expected: tuple[int, ...]) -> None:
    op.check_shape(
        all(map(same_sizes, dims, expected)),
        f"the last dimensions must be {list(expected)} as fft_length says, not {list(dims)}",
    )


def _with_last(shape: ArrayShape, element_type: ElementType, size: int) -> ArrayShape:
    flags = shape.dynamic
    if shape.dims[-1] == UNBOUNDED:
        flags = (*flags[:-1], False)
    return replace(array_of(element_type, (*shape.dims[:-1], size), flags), layout=shape.layout)


def _features(op: Op, operand: ArrayShape) -> ArrayShape:
    """The shape of one number per feature."""
    index = op.position("feature_index", operand.rank)
    op.check_type(
        operand.element_type.is_floating,
        f"{op.opcode} needs floating-point numbers, not {operand.element_type}",
    )
    return array_of(operand.element_type, (operand.dims[index],), (operand.is_dynamic_dimension(index),))


def _check_features(op: Op, first: int, last: int, features: ArrayShape) -> None:
    """Operands `first` to `last` must have one number per feature."""
    for i in range(first, last + 1):
        shape = op.array(i)
        check_same_types(op, (features, shape))
        op.check_shape(
            same_dimensions(shape, features),
            f"operand {i} must have one number per feature, {features.logical_text()}, "
            f"not {shape.logical_text()}",
        )


@infers("batch-norm-training")
def infer_batch_norm_training(op: Op) -> Shape:
    """(normalised, mean, variance)."""
    operand = op.array(0)
    features = _features(op, operand)
    _check_features(op, 1, 2, features)
    return tuple_of((operand, features, features))


@infers("batch-norm-inference")
def infer_batch_norm_inference(op: Op) -> Shape:
    """The operand's shape."""
    operand = op.array(0)
    _check_features(op, 1, 4, _features(op, operand))
    return operand


@infers("batch-norm-grad")
def infer_batch_norm_grad(op: Op) -> Shape:
    """(gradient of the operand, of the scale, of the offset)."""
    operand, gradient = op.array(0), op.array(4, "the output gradient")
    features = _features(op, operand)
    _check_features(op, 1, 3, features)
    check_same_types(op, (operand, gradient))
    check_same_dimensions(op, "operand and output gradient", (operand, gradient))
    return tuple_of((operand, features, features))


@checks("custom-call")
def check_custom_call(op: Op) -> None:
    """Any shape; constrained layouts must be given for each operand, and fit it."""
    target, layouts = op.text("custom_call_target"), op.attribute("operand_layout_constraints", tuple, None)
    if layouts is None or target == "LayoutConstraint":
        return
    demand = "operand_layout_constraints must have one shape per operand"
    op.check_count(len(layouts), len(op.operands), demand)
    for i, (layout, operand) in enumerate(zip(layouts, op.operands)):
        op.check_value(
            compatible(layout, operand),
            f"operand_layout_constraints: {layout} does not fit operand {i}, {operand}",
        )
