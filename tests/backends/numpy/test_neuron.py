"""Calls of PyTorch/XLA for AWS hardware, against the HLO that their sources give as what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special
from support.library_modules import call_module, operands_of

import hlotool

X = "f32[3,4,5]"


def results(
    target: str, result: str, operands: list[str], config: str = '""', seed: int = 3
) -> tuple[Any, Any]:
    values = operands_of(operands, seed)
    text = call_module(target, result, operands, config, ", api_version=API_VERSION_UNSPECIFIED")
    return hlotool.run(hlotool.parse(text), values), [np.asarray(v, np.float64) for v in values]


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=2e-6, atol=1e-6)


def test_the_ring_hands_on() -> None:
    (y,), (x,) = results("AwsNeuronTransferWithStaticRing", X, [X])
    close(y, x)


@pytest.mark.parametrize(
    ("target", "function"),
    [
        ("AwsNeuronGelu", lambda x: x * special.ndtr(x)),
        ("AwsNeuronGeluBackward", lambda x: special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)),
        (
            "AwsNeuronGeluApprxTanh",
            lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        ),
        ("AwsNeuronSilu", lambda x: x * special.expit(x)),
        ("AwsNeuronErf", special.erf),
    ],
)
def test_functions(target: str, function: Any) -> None:
    (y,), (x,) = results(target, X, [X])
    close(y, function(x))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_and_its_gradient(axis: int) -> None:
    (y,), (x,) = results("AwsNeuronSoftmax", X, [X], f'"{axis}"')
    close(y, special.softmax(x, axis))
    (y,), (g, o) = results("AwsNeuronSoftmaxBackward", X, [X, X], f'"{axis}"')
    close(y, o * (g - (g * o).sum(axis, keepdims=True)))


def test_rms_norm() -> None:
    x, weight = operands_of([X, "f32[5]"])
    text = call_module("AwsNeuronRmsNorm", X, [X, "f32[5]", "f32[]"], '"2"')
    (y,) = hlotool.run(hlotool.parse(text), [x, weight, np.float32(0.01)])
    close(y, x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.01) * weight)


@pytest.mark.parametrize(("target", "find"), [("AwsNeuronArgMax", np.argmax), ("AwsNeuronArgMin", np.argmin)])
def test_extremes(target: str, find: Any) -> None:
    (y,), (x,) = results(target, "u32[3,5]", [X], '"1"')
    assert y.dtype == np.uint32
    np.testing.assert_array_equal(y, find(x, axis=1))


def test_top_k() -> None:
    (values, indices), (x,) = results("AwsNeuronTopK", "(f32[3,2], u32[3,2])", ["f32[3,7]"], '"2"')
    order = np.argsort(-x, axis=-1)[:, :2]
    np.testing.assert_array_equal(indices, order)
    close(values, np.take_along_axis(x, order, -1))


def test_bf16_is_rounded_once() -> None:
    kind = "bf16[64]"
    (y,), (x,) = results("AwsNeuronGelu", kind, [kind])
    expected = np.asarray(x * special.ndtr(x)).astype(y.dtype)
    assert np.count_nonzero(y != expected) <= 1  # f32 on the way, which may round to the other neighbour


BATCH_NORM = """HloModule m
ENTRY e {{
  x = f32[4,3,6] parameter(0)
  scale = f32[3] parameter(1)
  offset = f32[3] parameter(2)
  mean = f32[3] parameter(3)
  spread = f32[3] parameter(4)
  grad = f32[4,3,6] parameter(5)
  epsilon = f32[] constant(0.001)
  feature = s64[] constant(1)
  ROOT r = {shape} {call}
}}
"""
SHAPES = ["f32[4,3,6]", "f32[3]", "f32[3]", "f32[3]", "f32[3]", "f32[4,3,6]"]
THREE = "(f32[4,3,6], f32[3], f32[3])"


def batch_norm(shape: str, call: str) -> list[Any]:
    values = operands_of(SHAPES)
    values[4] = np.abs(values[4]) + np.float32(0.5)
    return hlotool.run(hlotool.parse(BATCH_NORM.format(shape=shape, call=call)), values)


CUDNN = 'custom-call({}, epsilon, feature), custom_call_target="__cudnn$batchNormalization{}"'


@pytest.mark.parametrize(
    ("shape", "call", "plain"),
    [
        (
            "f32[4,3,6]",
            CUDNN.format("x, scale, offset, mean, spread", "ForwardInference"),
            "batch-norm-inference(x, scale, offset, mean, spread), epsilon=0.001, feature_index=1",
        ),
        (
            THREE,
            CUDNN.format("x, scale, offset", "ForwardTraining"),
            "batch-norm-training(x, scale, offset), epsilon=0.001, feature_index=1",
        ),
    ],
)
def test_early_cudnn_batch_norm(shape: str, call: str, plain: str) -> None:
    """Beside XLA's own instruction; training returns 1 / sqrt(variance + epsilon) for the variance."""
    found, expected = batch_norm(shape, call), batch_norm(shape, plain)
    if shape == THREE:
        expected[2] = 1 / np.sqrt(expected[2] + np.float32(0.001))
    for one, other in zip(found, expected, strict=True):
        close(one, other)


def test_early_cudnn_batch_norm_gradient() -> None:
    found = batch_norm(THREE, CUDNN.format("x, scale, mean, spread, grad", "Backward"))
    values = operands_of(SHAPES)
    spread = np.abs(values[4]) + np.float32(0.5)
    values[4] = 1 / spread**2 - np.float32(0.001)
    text = BATCH_NORM.format(
        shape=THREE, call="batch-norm-grad(x, scale, mean, spread, grad), epsilon=0.001, feature_index=1"
    )
    for one, other in zip(found, hlotool.run(hlotool.parse(text), values), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
