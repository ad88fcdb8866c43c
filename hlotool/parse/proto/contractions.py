"""Attributes of contractions and windows: dimension numbers, windows, precision, sparsity."""

from __future__ import annotations

import re
from typing import Any

from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions, RawText, Window, WindowDim
from hlotool.parse.proto.fields import Context
from hlotool.parse.proto.schema import Message, enum_names, enum_numbers

_PRECISION = "PrecisionConfig.Precision"


def read_precision(context: Context) -> AttributeValue | None:
    """One word per operand, filled up with `default`; hidden when all are default."""
    names = enum_names(_PRECISION)
    words = [names.get(p, str(p)).lower() for p in context.proto.precision_config.operand_precision]
    if all(word == "default" for word in words):
        return None
    count = len(context.operands) - {"ragged-dot": 1, "scaled-dot": 2}.get(context.opcode, 0)
    return tuple((words + ["default"] * count)[:count])


def write_precision(proto: Message, words: Any) -> None:
    """Fill the precision of operands."""
    numbers = enum_numbers(_PRECISION)
    proto.precision_config.operand_precision.extend(numbers[word.upper()] for word in words)


#: Fields of WindowDim, and of WindowDimension.
_WINDOW = {
    "size": "size",
    "stride": "stride",
    "pad_low": "padding_low",
    "pad_high": "padding_high",
    "base_dilation": "base_dilation",
    "window_dilation": "window_dilation",
    "reversal": "window_reversal",
}


def read_window(context: Context) -> AttributeValue | None:
    """The window, unless it has no dimensions."""
    dims = context.proto.window.dimensions
    read = (WindowDim(**{ours: getattr(d, theirs) for ours, theirs in _WINDOW.items()}) for d in dims)
    return Window(tuple(read)) if dims else None


def write_window(proto: Message, window: Window) -> None:
    """Fill the window, which counts as given even if it has no dimensions."""
    proto.window.SetInParent()
    for dim in window.dims:
        proto.window.dimensions.add(**{theirs: getattr(dim, ours) for ours, theirs in _WINDOW.items()})


#: The parts that dimensions of the three arrays play, beside the spatial ones.
_PARTS = {
    "input": ("batch", "feature"),
    "kernel": ("input_feature", "output_feature"),
    "output": ("batch", "feature"),
}


def read_dim_labels(context: Context) -> AttributeValue | None:
    """Which dimension plays which part in a convolution; positions of no part occur in custom calls."""
    if not context.proto.HasField("convolution_dimension_numbers"):
        return None
    numbers = context.proto.convolution_dimension_numbers
    labels: dict[str, Any] = {}
    for array, parts in _PARTS.items():
        named = {f"{array}_{part}": getattr(numbers, f"{array}_{part}_dimension") for part in parts}
        spatial = tuple(getattr(numbers, f"{array}_spatial_dimensions"))
        used = (*named.values(), *spatial)
        unused = tuple(d for d in range(max(used) + 1) if d not in used)
        labels |= {**named, f"{array}_spatial": spatial, f"{array}_unused": unused}
    return ConvolutionDimensions(**labels)


def write_dim_labels(proto: Message, labels: ConvolutionDimensions) -> None:
    """Fill the dimension numbers of a convolution."""
    numbers = proto.convolution_dimension_numbers
    numbers.SetInParent()
    for array, parts in _PARTS.items():
        for part in parts:
            setattr(numbers, f"{array}_{part}_dimension", getattr(labels, f"{array}_{part}"))
        getattr(numbers, f"{array}_spatial_dimensions").extend(getattr(labels, f"{array}_spatial"))


_SPARSE_SIDE = re.compile(r"(lhs|rhs)=\{([^}]*)\}")
_SPARSE_FIELD = re.compile(r"(\w+)=(\d+)")


def read_sparsity(context: Context) -> AttributeValue | None:
    """Which operands of a convolution are sparse, and how."""
    proto = context.proto.sparsity_config
    given = [side for side in ("lhs", "rhs") if proto.HasField(side)]
    sides = [f"{side}={{{_sparsity_side(getattr(proto, side))}}}" for side in given]
    return RawText(f"{{{' '.join(sides)}}}") if sides else None


def _sparsity_side(proto: Message) -> str:
    fields = ("num_non_zero", "block_size", "dimension", "stride")
    return " ".join(f"{field}={getattr(proto, field)}" for field in fields)


def write_sparsity(proto: Message, raw: RawText) -> None:
    """Fill the sparsity of a convolution's operands."""
    for side, fields in _SPARSE_SIDE.findall(raw.text):
        for field, number in _SPARSE_FIELD.findall(fields):
            setattr(getattr(proto.sparsity_config, side), field, int(number))
