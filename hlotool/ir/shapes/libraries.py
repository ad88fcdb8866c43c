"""Shape rules of what libraries compute: products, convolutions, linear algebra, FFT, custom calls.

XLA: shape_inference.cc (InferDotOpShape, InferRaggedDotOpShape, InferConvolveShape, InferFftShape,
InferCholeskyShape, InferTriangularSolveShape, InferBatchNorm…Shape), hlo_verifier.cc (HandleCustomCall).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from hlotool.ir.attributes import ConvolutionDimensions, Ints
from hlotool.ir.shapes.base import (
    Op,
    array_of,
    array_of_pairs,
    check_same_dimensions,
    check_same_types,
    checks,
    compatible,
    flags_of,
    higher_precision,
    infers,
    same_dimensions,
    same_sizes,
    tuple_of,
)
from hlotool.ir.shapes.reduction import window_of, windowed_size
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, Shape


def _result_type(op: Op, lhs: ArrayShape, rhs: ArrayShape) -> ElementType:
    """What the program states; else the operand type of higher precision."""
    if isinstance(op.stated, ArrayShape):
        return op.stated.element_type
    return higher_precision(lhs.element_type, rhs.element_type)


class _DotDims(Struct, frozen=True):
    """Batch and contracting dimensions of both sides, checked."""

    lhs_batch: Ints
    rhs_batch: Ints
    lhs_contracting: Ints
    rhs_contracting: Ints


def _dot_dims(op: Op, lhs: ArrayShape, rhs: ArrayShape) -> _DotDims:
    dims = _DotDims(
        op.dimensions("lhs_batch_dims", lhs.rank, "lhs"),
        op.dimensions("rhs_batch_dims", rhs.rank, "rhs"),
        op.dimensions("lhs_contracting_dims", lhs.rank, "lhs"),
        op.dimensions("rhs_contracting_dims", rhs.rank, "rhs"),
    )
    for side, batch, contracting in (
        ("lhs", dims.lhs_batch, dims.lhs_contracting),
        ("rhs", dims.rhs_batch, dims.rhs_contracting),
    ):
        both = set(batch) & set(contracting)
        op.check(not both, "dimension-repeated", f"{side} dimensions {both} are both batch and contracting")
    _check_pairs(op, "batch", lhs, dims.lhs_batch, rhs, dims.rhs_batch)
    _check_pairs(op, "contracting", lhs, dims.lhs_contracting, rhs, dims.rhs_contracting)
    return dims


def _check_pairs(op: Op, kind: str, lhs: ArrayShape, lhs_dims: Ints, rhs: ArrayShape, rhs_dims: Ints) -> None:
    op.check_value(
        len(lhs_dims) == len(rhs_dims),
        f"lhs and rhs must have equally many {kind} dimensions, not {len(lhs_dims)} and {len(rhs_dims)}",
    )
    for i, j in zip(lhs_dims, rhs_dims):
        op.check_shape(
            same_sizes(lhs.dims[i], rhs.dims[j]),
            f"{kind} dimensions must have one size: lhs {i} has {lhs.dims[i]}, rhs {j} has {rhs.dims[j]}",
        )


def _dot_dimensions(
    lhs: ArrayShape, rhs: ArrayShape, dims: _DotDims, rhs_hidden: Ints = ()
) -> list[tuple[int, bool]]:
    """Sizes and flags: batch, what is left of lhs, what is left of rhs."""
    left, right = list(zip(lhs.dims, flags_of(lhs))), list(zip(rhs.dims, flags_of(rhs)))
    lhs_hidden = (*dims.lhs_batch, *dims.lhs_contracting)
    rhs_hidden = (*dims.rhs_batch, *dims.rhs_contracting, *rhs_hidden)
    return [
        *(left[d] for d in dims.lhs_batch),
        *(size for d, size in enumerate(left) if d not in lhs_hidden),
        *(size for d, size in enumerate(right) if d not in rhs_hidden),
    ]


@infers("dot")
def infer_dot(op: Op) -> Shape:
    """Batch dimensions, then the free ones of lhs and rhs."""
    lhs, rhs = op.array(0, "lhs"), op.array(1, "rhs")
    dims = _dot_dims(op, lhs, rhs)
    return array_of_pairs(_result_type(op, lhs, rhs), _dot_dimensions(lhs, rhs, dims))


@infers("scaled-dot")
def infer_scaled_dot(op: Op) -> Shape:
    """A dot whose operands 2 and 3 scale blocks of operands 0 and 1."""
    lhs, rhs = op.array(0, "lhs"), op.array(1, "rhs")
    dims = _dot_dims(op, lhs, rhs)
    scales = (op.array(2, "the lhs scale"), op.array(3, "the rhs scale"))
    op.check_shape(any(s.dims for s in scales), "one of the scales at least must not be a scalar")
    _check_scale(op, "lhs", lhs, scales[0], dims.lhs_contracting)
    _check_scale(op, "rhs", rhs, scales[1], dims.rhs_contracting)
    return array_of_pairs(_result_type(op, lhs, rhs), _dot_dimensions(lhs, rhs, dims))


def _check_scale(op: Op, side: str, operand: ArrayShape, scale: ArrayShape, contracting: Ints) -> None:
    if _is_no_scale(operand, scale):
        return
    op.check_shape(
        scale.rank == operand.rank and all(s and n % s == 0 for n, s in zip(operand.dims, scale.dims)),
        f"each dimension of {side} {operand.logical_text()} must be a multiple of the scale's "
        f"{scale.logical_text()}",
    )
    op.check_value(len(contracting) == 1, f"a scaled {side} must have one contracting dimension")


def _is_no_scale(operand: ArrayShape, scale: ArrayShape) -> bool:
    """A bf16 operand beside ones of its own type: XLA's way to say that it is not scaled."""
    return (
        operand.element_type is scale.element_type is ElementType.BF16
        and all(n == 1 for n in scale.dims)
        and any(n != 1 for n in operand.dims)
    )


