"""Rules of products, convolutions, windows, and of what XLA hands to libraries.

StableHLO: docs/spec.md#dot_general, #convolution, #reduce_window, #fft, #batch_norm_training.
"""

from __future__ import annotations

import re

from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions, Ints, Window, WindowDim
from hlotool.parser.mlir.elementwise import constant_integers
from hlotool.parser.mlir.frames import Context, Results, operation
from hlotool.parser.mlir.syntax import Attribute, Foreign, OtherType

_LISTS = re.compile(r"\[([^\]]*)\]")
_NUMBERED = re.compile(r"(\w+) ?= ?(\d+|\[[\d, ]*\])")


def _precision(context: Context) -> dict[str, AttributeValue]:
    found = context.get("precision_config", "precision")
    words = tuple(str(word).lower() for word in found) if isinstance(found, tuple) else ()
    return {"operand_precision": words} if set(words) - {"default"} else {}


#: Algorithms of a product: types of both operands and of the sum, components of each operand, products.
_ALGORITHMS = {
    ("f16", "f16", "f16", 1): "dot_f16_f16_f16",
    ("f16", "f16", "f32", 1): "dot_f16_f16_f32",
    ("bf16", "bf16", "bf16", 1): "dot_bf16_bf16_bf16",
    ("bf16", "bf16", "f32", 1): "dot_bf16_bf16_f32",
    ("bf16", "bf16", "f32", 3): "dot_bf16_bf16_f32_x3",
    ("bf16", "bf16", "f32", 6): "dot_bf16_bf16_f32_x6",
    ("bf16", "bf16", "f32", 9): "dot_bf16_bf16_f32_x9",
    ("tf32", "tf32", "f32", 1): "dot_tf32_tf32_f32",
    ("tf32", "tf32", "f32", 3): "dot_tf32_tf32_f32_x3",
    ("f32", "f32", "f32", 1): "dot_f32_f32_f32",
    ("f64", "f64", "f64", 1): "dot_f64_f64_f64",
}


def _algorithm(context: Context) -> dict[str, AttributeValue]:
    found = context.get("algorithm")
    if isinstance(found, Foreign):
        words = dict(re.findall(r"(\w+) = (\w+)", found.text))
    elif isinstance(found, dict):
        words = {k: v.text if isinstance(v, OtherType) else str(v).lower() for k, v in found.items()}
    else:
        return {}
    types = tuple(words.get(f"{key}_type", "") for key in ("lhs_precision", "rhs_precision", "accumulation"))
    count = words.get("num_primitive_operations", "1")
    if types[0].startswith("f8") and types[1].startswith("f8"):
        is_fast = words.get("allow_imprecise_accumulation") == "true"
        return {"algorithm": "dot_any_f8_any_f8_f32" + ("_fast_accum" if is_fast else "")}
    name = _ALGORITHMS.get((*types, int(count) if count.isdigit() else 0))
    if name is None:
        raise context.unsupported("this algorithm has no name in HLO")
    return {"algorithm": name}


def _batch_and_contracting(context: Context, numbers: object) -> dict[str, AttributeValue]:
    named: dict[str, AttributeValue] = {}
    for kind, key in (("batch", "batching"), ("contracting", "contracting")):
        if isinstance(numbers, dict):
            pair = [numbers.get(f"{side}_{key}_dimensions", ()) for side in ("lhs", "rhs")]
        else:
            stated = context.get(f"{key}_dims") or ((), ())
            pair = list(stated) if isinstance(stated, tuple) else []
        if len(pair) != 2:
            raise context.error(f"needs {key} dimensions of both operands")
        for side, dims in zip(("lhs", "rhs"), pair):
            if listed := context.as_integers(dims, f"{key}_dims"):
                named[f"{side}_{kind}_dims"] = listed
    return named


@operation("dot_general")
def _dot_general(context: Context) -> Results:
    named = _batch_and_contracting(context, context.get("dot_dimension_numbers"))
    return context.main("dot", *context.operands, **named, **_precision(context), **_algorithm(context))


