"""Attributes of contractions and windows: dimension numbers, windows, precision, sparsity."""

from __future__ import annotations

from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions, RawText, Window, WindowDim
from hlotool.parse.proto.fields import Context, enum
from hlotool.parse.proto.schema import Message, enum_names


def algorithm(context: Context) -> AttributeValue | None:
    """The `algorithm` of a contraction (None where it is unset) or of a random-bit generator."""
    if context.opcode == "rng-bit-generator":
        return _RNG_ALGORITHM(context)
    return _DOT_ALGORITHM(context)


_RNG_ALGORITHM = enum("rng_algorithm", "RandomAlgorithm", lower=True)
_DOT_ALGORITHM = enum(
    "precision_config.algorithm", "PrecisionConfig.Algorithm", hidden="ALG_UNSET", drop="ALG_", lower=True
)


def operand_precision(context: Context) -> AttributeValue | None:
    """One word per operand, filled up with `default`; hidden when all are default."""
    names = enum_names("PrecisionConfig.Precision")
    words = [names.get(p, str(p)).lower() for p in context.proto.precision_config.operand_precision]
    if all(word == "default" for word in words):
        return None
    count = len(context.operands) - {"ragged-dot": 1, "scaled-dot": 2}.get(context.opcode, 0)
    return tuple((words + ["default"] * count)[:count])


def window(context: Context) -> AttributeValue | None:
    """The window, unless it has no dimensions."""
    dims = context.proto.window.dimensions
    return Window(tuple(map(_window_dim, dims))) if dims else None


def _window_dim(proto: Message) -> WindowDim:
    return WindowDim(
        proto.size,
        proto.stride,
        proto.padding_low,
        proto.padding_high,
        proto.base_dilation,
        proto.window_dilation,
        proto.window_reversal,
    )


def dim_labels(context: Context) -> AttributeValue | None:
    """Which dimension plays which part in a convolution; positions of no part occur in custom calls."""
    if not context.proto.HasField("convolution_dimension_numbers"):
        return None
    numbers = context.proto.convolution_dimension_numbers
    used_input = (numbers.input_batch_dimension, numbers.input_feature_dimension)
    used_kernel = (numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension)
    used_output = (numbers.output_batch_dimension, numbers.output_feature_dimension)
    spatial = (
        tuple(numbers.input_spatial_dimensions),
        tuple(numbers.kernel_spatial_dimensions),
        tuple(numbers.output_spatial_dimensions),
    )
    return ConvolutionDimensions(
        *used_input,
        spatial[0],
        *used_kernel,
        spatial[1],
        *used_output,
        spatial[2],
        _unused(used_input + spatial[0]),
        _unused(used_kernel + spatial[1]),
        _unused(used_output + spatial[2]),
    )


def _unused(used: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(d for d in range(max(used) + 1) if d not in used)


def sparsity(context: Context) -> AttributeValue | None:
    """Which operands of a convolution are sparse, and how."""
    proto = context.proto.sparsity_config
    given = [side for side in ("lhs", "rhs") if proto.HasField(side)]
    sides = [f"{side}={{{_sparsity_side(getattr(proto, side))}}}" for side in given]
    return RawText(f"{{{' '.join(sides)}}}") if sides else None


def _sparsity_side(proto: Message) -> str:
    fields = ("num_non_zero", "block_size", "dimension", "stride")
    return " ".join(f"{field}={getattr(proto, field)}" for field in fields)


def dot_dims(context: Context, field: str) -> tuple[int, ...]:
    """One of the four lists of DotDimensionNumbers."""
    holder = context.proto.ragged_dot_dimension_numbers if context.opcode == "ragged-dot" else context.proto
    return tuple(getattr(holder.dot_dimension_numbers, field))
