"""Attributes of contractions and windows: dimension numbers, windows, precision, sparsity, scales."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
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


_SIDE = re.compile(r"(lhs|rhs)=\{([^}]*)\}")
_SIDE_FIELD = re.compile(r"(\w+)=(\d+(?:x\d+)*)")


def read_sparsity(context: Context) -> AttributeValue | None:
    """Which operands are sparse, and how."""
    return _read_sides(context.proto.sparsity_config, _sparsity_side)


def read_block_scaling(context: Context) -> AttributeValue | None:
    """Which operands have scales by blocks, and where these are."""
    return _read_sides(context.proto.block_scaling_config, _block_scaling_side)


def _read_sides(proto: Message, text: Callable[[Message], Iterable[str]]) -> RawText | None:
    """What is said of each operand of a contraction, as XLA prints it."""
    given = [side for side in ("lhs", "rhs") if proto.HasField(side)]
    sides = [f"{side}={{{' '.join(text(getattr(proto, side)))}}}" for side in given]
    return RawText(f"{{{' '.join(sides)}}}") if sides else None


def _sparsity_side(proto: Message) -> Iterator[str]:
    yield f"sparsity={proto.num_non_zero}x{proto.block_size}"
    yield f"dimension={proto.dimension}"
    yield f"stride={proto.stride}"
    if proto.idx:  # which parsers before 0.12 do not take
        yield f"idx={proto.idx}"


def _block_scaling_side(proto: Message) -> Iterator[str]:
    yield f"scale_idx={proto.scale_idx}"
    if proto.zero_idx:
        yield f"zero_idx={proto.zero_idx}"
    for name in ("strides", "steps"):
        if sizes := getattr(proto, name):
            yield f"{name}={'x'.join(map(str, sizes))}"


def write_sparsity(proto: Message, raw: RawText) -> None:
    """Fill the sparsity of a contraction's operands."""
    for side, fields in _SIDE.findall(raw.text):
        tensor = getattr(proto.sparsity_config, side)
        tensor.SetInParent()
        for field, text in _SIDE_FIELD.findall(fields):
            if field == "sparsity":
                tensor.num_non_zero, tensor.block_size = map(int, text.split("x"))
            else:
                setattr(tensor, field, int(text))


def write_block_scaling(proto: Message, raw: RawText) -> None:
    """Fill the scales of a contraction's operands."""
    for side, fields in _SIDE.findall(raw.text):
        tensor = getattr(proto.block_scaling_config, side)
        tensor.SetInParent()
        for field, text in _SIDE_FIELD.findall(fields):
            if field in ("strides", "steps"):
                getattr(tensor, field).extend(map(int, text.split("x")))
            else:
                setattr(tensor, field, int(text))