@operation("ragged_dot")
def _ragged_dot(context: Context) -> Results:
    numbers = context.get("ragged_dot_dimension_numbers")
    named = _batch_and_contracting(context, numbers)
    for name in ("lhs_ragged", "rhs_group"):
        stated = numbers.get(f"{name}_dimensions", ()) if isinstance(numbers, dict) else ()
        named[f"{name}_dims"] = context.as_integers(stated, name)
    return context.main("ragged-dot", *context.operands, **named, **_precision(context))


@operation("dot")
def _dot(context: Context) -> Results:
    last = len(context.dims(0)) - 1
    named: dict[str, AttributeValue] = {"lhs_contracting_dims": (last,), "rhs_contracting_dims": (0,)}
    return context.main("dot", *context.operands, **named, **_precision(context))


@operation("convolution")
def _convolution(context: Context) -> Results:
    return _convolved(context, None)


@operation("dynamic_conv")
def _dynamic_conv(context: Context) -> Results:
    flat = constant_integers(context, 2)
    return _convolved(context, tuple(zip(flat[::2], flat[1::2])))


def _convolved(context: Context, stated_padding: tuple[Ints, ...] | None) -> Results:
    numbers = _dimension_numbers(context)
    if not all(0 <= number < len(context.dims(1)) for number in _listed(numbers)):
        raise context.error(f"has no {len(context.dims(1))} dimensions as its dimension numbers say")
    stated = context.get("window")
    window = stated if isinstance(stated, dict) else {}
    sizes = tuple(context.dims(1)[d] for d in numbers.kernel_spatial)
    rank = len(sizes)

    def listed(name: str, short: str, default: int) -> Ints:
        value = window.get(short, context.get(name))
        return (default,) * rank if value is None else context.as_integers(value, name)

    padding = stated_padding if stated_padding is not None else window.get("pad", context.get("padding"))
    pads = _pairs(context, padding, rank)
    parts = zip(
        sizes,
        listed("window_strides", "stride", 1),
        pads,
        listed("lhs_dilation", "lhs_dilate", 1),
        listed("rhs_dilation", "rhs_dilate", 1),
        listed("window_reversal", "reverse", 0),
    )
    dims = tuple(WindowDim(n, s, low, high, b, w, bool(r)) for n, s, (low, high), b, w, r in parts)
    named: dict[str, AttributeValue] = {"dim_labels": numbers}
    if dims:
        named["window"] = Window(dims)
    for name in ("feature_group_count", "batch_group_count"):
        if (count := context.integer(name, default=1)) != 1:
            named[name] = count
    return context.main("convolution", context.operand(0), context.operand(1), **named, **_precision(context))


def _listed(numbers: ConvolutionDimensions) -> Ints:
    return (
        *(numbers.input_batch, numbers.input_feature, *numbers.input_spatial),
        *(numbers.kernel_input_feature, numbers.kernel_output_feature, *numbers.kernel_spatial),
        *(numbers.output_batch, numbers.output_feature, *numbers.output_spatial),
    )


def _pairs(context: Context, value: object, rank: int) -> list[tuple[int, int]]:
    """`[[low, high], …]`, or the same as a dense attribute."""
    if value is None:
        return [(0, 0)] * rank
    rows = value if isinstance(value, tuple) else ()
    flat = [n for row in rows for n in context.as_integers(row, "padding")] if rows else []
    flat = flat or list(context.as_integers(value, "padding"))
    if len(flat) == 1 and rank:  # dense<0>
        flat *= 2 * rank
    if len(flat) != 2 * rank:
        raise context.error(f"needs {rank} pairs as padding")
    return list(zip(flat[::2], flat[1::2]))


