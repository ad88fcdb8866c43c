"""Custom calls into oneDNN against oneDNN itself, which jaxlib's CPU client contains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import assert_close, check, parse, run

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported
from hlotool.lab.conformance.generators.cases import random_array

RNG = np.random.default_rng(5)


def call(target: str, result: str, operands: list[str], config: str) -> str:
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(operands)]
    attributes = f'custom_call_target="{target}", backend_config={config}'
    root = f"  ROOT r = {result} custom-call({names}), {attributes}"
    return "\n".join(["HloModule m", "ENTRY e {", *lines, root, "}"])


def arguments(operands: list[str]) -> list[Any]:
    return [
        random_array(RNG, kind, tuple(map(int, sizes.split("]")[0].split(","))))
        for kind, sizes in (operand.split("[") for operand in operands)
    ]


def matmul(result: str, operands: list[str], config: str) -> str:
    outer = '{"outer_dimension_partitions":[],"onednn_matmul_config":' + config + "}"
    return call("__onednn$matmul", result, operands, outer)


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("left", "right", "flags"),
    [
        ("5,6", "6,7", ""),
        ("6,5", "6,7", '"transpose_a":true'),
        ("5,6", "7,6", '"transpose_b":true'),
        ("2,3,6,5", "2,3,7,6", '"transpose_a":true,"transpose_b":true'),
        (
            "2,5,3,6",
            "2,6,3,7",
            '"lhs":{"dims":"4","tensor":{"dimensions":["1","3","2","4"]}},'
            '"rhs":{"dims":"4","tensor":{"dimensions":["1","3","2","4"]}}',
        ),
    ],
)
def test_products(kind: str, left: str, right: str, flags: str) -> None:
    batch = {"2,3,6,5": "2,3,", "2,5,3,6": "2,3,"}.get(left, "")
    operands = [f"{kind}[{left}]", f"{kind}[{right}]"]
    check(matmul(f"{kind}[{batch}5,7]", operands, "{" + flags + "}"), arguments(operands), steps=8)


@pytest.mark.xla
def test_permuted_result() -> None:
    operands = ["f32[2,3,5,6]", "f32[2,3,6,7]"]
    config = '{"result":{"dims":"4","tensor":{"dimensions":["1","3","2","4"]}}}'
    check(matmul("f32[2,5,3,7]", operands, config), arguments(operands), steps=8)


@pytest.mark.xla
@pytest.mark.parametrize(
    "kind", ["RELU", "TANH", "GELU_ERF", "GELU_TANH", "ELU", "RELU6", "SIGMOID", "SWISH"]
)
def test_activations(kind: str) -> None:
    operands = ["f32[5,6]", "f32[6,7]", "f32[7]"]
    config = f'{{"fusions":{{"ops":["BIAS","{kind}"]}}}}'
    # oneDNN approximates these functions by polynomials.
    check(
        matmul("f32[5,7]", [*operands[:2], "f32[1,7]"], config),
        arguments([*operands[:2], "f32[1,7]"]),
        steps=16,
    )


@pytest.mark.xla
def test_operations_in_order() -> None:
    operands = ["f32[5,6]", "f32[6,7]", "f32[1,7]", "f32[5,7]"]
    config = '{"fusions":{"ops":["BIAS","LINEAR","BINARY_ADD","RELU"],"alpha":[0.5]}}'
    check(matmul("f32[5,7]", operands, config), arguments(operands), steps=8)


@pytest.mark.xla
def test_the_bias_comes_first() -> None:
    operands = ["f32[5,6]", "f32[6,7]", "f32[1,7]"]
    config = '{"fusions":{"ops":["LINEAR","BIAS"],"alpha":[0.5]}}'
    check(matmul("f32[5,7]", operands, config), arguments(operands), steps=8)


def test_factors_as_bits() -> None:
    operands = ["f32[5,6]", "f32[6,7]"]
    values = arguments(operands)
    bits = int(np.float32(0.25).view(np.int32))
    config = f'{{"fusions":{{"ops":["LINEAR"],"alpha_typecast":[{bits}]}}}}'
    (result,) = run(matmul("f32[5,7]", operands, config), values)
    assert_close(result, values[0] @ values[1] / 4, steps=8)


def convolution(rest: list[str], groups: int, ops: str, excess: int) -> tuple[str, list[str]]:
    """A convolution whose config stores numbers larger by `excess`, and its operands."""

    def numbers(*values: int) -> str:
        return "[" + ",".join(f'"{v + excess}"' for v in values) + "]"

    data = f'{{"data":{{"batch_dim":"0","feature_dim":"3","spatial_dims":{numbers(1, 2)}}}}}'
    filters = f'"input_feature_dim":"2","output_feature_dim":"3","spatial_dims":{numbers(0, 1)}'
    window = (
        f'"pad_left":{numbers(1, 0)},"pad_right":{numbers(2, 1)},'
        f'"strides":{numbers(1, 2)},"window_dilations":{numbers(2, 1)}'
    )
    config = (
        f'{{"onednn_conv_config":{{"dims":"4","input":{data},"kernel":{{"filter":{{{filters}}}}},'
        f'"output":{data},"window":{{{window}}},"feature_groups":"{groups}","fusions":{{"ops":[{ops}]}}}}}}'
    )
    operands = ["f32[2,7,8,4]", f"f32[3,2,{4 // groups},6]", *rest]
    return call("__onednn$convolution", "f32[2,6,4,6]", operands, config), operands


@pytest.mark.xla
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("ops", "rest"),
    [("", []), ('"BIAS","RELU"', ["f32[6]"]), ('"BINARY_ADD","TANH"', ["f32[2,6,4,6]"])],
)
def test_convolutions(groups: int, ops: str, rest: list[str]) -> None:
    text, operands = convolution(rest, groups, ops, excess=0)
    check(text, arguments(operands), steps=16)


def test_convolutions_that_count_from_one() -> None:
    new, operands = convolution([], 1, "", excess=0)
    old, _ = convolution([], 1, "", excess=1)
    values = arguments(operands)
    np.testing.assert_array_equal(run(old, values)[0], run(new, values)[0])


@pytest.mark.parametrize("name", ["strides", "window_dilations", "pad_left", "pad_right"])
def test_a_convolution_that_leaves_out_its_window_is_refused(name: str) -> None:
    text, operands = convolution([], 1, "", excess=0)
    with pytest.raises(Unsupported, match=f"no {name} in the backend config"):
        run(text.replace(f'"{name}":', '"other":'), arguments(operands))


def test_no_feature_groups_are_one() -> None:
    # onednn_convolution.cc tells apart only more than one; 0 is the default of the proto.
    one, operands = convolution([], 1, "", excess=0)
    values = arguments(operands)
    none = one.replace(',"feature_groups":"1"', "")
    assert none != one
    np.testing.assert_array_equal(run(none, values)[0], run(one, values)[0])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_softmax(axis: int, kind: str) -> None:
    # jaxlib 0.10.2 leaves the result of this call unwritten.
    operands = [f"{kind}[5,7]"]
    config = f'{{"onednn_softmax_config":{{"softmax_axis":{axis}}}}}'
    values = arguments(operands)
    (result,) = run(call("__onednn$softmax", operands[0], operands, config), values)
    exponentials = np.exp(values[0].astype(np.float64))
    expected = exponentials / exponentials.sum(axis, keepdims=True)
    np.testing.assert_array_equal(result, expected.astype(result.dtype))


def test_softmax_without_a_config_is_along_the_last_dimension() -> None:
    # As XLA wrote it until its change 12537 (June 2024): oneDNN's softmax always took the last dimension.
    values = arguments(["f32[5,7]"])
    (result,) = run(call("__onednn$softmax", "f32[5,7]", ["f32[5,7]"], '""'), values)
    exponentials = np.exp(values[0].astype(np.float64))
    expected = exponentials / exponentials.sum(-1, keepdims=True)
    np.testing.assert_array_equal(result, expected.astype(result.dtype))


def test_layer_norm_without_a_config_is_refused() -> None:
    operands = ["f32[3,4,8]", "f32[8]", "f32[8]"]
    with pytest.raises(Unsupported, match="no epsilon_typecast in the backend config"):
        run(call("__onednn$layernorm", operands[0], operands, '""'), arguments(operands))


@pytest.mark.xla
def test_layer_norm() -> None:
    operands = ["f32[3,4,8]", "f32[8]", "f32[8]"]
    epsilon = int(np.float32(1e-3).view(np.int32))
    config = f'{{"onednn_layer_norm_config":{{"rescale":"SCALE_AND_SHIFT","epsilon_typecast":{epsilon}}}}}'
    check(call("__onednn$layernorm", operands[0], operands, config), arguments(operands), steps=8)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ('{"optimization_config":{"weights_prepacked":true}}', "packed for the processor"),
        ('{"fused_ops":["RELU"]}', "early version"),
        ('{"fusions":{"ops":["BIAS"]}}', "speaks of 3"),
        ('{"fusions":{"ops":["LINEAR"]}}', "LINEAR"),
        ('{"lhs":{"tensor":{"dimensions":["1","1"]}}}', "dimensions of lhs"),
    ],
)
def test_refusals(config: str, reason: str) -> None:
    text = matmul("f32[5,7]", ["f32[5,6]", "f32[6,7]"], config)
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(text))