@infers("ragged-dot")
def infer_ragged_dot(op: Op) -> Shape:
    """A dot with groups of varying size along one dimension of lhs."""
    lhs, rhs, sizes = op.array(0, "lhs"), op.array(1, "rhs"), op.array(2, "the group sizes")
    dims = _dot_dims(op, lhs, rhs)
    ragged_dims = op.dimensions("lhs_ragged_dims", lhs.rank, "lhs")
    op.check_value(len(ragged_dims) == 1, "lhs must have one ragged dimension")
    ragged = ragged_dims[0]
    _check_group_sizes(op, lhs, sizes, dims, ragged)
    groups = (sizes.dims[-1], sizes.is_dynamic_dimension(sizes.rank - 1))
    group_dims = _rhs_group_dims(op, rhs, dims, ragged, groups[0])
    free = _dot_dimensions(lhs, rhs, dims, group_dims)
    prefix = [groups] if ragged in dims.lhs_contracting else []
    return array_of_pairs(_result_type(op, lhs, rhs), prefix + free)


def _check_group_sizes(op: Op, lhs: ArrayShape, sizes: ArrayShape, dims: _DotDims, ragged: int) -> None:
    """[groups], or one such list per position before the ragged dimension."""
    op.check_shape(sizes.rank > 0, "the group sizes must have rank 1 or more")
    if ragged in dims.lhs_batch:
        before = list(dims.lhs_batch[: dims.lhs_batch.index(ragged)])
    else:
        same_kind = dims.lhs_contracting
        if ragged not in same_kind:
            hidden = (*dims.lhs_batch, *dims.lhs_contracting)
            same_kind = tuple(d for d in range(lhs.rank) if d not in hidden)
        before = [*dims.lhs_batch, *same_kind[: same_kind.index(ragged)]]
    expected = tuple(lhs.dims[d] for d in before)
    op.check_shape(
        sizes.rank == 1 or sizes.dims[:-1] == expected,
        f"the group sizes must have the dimensions [groups] or {[*expected, 'groups']}, not {sizes.dims}",
    )


def _rhs_group_dims(op: Op, rhs: ArrayShape, dims: _DotDims, ragged: int, groups: int) -> Ints:
    """rhs has one dimension over groups exactly when a free dimension of lhs is ragged."""
    group_dims = op.dimensions("rhs_group_dims", rhs.rank, "rhs")
    free = ragged not in (*dims.lhs_batch, *dims.lhs_contracting)
    op.check_value(
        len(group_dims) == int(free),
        f"rhs_group_dims must hold {int(free)} dimensions here, not {len(group_dims)}",
    )
    for dimension in group_dims:
        op.check_value(
            dimension not in (*dims.rhs_batch, *dims.rhs_contracting)
            and same_sizes(rhs.dims[dimension], groups),
            f"the group dimension {dimension} of rhs must be free and have size {groups}",
        )
    return group_dims