def _dimension_numbers(context: Context) -> ConvolutionDimensions:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or in words: `raw input_batch_dimension = 0, …`."""
    stated = context.get("dimension_numbers")
    if isinstance(stated, Foreign) and "input_batch_dimension" in stated.text:
        stated = {key: _numbers_in(value) for key, value in _NUMBERED.findall(stated.text)}
    if isinstance(stated, dict):
        return _in_words(context, stated)
    lists = _LISTS.findall(stated.text) if isinstance(stated, Foreign) else []
    try:
        given, kernel, result = ([word.strip() for word in one.split(",")] for one in lists)
        spatial = [str(n) for n in range(len(given) - 2)]
        return ConvolutionDimensions(
            given.index("b"), given.index("f"), tuple(map(given.index, spatial)),
            kernel.index("i"), kernel.index("o"), tuple(map(kernel.index, spatial)),
            result.index("b"), result.index("f"), tuple(map(result.index, spatial)),
        )  # fmt: skip
    except ValueError:
        raise context.error("needs dimension numbers such as [b, 0, f]x[0, i, o]->[b, 0, f]") from None


def _in_words(context: Context, stated: dict[str, Attribute]) -> ConvolutionDimensions:
    def one(role: str) -> int:
        found = stated.get(f"{role}_dimension")
        if not isinstance(found, int):
            raise context.error(f"needs an integer as {role}_dimension")
        return found

    def spatial(role: str) -> Ints:
        name = f"{role}_spatial_dimensions"
        return context.as_integers(stated.get(name, ()), name)

    return ConvolutionDimensions(
        one("input_batch"), one("input_feature"), spatial("input"),
        one("kernel_input_feature"), one("kernel_output_feature"), spatial("kernel"),
        one("output_batch"), one("output_feature"), spatial("output"),
    )  # fmt: skip


def _numbers_in(text: str) -> int | Ints:
    found = tuple(map(int, re.findall(r"\d+", text)))
    return found if text.startswith("[") else found[0]


def _window(context: Context, rank: int) -> dict[str, AttributeValue]:
    """The window of a reduction; none of a scalar."""
    ones = (1,) * rank
    sizes = context.integers("window_dimensions", default=ones)
    strides = context.integers("window_strides", default=ones)
    base = context.integers("base_dilations", default=ones)
    inner = context.integers("window_dilations", default=ones)
    if {len(one) for one in (sizes, strides, base, inner)} != {rank}:
        raise context.error(f"needs a window of {rank} dimensions")
    pads = _pairs(context, context.get("padding"), rank)
    parts = zip(sizes, strides, pads, base, inner)
    dims = tuple(WindowDim(n, s, low, high, b, w) for n, s, (low, high), b, w in parts)
    return {"window": Window(dims)} if dims else {}


@operation("reduce_window")
def _reduce_window(context: Context) -> Results:
    window = _window(context, len(context.dims(0)))
    return context.main("reduce-window", *context.operands, **window, to_apply=context.region(0))


@operation("select_and_scatter")
def _select_and_scatter(context: Context) -> Results:
    window = _window(context, len(context.dims(0)))
    return context.main(
        "select-and-scatter", *context.operands, **window, select=context.region(0), scatter=context.region(1)
    )


@operation("fft")
def _fft(context: Context) -> Results:
    kind, length = context.text("fft_type", "type"), context.integers("fft_length", "length")
    return context.main("fft", *context.operands, fft_type=kind, fft_length=length)


@operation("cholesky")
def _cholesky(context: Context) -> Results:
    return context.main("cholesky", *context.operands, lower=context.flag("lower"))


@operation("triangular_solve")
def _triangular_solve(context: Context) -> Results:
    flags: dict[str, AttributeValue] = {
        name: True for name in ("left_side", "lower", "unit_diagonal") if context.flag(name)
    }
    return context.main(
        "triangular-solve",
        *context.operands,
        **flags,
        transpose_a=context.text("transpose_a", default="NO_TRANSPOSE"),
    )


@operation("batch_norm_grad", "batch_norm_inference", "batch_norm_training")
def _batch_norm(context: Context) -> Results:
    opcode = context.operation.name.rpartition(".")[2].replace("_", "-")
    epsilon = context.get("epsilon")
    if not isinstance(epsilon, int | float):
        raise context.error("needs a number as epsilon")
    index = context.integer("feature_index")
    return context.main(opcode, *context.operands, epsilon=float(epsilon), feature_index=index)
