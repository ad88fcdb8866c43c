"""Convolutions by cuDNN: against plain convolutions, their adjoints, and sums in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import erf
from support.differential import Array, assert_close, parse, run
from support.library_modules import call_module, gpu_config, operands_of, rounded_to

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported

NHWC = "b01f_o01i->b01f"


def conv_config(scale: float = 1, side: float = 0, mode: str = "kNone", more: str = "") -> str:
    return gpu_config(
        cudnn_conv_backend_config=f'{{"conv_result_scale":{scale},"activation_mode":"{mode}",'
        f'"side_input_scale":{side},"leakyrelu_alpha":0.25{more}}}'
    )


def convolution(
    target: str,
    result: str,
    operands: list[str],
    config: str,
    window: str,
    labels: str = NHWC,
    groups: int = 1,
) -> str:
    more = f", window={{{window}}}, dim_labels={labels}"
    more += f", feature_group_count={groups}" if groups > 1 else ""
    return call_module(f"__cudnn${target}", f"({result}, u8[32]{{0}})", operands, config, more)


def plain(
    result: str, operands: list[str], values: list[Any], window: str, labels: str = NHWC, groups: int = 1
) -> Array:
    """The `convolution` of the same attributes."""
    text = f"""HloModule plain
ENTRY e {{
  x = {operands[0]} parameter(0)
  w = {operands[1]} parameter(1)
  ROOT c = {result} convolution(x, w), window={{{window}}}, dim_labels={labels}, feature_group_count={groups}
}}"""
    return run(text, values)[0]


def test_integers_of_64_bits_wrap_as_such() -> None:
    """XLA:GPU hands them to cuDNN, which has no such type: the text says what they mean."""
    large = np.int64(2**62 + 1)
    operands = ["s64[1,1,3,1]", "s64[1,1,3,1]"]
    values = [np.full((1, 1, 3, 1), large), np.array([[[[1], [2], [4]]]])]
    text = convolution("convForward", "s64[1,1,1,1]", operands, conv_config(), "size=1x3")
    found, _ = run(text, values)
    assert int(np.asarray(found).ravel()[0]) == (7 * (2**62 + 1) + 2**63) % 2**64 - 2**63


def test_integers_of_32_bits_wrap_as_such() -> None:
    operands = ["u32[1,1,3,1]", "u32[1,1,3,1]"]
    values = [np.full((1, 1, 3, 1), 2**31, np.uint32), np.array([[[[1], [2], [4]]]], np.uint32)]
    text = convolution("convForward", "u32[1,1,1,1]", operands, conv_config(), "size=1x3")
    assert int(np.asarray(run(text, values)[0]).ravel()[0]) == 2**31


def test_input_and_output_of_other_batches_are_refused() -> None:
    """XLA:GPU makes such a call of a convolution with groups in the batch."""
    operands = ["f32[2,1,1,2]", "f32[2,1,1,1]"]
    text = convolution("convBackwardInput", "f32[1,1,1,1]", operands, conv_config(), "size=1x1")
    with pytest.raises(Unsupported, match="do not fit its window or groups"):
        run(text, [np.ones((2, 1, 1, 2), np.float32), np.ones((2, 1, 1, 1), np.float32)])


def test_groups_that_have_no_whole_number_of_outputs_are_refused() -> None:
    """XLA:GPU pads three output features of three groups to four."""
    operands = ["s8[1,2,1,12]", "s8[4,1,1,4]"]
    text = convolution("convForward", "s8[1,2,1,4]", operands, conv_config(), "size=1x1", groups=3)
    with pytest.raises(Unsupported, match="do not fit its window or groups"):
        run(text, [np.ones((1, 2, 1, 12), np.int8), np.ones((4, 1, 1, 4), np.int8)])


WINDOWS = [
    ("size=3x2", 1, (6, 6)),
    ("size=3x2 stride=2x1 pad=1_1x0_0 rhs_dilate=1x2", 2, (4, 5)),
    ("size=3x2 stride=2x1 pad=1_1x0_0 rhs_dilate=1x2 rhs_reversal=1x1", 1, (4, 5)),
]


@pytest.mark.parametrize(("window", "groups", "sizes"), WINDOWS)
def test_forward(window: str, groups: int, sizes: tuple[int, int]) -> None:
    operands = ["f32[2,8,7,4]", f"f32[6,3,2,{4 // groups}]"]
    result = f"f32[2,{sizes[0]},{sizes[1]},6]"
    values = operands_of(operands)
    text = convolution("convForward", result, operands, conv_config(), window, groups=groups)
    np.testing.assert_array_equal(
        run(text, values)[0], plain(result, operands, values, window, groups=groups)
    )


@pytest.mark.parametrize(("window", "groups", "sizes"), WINDOWS)
def test_gradients_are_adjoint(window: str, groups: int, sizes: tuple[int, int]) -> None:
    """<g, conv(x, w)> is linear in x and in w; the gradients are its coefficients."""
    shape_x, shape_w = "f64[2,8,7,4]", f"f64[6,3,2,{4 // groups}]"
    shape_y = f"f64[2,{sizes[0]},{sizes[1]},6]"
    x, w, g = operands_of([shape_x, shape_w, shape_y])
    y = plain(shape_y, [shape_x, shape_w], [x, w], window, groups=groups)

    def gradient(target: str, result: str, operands: list[str], values: list[Any]) -> Array:
        text = convolution(target, result, operands, conv_config(), window, groups=groups)
        return run(text, values)[0]

    dx = gradient("convBackwardInput", shape_x, [shape_y, shape_w], [g, w])
    dw = gradient("convBackwardFilter", shape_w, [shape_x, shape_y], [x, g])
    assert (dx * x).sum() == pytest.approx((g * y).sum(), rel=1e-12)
    assert (dw * w).sum() == pytest.approx((g * y).sum(), rel=1e-12)
    # Which element has which coefficient: one of each by differences.
    for value, coefficients, at in ((x, dx, (1, 3, 2, 1)), (w, dw, (3, 1, 1, 1))):
        value[at] += 1
        moved = plain(shape_y, [shape_x, shape_w], [x, w], window, groups=groups)
        value[at] -= 1
        assert (g * (moved - y)).sum() == pytest.approx(coefficients[at], rel=1e-9)


@pytest.mark.parametrize(("kind", "labels"), [("f16", "bf01_oi01->bf01"), ("bf16", NHWC), ("f64", NHWC)])
def test_element_types_and_layouts(kind: str, labels: str) -> None:
    channels_last = labels == NHWC
    operands = (
        [f"{kind}[2,5,5,3]", f"{kind}[4,3,3,3]"]
        if channels_last
        else [f"{kind}[2,3,5,5]", f"{kind}[4,3,3,3]"]
    )
    result = f"{kind}[2,5,5,4]" if channels_last else f"{kind}[2,4,5,5]"
    values = operands_of(operands)
    text = convolution("convForward", result, operands, conv_config(), "size=3x3 pad=1_1x1_1", labels)
    expected = plain(
        result.replace(kind, "f64"),
        [o.replace(kind, "f64") for o in operands],
        [v.astype(np.float64) for v in values],
        "size=3x3 pad=1_1x1_1",
        labels,
    )
    assert_close(run(text, values)[0], rounded_to(kind, expected), steps=1)


def activation(mode: str, x: Array) -> Array:
    """In f64."""
    return {
        "kNone": x,
        "kRelu": np.maximum(x, 0),
        "kRelu6": np.clip(x, 0, 6),
        "kElu": np.where(x > 0, x, np.expm1(x)),
        "kLeakyRelu": np.where(x > 0, x, 0.25 * x),
        "kSigmoid": 1 / (1 + np.exp(-x)),
        "kTanh": np.tanh(x),
        "kGeluExact": 0.5 * x * (1 + erf(x / np.sqrt(2))),
    }[mode]


@pytest.mark.parametrize(
    "mode", ["kNone", "kRelu", "kRelu6", "kElu", "kLeakyRelu", "kSigmoid", "kTanh", "kGeluExact"]
)
@pytest.mark.parametrize("side", [0, 0.5])
def test_bias_and_activation(mode: str, side: float) -> None:
    operands = ["f16[2,5,5,3]", "f16[4,3,3,3]", "f16[4]", *(["f16[2,5,5,4]"] if side else [])]
    values = operands_of(operands)
    window = "size=3x3 pad=1_1x1_1"
    text = convolution(
        "convBiasActivationForward", "f16[2,5,5,4]", operands, conv_config(2, side, mode), window
    )
    x, w, bias, *rest = (v.astype(np.float64) for v in values)
    total = 2 * plain("f64[2,5,5,4]", ["f64[2,5,5,3]", "f64[4,3,3,3]"], [x, w], window) + bias
    if side:
        total = total + side * rest[0]
    assert_close(run(text, values)[0], rounded_to("f16", activation(mode, total)), steps=1)


@pytest.mark.parametrize(("kind", "low", "high"), [("s8", -128, 127), ("f32", -np.inf, np.inf)])
def test_bytes(kind: str, low: float, high: float) -> None:
    operands = ["s8[2,5,5,8]", "s8[4,3,3,8]", "f32[4]", f"{kind}[2,5,5,4]"]
    values = operands_of(operands, limit=20)
    window = "size=3x3 pad=1_1x1_1"
    config = conv_config(0.125, 0.5, "kRelu")
    text = convolution("convBiasActivationForward", f"{kind}[2,5,5,4]", operands, config, window)
    x, w, bias, side = (v.astype(np.float64) for v in values)
    total = plain("f64[2,5,5,4]", ["f64[2,5,5,8]", "f64[4,3,3,8]"], [x, w], window) / 8 + side / 2 + bias
    expected = np.clip(np.maximum(total, 0), low, high)
    result = run(text, values)[0]
    if kind == "f32":
        assert_close(result, expected.astype(np.float32), steps=2)
    else:
        assert (expected == high).any()
        np.testing.assert_array_equal(result, np.rint(expected).astype(np.int8))


@pytest.mark.parametrize(
    ("labels", "operands"),
    [
        ("bf01_oi01->bf01", ["s8[2,4,5,6,4]", "s8[8,4,3,3,4]"]),
        ("b?01f_o?01i->b?01f", ["s8[2,4,5,6,4]", "s8[8,4,3,3,4]"]),
    ],
)
def test_vectors_of_features(labels: str, operands: list[str]) -> None:
    """NCHW_VECT_C: the dimension without label holds four neighbouring features."""
    values = operands_of(operands)
    if labels.startswith("bf"):
        flat = [values[0].transpose(0, 1, 4, 2, 3).reshape(2, 16, 5, 6)]
        flat.append(values[1].transpose(0, 1, 4, 2, 3).reshape(8, 16, 3, 3))
    else:
        values = [v.transpose(0, 4, 2, 3, 1) for v in values]
        operands = ["s8[2,4,5,6,4]", "s8[8,4,3,3,4]"]
        flat = [values[0].transpose(0, 4, 1, 2, 3).reshape(2, 16, 5, 6)]
        flat.append(values[1].transpose(0, 4, 1, 2, 3).reshape(8, 16, 3, 3))
    window = "size=3x3 pad=1_1x1_1"
    result = "s32[2,2,5,6,4]" if labels.startswith("bf") else "s32[2,4,5,6,2]"
    text = convolution("convForward", result, operands, conv_config(), window, labels)
    expected = plain("s32[2,8,5,6]", ["s8[2,16,5,6]", "s8[8,16,3,3]"], flat, window, "bf01_oi01->bf01")
    split = expected.reshape(2, 2, 4, 5, 6)
    order = (0, 1, 3, 4, 2) if labels.startswith("bf") else (0, 2, 3, 4, 1)
    np.testing.assert_array_equal(run(text, values)[0], split.transpose(order))


def test_reordered_kernel_and_bias() -> None:
    """What convReorderFilterAndBias makes of a kernel and a bias gives the same convolution."""
    shapes = ["s8[2,2,5,5,32]", "s8[32,2,3,3,32]", "f32[32]"]
    values = operands_of(shapes)
    more = ", window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"
    plain_call = f"""(s8[2,1,5,5,32]{{4,3,2,1,0}}, u8[0]{{0}}) custom-call(x, KERNEL, BIAS){more},
    custom_call_target="__cudnn$convBiasActivationForward", backend_config={conv_config(0.125)}"""
    head = f"""HloModule m
