"""Arrays with one scale per block, and their products."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.differential import Array, assert_close, parse, run
from support.library_modules import call_module, gpu_config, operands_of, rounded_to

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported


def scales(kind: str, rows: int, columns: int) -> Array:
    """Powers of two."""
    exponents = np.random.default_rng(rows).integers(-3, 4, (rows, columns))
    result: Array = rounded_to(kind, 2.0**exponents)
    return result


def wide(value: Array, scale: Array) -> Array:
    """In f64, with scales multiplied in."""
    spread = np.repeat(scale.astype(np.float64), value.shape[-1] // scale.shape[-1], axis=-1)
    return value.astype(np.float64) * spread[: value.shape[-2]]


CONFIG = gpu_config(block_scaled_dot_backend_config='{"block_size":"32"}')


@pytest.mark.parametrize("batch", [(), (3,)])
def test_products(batch: tuple[int, ...]) -> None:
    sizes = "".join(f"{n}," for n in batch)
    operands = [f"f8e4m3fn[{sizes}4,64]", f"f8e5m2[{sizes}8,64]"]
    operands += [f"f8e8m0fnu[{sizes}4,2]", f"f8e8m0fnu[{sizes}8,2]"]
    a, b = operands_of(operands[:2])
    factors = [np.broadcast_to(scales("f8e8m0fnu", n, 2), (*batch, n, 2)) for n in (4, 8)]
    text = call_module("__op$block_scaled_dot", f"f32[{sizes}4,8]", operands, CONFIG)
    expected = wide(a, factors[0]) @ wide(b, factors[1]).swapaxes(-1, -2)
    assert_close(run(text, [a, b, *factors])[0], expected.astype(np.float32), steps=4)


def test_one_scaled_operand_and_a_scale_of_all() -> None:
    a, b = operands_of(["f8e4m3fn[4,64]", "bf16[8,64]"])
    factor = scales("f8e8m0fnu", 4, 2)
    operands = ["f8e4m3fn[4,64]", "bf16[8,64]", "f8e8m0fnu[4,2]"]
    text = call_module("__op$block_scaled_dot", "f32[4,8]", operands, CONFIG)
    expected = wide(a, factor) @ b.astype(np.float64).T
    assert_close(run(text, [a, b, factor])[0], expected.astype(np.float32), steps=4)

    operands = ["f4e2m1fn[4,64]", "f4e2m1fn[8,64]", "f8e4m3fn[4,4]", "f8e4m3fn[8,4]", "f32[]"]
    a, b = operands_of(operands[:2])
    left, right = scales("f8e4m3fn", 4, 4), scales("f8e4m3fn", 8, 4)
    config = gpu_config(block_scaled_dot_backend_config='{"block_size":"16"}')
    text = call_module("__op$block_scaled_dot", "f32[4,8]", operands, config)
    expected = 0.25 * wide(a, left) @ wide(b, right).T
    assert_close(run(text, [a, b, left, right, np.float32(0.25)])[0], expected.astype(np.float32), steps=4)


def tiled(scale: Array) -> Array:
    """Row-major scales as cuDNN reads them: element (r, c) of a tile at (r % 32, r // 32, c)."""
    rows, columns = scale.shape
    result = np.empty(rows * columns, scale.dtype)
    for row in range(rows):
        for column in range(columns):
            tile = row // 128 * (columns // 4) + column // 4
            inside = row % 32 * 16 + row % 128 // 32 * 4 + column % 4
            result[tile * 512 + inside] = scale[row, column]
    return result.reshape(rows, columns)


def test_scales_in_tiles() -> None:
    operands = ["f8e4m3fn[256,256]", "f8e4m3fn[128,256]", "f8e8m0fnu[256,8]", "f8e8m0fnu[128,8]"]
    a, b = operands_of(operands[:2])
    left, right = scales("f8e8m0fnu", 256, 8), scales("f8e8m0fnu", 128, 8)
    text = call_module("__cudnn$blockScaledDot", "(f32[256,128], u8[32])", operands, gpu_config())
    expected = wide(a, left) @ wide(b, right).T
    assert_close(run(text, [a, b, tiled(left), tiled(right)])[0], expected.astype(np.float32), steps=8)


def test_quantisation_and_back() -> None:
    x = operands_of(["bf16[4,64]"])[0]
    x[2, 32:] *= np.array(1000).astype(x.dtype)
    text = call_module("__op$quantize", "(f8e4m3fn[4,64], f8e8m0fnu[4,2])", ["bf16[4,64]"], "{}")
    quantised, scale = run(text, [x])
    blocks = np.abs(x.astype(np.float64)).reshape(4, 2, 32).max(-1)
    # The largest magnitude over the scale is near the largest power of two of f8e4m3fn.
    ratio = blocks / scale.astype(np.float64)
    assert (ratio > 256 / np.sqrt(2) / 1.01).all()
    assert (ratio < 256 * np.sqrt(2) * 1.01).all()
    back = call_module("__op$dequantize", "bf16[4,64]", ["f8e4m3fn[4,64]", "f8e8m0fnu[4,2]"], "{}")
    restored = run(back, [quantised, scale])[0].astype(np.float64)
    bound = 2.0**-4 * np.maximum(np.abs(x.astype(np.float64)), np.repeat(blocks, 32, 1) * 2.0**-6)
    assert (np.abs(restored - x.astype(np.float64)) <= bound * 1.01).all()
    assert quantised.dtype == ml_dtypes.float8_e4m3fn


def test_other_numbers_of_operands_are_refused() -> None:
    text = call_module("__op$block_scaled_dot", "f32[4,8]", ["f8e4m3fn[4,64]", "f8e4m3fn[8,64]"], CONFIG)
    with pytest.raises(Unsupported, match="of 2 operands"):
        NumpyBackend().compile(parse(text))
