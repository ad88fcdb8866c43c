"""Layer normalisation by cuDNN: against formulas in f64 and against differences."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import Array, assert_close, parse, run
from support.library_modules import call_module, gpu_config, operands_of, rounded_to

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported

SIZES = (6, 2, 3, 4)
ROW = (1, 2, 3, 4)
EPSILON = 0.001


def text(kind: str, results: list[str], operands: list[str]) -> str:
    config = gpu_config(
        cudnn_norm_backend_config=f'{{"epsilon":{EPSILON},"kind":"{kind}","algorithm":{{"algo_id":"0"}}}}'
    )
    return call_module("__cudnn$norm", f"({', '.join([*results, 'u8[64]{0}'])})", operands, config)


def shape(kind: str, sizes: tuple[int, ...]) -> str:
    return f"{kind}[{','.join(map(str, sizes))}]"


def forward(x: Array, scale: Array, bias: Array) -> tuple[Array, Array, Array]:
    axes = (1, 2, 3)
    mean = x.mean(axes, keepdims=True)
    factor = (x.var(axes, keepdims=True) + EPSILON) ** -0.5
    return (x - mean) * factor * scale + bias, mean, factor


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("training", [False, True])
def test_forward(kind: str, training: bool) -> None:
    operands = [shape(kind, SIZES), shape(kind, ROW), shape(kind, ROW)]
    per_row = [shape("f32", (6, 1, 1, 1))] * 2 if training else []
    name = "LAYER_FWD_TRAIN" if training else "LAYER_FWD_INFER"
    values = operands_of(operands)
    *results, _ = run(text(name, [operands[0], *per_row], operands), values)
    expected = forward(*(v.astype(np.float64) for v in values))
    for result, value, of in zip(results, expected, [kind, "f32", "f32"]):
        assert_close(result, rounded_to(of, value), steps=1)


def test_backward() -> None:
    wide = [shape("f64", SIZES), shape("f64", ROW), shape("f64", ROW)]
    x, scale, bias = operands_of(wide)
    gradient = operands_of(wide[:1], seed=8)[0]
    _, mean, factor = forward(x, scale, bias)
    row = shape("f64", (6, 1, 1, 1))
    module = text("LAYER_BWD", wide, [wide[0], wide[1], wide[0], row, row])
    gradients = run(module, [x, scale, gradient, mean, factor])[:3]
    for value, result in zip((x, scale, bias), gradients):
        for at in ((0,) * 4, tuple(n - 1 for n in value.shape)):
            difference = 0.0
            for step in (1e-5, -1e-5):
                value[at] += step
                difference += (gradient * forward(x, scale, bias)[0]).sum() * np.sign(step)
                value[at] -= step
            assert difference / 2e-5 == pytest.approx(result[at], rel=1e-6)


def test_other_numbers_of_operands_are_refused() -> None:
    operands = [shape("f32", SIZES), shape("f32", ROW)]
    with pytest.raises(Unsupported, match="LAYER_FWD_INFER of 2 operands"):
        NumpyBackend().compile(parse(text("LAYER_FWD_INFER", operands[:1], operands)))