@infers("convolution")
def infer_convolution(op: Op) -> Shape:
    """Batch, output features, and one element per position of the window."""
    lhs, rhs = op.array(0, "lhs"), op.array(1, "rhs")
    labels = op.attribute("dim_labels", ConvolutionDimensions)
    _check_labels(op, labels, lhs, rhs)
    feature_groups = op.integer("feature_group_count", 1)
    batch_groups = op.integer("batch_group_count", 1)
    _check_groups(op, labels, lhs, rhs, feature_groups, batch_groups)
    window = window_of(op, len(labels.input_spatial))
    kernel = tuple(rhs.dims[d] for d in labels.kernel_spatial)
    op.check_value(
        kernel == tuple(d.size for d in window.dims),
        f"window size {[d.size for d in window.dims]} must be the kernel's {list(kernel)}",
    )
    dims: dict[int, tuple[int, bool]] = {
        labels.output_batch: (
            lhs.dims[labels.input_batch] // batch_groups,
            lhs.is_dynamic_dimension(labels.input_batch),
        ),
        labels.output_feature: (rhs.dims[labels.kernel_output_feature], False),
    }
    for i, dim in enumerate(window.dims):
        base, side = labels.input_spatial[i], labels.kernel_spatial[i]
        dynamic = lhs.is_dynamic_dimension(base) or rhs.is_dynamic_dimension(side)
        dims[labels.output_spatial[i]] = (windowed_size(op, lhs.dims[base], dim), dynamic)
    return array_of_pairs(_result_type(op, lhs, rhs), [dims[d] for d in range(len(dims))])


def _check_labels(op: Op, labels: ConvolutionDimensions, lhs: ArrayShape, rhs: ArrayShape) -> None:
    """Each dimension of each array plays one part."""
    count = len(labels.input_spatial)
    op.check_value(
        count == len(labels.kernel_spatial) == len(labels.output_spatial),
        "dim_labels must name as many spatial dimensions of input, kernel and output",
    )
    parts = {
        "input": (labels.input_batch, labels.input_feature, *labels.input_spatial),
        "kernel": (labels.kernel_input_feature, labels.kernel_output_feature, *labels.kernel_spatial),
        "output": (labels.output_batch, labels.output_feature, *labels.output_spatial),
    }
    for name, dims in parts.items():
        op.check_value(
            sorted(dims) == list(range(count + 2)),
            f"dim_labels must name each of the {count + 2} {name} dimensions once",
        )
    for name, shape in (("lhs", lhs), ("rhs", rhs)):
        op.check_shape(
            shape.rank == count + 2, f"{name} must have rank {count + 2} as dim_labels say, not {shape.rank}"
        )


def _check_groups(
    op: Op,
    labels: ConvolutionDimensions,
    lhs: ArrayShape,
    rhs: ArrayShape,
    feature_groups: int,
    batch_groups: int,
) -> None:
    op.check_value(
        feature_groups > 0 and batch_groups > 0 and 1 in (feature_groups, batch_groups),
        f"feature_group_count {feature_groups} and batch_group_count {batch_groups} must be positive, "
        f"and not both above 1",
    )
    features, batch = lhs.dims[labels.input_feature], lhs.dims[labels.input_batch]
    kernel_in = rhs.dims[labels.kernel_input_feature]
    kernel_out = rhs.dims[labels.kernel_output_feature]
    op.check_shape(
        features % feature_groups == 0 and features // feature_groups == kernel_in,
        f"input features {features} must be kernel input features {kernel_in} times "
        f"feature_group_count {feature_groups}",
    )
    op.check_shape(
        kernel_out % feature_groups == 0 and kernel_out % batch_groups == 0 and batch % batch_groups == 0,
        f"output features {kernel_out} and batch {batch} must be multiples of the group counts "
        f"{feature_groups} and {batch_groups}",
    )
    op.check_shape(
        not rhs.is_dynamic_dimension(labels.kernel_output_feature),
        "the output features of the kernel must not be dynamic",
    )


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