ENTRY e {{
  x = {shapes[0]}{{4,3,2,1,0}} parameter(0)
  w = {shapes[1]}{{4,3,2,1,0}} parameter(1)
  b = {shapes[2]}{{0}} parameter(2)
"""
    direct = head + "  c = " + plain_call.replace("KERNEL", "w").replace("BIAS", "b")
    reordered = (
        head
        + f"""  r = ({shapes[1]}{{4,3,2,1,0}}, {shapes[2]}{{0}}) custom-call(w, b),
    custom_call_target="__cudnn$convReorderFilterAndBias"
  k = {shapes[1]}{{4,3,2,1,0}} get-tuple-element(r), index=0
  d = {shapes[2]}{{0}} get-tuple-element(r), index=1
  c = """
        + plain_call.replace("KERNEL", "k")
        .replace("BIAS", "d")
        .replace('"leakyrelu_alpha":0.25', '"leakyrelu_alpha":0.25,"reordered_int8_nchw_vect":true')
    )
    tail = "\n  ROOT y = s8[2,1,5,5,32]{4,3,2,1,0} get-tuple-element(c), index=0\n}"
    np.testing.assert_array_equal(run(reordered + tail, values)[0], run(direct + tail, values)[0])
    kernel_only = f"""HloModule m
ENTRY e {{
  w = {shapes[1]} parameter(0)
  ROOT r = {shapes[1]} custom-call(w), custom_call_target="__cudnn$convReorderFilter"
}}"""
    moved = run(kernel_only, values[1:2])[0]
    assert (moved != values[1]).any()
    np.testing.assert_array_equal(np.sort(moved, axis=None), np.sort(values[1], axis=None))


def graph_config(graph: str) -> str:
    return conv_config(more=f',"serialized_graph":"{graph}"')


def test_graph_of_operations() -> None:
    """Every operation rounds to its type; the last one is the result, `amax` a second one."""
    operands = ["f8e4m3fn[2,5,5,4]", "f8e4m3fn[6,3,3,4]", "f32[]", "f32[2,5,5,6]", "f32[]"]
    graph = (
        "1:[f32]conv();2:[f32]scale(1);3:[f32]add(2);4:[f32]relu(3);5:[f32]amax(4);6:[f8e4m3fn]invscale(4);"
    )
    window = "size=3x3 pad=1_1x1_1"
    values = operands_of(operands[:2])
    side = operands_of(operands[3:4], seed=9)[0]
    scale, divisor = np.float32(0.25), np.float32(0.01)
    text = call_module(
        "__cudnn$convForwardGraph",
        "(f8e4m3fn[2,5,5,6]{3,2,1,0}, f32[], u8[32]{0})",
        operands,
        graph_config(graph),
        f", window={{{window}}}, dim_labels={NHWC}",
    )
    result, amax, _ = run(text, [*values, scale, side, divisor])
    x, w = (v.astype(np.float64) for v in values)
    exact = plain("f64[2,5,5,6]", ["f64[2,5,5,4]", "f64[6,3,3,4]"], [x, w], window) / 4 + side
    exact = np.maximum(exact, 0)
    assert float(amax) == pytest.approx(exact.max(), rel=1e-5)
    assert (exact * 100 > 448).any()
    expected = rounded_to("f8e4m3fn", np.clip(exact * 100, -448, 448))
    assert_close(result, expected, steps=1)
    assert (result == expected).mean() > 0.98


def test_graph_that_rounds_in_between() -> None:
    operands = ["f16[1,3,3,1]", "f16[1,1,1,1]", "f16[]"]
    text = call_module(
        "__cudnn$convForwardGraph",
        "(f16[1,3,3,1], u8[8])",
        operands,
        graph_config("7:[f16]conv();8:[f16]scale(7);"),
        f", window={{size=1x1}}, dim_labels={NHWC}",
    )
    x = np.full((1, 3, 3, 1), 1 + 2**-10, np.float16)
    w, factor = x[:, :1, :1], np.float16(3)
    once = (x.astype(np.float32) * w.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(run(text, [x, w, factor])[0], once * factor)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ("", "serialized_graph"),
        ("1:[f16]conv();2:[f16]gelu(1);", "gelu"),
        ("1:[f16]conv();2:[f16]relu(1);3:[f16]elu(1);", "2 ends"),
        ("1:[f16]conv();2:[f16]add(1);", "other than 2 operands"),
        ("1:[f32]conv();", "ends in f32"),
    ],
)
def test_graphs_that_are_refused(graph: str, reason: str) -> None:
    operands = ["f16[1,3,3,1]", "f16[1,1,1,1]"]
    more = f", window={{size=1x1}}, dim_labels={NHWC}"
    text = call_module(
        "__cudnn$convForwardGraph", "(f16[1,3,3,1], u8[8])", operands, graph_config(graph), more
    )
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(text))


@pytest.mark.parametrize(
    ("target", "operands", "config", "window", "reason"),
    [
        ("convForward", ["f32[1,4,4,2]", "f32[3,2,2,2]"], conv_config(), "size=3x3", "do not fit"),
        ("convForward", ["f32[1,4,4,2]", "f32[3,2,2,3]"], conv_config(), "size=2x2", "do not fit"),
        ("convForward", ["f32[1,4,4,2]", "f32[3,2,2,2]"], conv_config(scale=2), "size=2x2", "scaled"),
        ("convBiasActivationForward", ["f32[1,4,4,2]", "f32[3,2,2,2]"], conv_config(), "size=2x2", "bias"),
        (
            "convBiasActivationForward",
            ["f32[1,4,4,2]", "f32[3,2,2,2]", "f32[3]"],
            conv_config(mode="kBandPass"),
            "size=2x2",
            "kBandPass",
        ),
    ],
)
def test_refusals(target: str, operands: list[str], config: str, window: str, reason: str) -> None:
    text = convolution(target, "f32[1,3,3,3]", operands, config, window)
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(text))
