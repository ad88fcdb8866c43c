"""Matrix products by cuBLAS: against plain HLO on the same backend, and against sums in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import Array, assert_close, parse, run
from support.library_modules import call_module, gpu_config, operands_of, rounded_to

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.custom_calls import computes_wide
from hlotool.errors import Unsupported
from hlotool.facts.retyping import widened

#: Contracting the last dimension of A with the one before the last of B.
PLAIN = ((), (), (1,), (0,))


def gemm_config(
    dimensions: tuple[tuple[int, ...], ...] = PLAIN,
    alpha: Any = 1,
    beta: float = 0,
    epilogue: str = "DEFAULT",
    more: str = "",
) -> str:
    names = ("lhs_batch", "rhs_batch", "lhs_contracting", "rhs_contracting")
    lists = (
        f'"{name}_dimensions":[{",".join(f"{chr(34)}{d}{chr(34)}" for d in listed)}]'
        for name, listed in zip(names, dimensions)
    )
    return gpu_config(
        gemm_backend_config=f'{{"alpha_real":{complex(alpha).real},"alpha_imag":{complex(alpha).imag},'
        f'"beta":{beta},"dot_dimension_numbers":{{{",".join(lists)}}},"precision_config":'
        f'{{"operand_precision":["DEFAULT","DEFAULT"],"algorithm":"ALG_UNSET"}},"epilogue":"{epilogue}",'
        f'"lhs_stride":"24","rhs_stride":"30","grad_x":false,"grad_y":false,"damax_output":false{more}}}'
    )


def gemm(
    result: str, operands: list[str], config: str, target: str = "__cublas$gemm", seed: int = 3
) -> tuple[list[Array], list[Array]]:
    """(operands, results without workspace)."""
    values = operands_of(operands, seed)
    tuple_shape = f"({result}, s8[4194304]{{0}})"
    *results, workspace = run(call_module(target, tuple_shape, operands, config), values)
    assert workspace.shape == (4194304,)
    return values, results


def wide(*values: Array) -> list[Array]:
    kinds = {"c": np.complex128}
    return [v.astype(kinds.get(v.dtype.kind, np.float64)) for v in values]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "c64", "c128"])
@pytest.mark.parametrize("beta", [0, 0.5])
def test_element_types(kind: str, beta: float) -> None:
    alpha = 2 - 1j if kind.startswith("c") else 2
    operands = [f"{kind}[4,6]", f"{kind}[6,5]", *([f"{kind}[4,5]"] if beta else [])]
    values, (result,) = gemm(f"{kind}[4,5]", operands, gemm_config(alpha=alpha, beta=beta))
    a, b, *c = wide(*values)
    expected = alpha * (a @ b) + (beta * c[0] if c else 0)
    assert_close(result, rounded_to(kind, expected), steps=2)


@pytest.mark.parametrize(("operand", "result"), [("bf16", "f32"), ("f16", "f32"), ("f8e4m3fn", "f16")])
def test_results_wider_than_operands(operand: str, result: str) -> None:
    values, (product,) = gemm(f"{result}[4,5]", [f"{operand}[4,6]", f"{operand}[6,5]"], gemm_config())
    a, b = wide(*values)
    assert_close(product, rounded_to(result, a @ b), steps=1)


def test_bytes_accumulate_in_s32() -> None:
    values, (product,) = gemm("s32[4,5]", ["s8[4,300]", "s8[300,5]"], gemm_config())
    a, b = (v.astype(np.int64) for v in values)
    np.testing.assert_array_equal(product, a @ b)


@pytest.mark.parametrize(
    ("a", "b", "dimensions", "attributes"),
    [
        ("6,4", "5,6", ((), (), (0,), (1,)), "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
        (
            "3,4,6",
            "3,6,5",
            ((0,), (0,), (2,), (1,)),
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        ),
        (
            "4,3,2,6",
            "3,6,2,5",
            ((1, 2), (0, 2), (3,), (1,)),
            "lhs_batch_dims={1,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1}",
        ),
    ],
)
def test_dimension_numbers(a: str, b: str, dimensions: tuple[tuple[int, ...], ...], attributes: str) -> None:
    batch = {"3,4,6": "3,", "4,3,2,6": "3,2,"}.get(a, "")
    operands = [f"f32[{a}]", f"f32[{b}]"]
    values, (result,) = gemm(f"f32[{batch}4,5]", operands, gemm_config(dimensions))
    plain = f"""HloModule m
ENTRY e {{
  a = {operands[0]} parameter(0)
  b = {operands[1]} parameter(1)
  ROOT d = f32[{batch}4,5] dot(a, b), {attributes}
}}"""
    np.testing.assert_array_equal(result, run(plain, values)[0])


def test_what_a_factor_of_zero_drops_is_not_read() -> None:
    text = call_module(
        "__cublas$gemm",
        "(f32[2,2], s8[8]{0})",
        ["f32[2,2]", "f32[2,2]", "f32[2,2]"],
        gemm_config(alpha=0, beta=2),
    )
    nan, ones = np.full((2, 2), np.nan, np.float32), np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(run(text, [nan, nan, ones])[0], 2 * ones)


def test_calls_without_workspace() -> None:
    """As XLA made them until 2023, with a config that is a string."""
    config = gemm_config().replace('"', '\\"')
    operands = ["f32[4,6]", "f32[6,5]"]
    values = operands_of(operands)
    (result,) = run(call_module("__cublas$gemm", "f32[4,5]", operands, f'"{config}"'), values)
    np.testing.assert_array_equal(result, values[0] @ values[1])


def activation(name: str, x: Array) -> Array:
    """In f64."""
    if name == "RELU":
        return np.maximum(x, 0)
    if name == "SILU":
        return x / (1 + np.exp(-x))
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("name", ["RELU", "GELU", "SILU"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("beta", [0, 0.5])
def test_epilogues(name: str, bias: bool, beta: float) -> None:
    epilogue = f"BIAS_{name}" if bias else name
    operands = ["bf16[4,6]{1,0}", "bf16[6,5]{1,0}"]
    operands += ["bf16[4,5]{1,0}"] * bool(beta) + ["bf16[5]{0}"] * bias
    config = gemm_config(alpha=2, beta=beta, epilogue=epilogue)
    values, (result,) = gemm("bf16[4,5]{1,0}", operands, config, "__cublas$lt$matmul")
    a, b, *rest = wide(*values)
    before = 2 * (a @ b)
    if beta:
        before = before + beta * rest.pop(0)
    if bias:
        before = before + rest.pop(0)
    assert_close(result, rounded_to("bf16", activation(name, before)), steps=1)


def test_value_before_the_activation() -> None:
    operands = ["f32[4,6]", "f32[6,5]", "f32[5]"]
    config = gemm_config(epilogue="BIAS_GELU_AUX")
    values, (result, before) = gemm("f32[4,5], f32[4,5]", operands, config, "__cublas$lt$matmul")
    a, b, bias = wide(*values)
    expected = a @ b + bias
    assert_close(before, expected.astype(np.float32), steps=4)
    assert_close(result, activation("GELU", expected).astype(np.float32), steps=4)


@pytest.mark.parametrize(("layout", "axis"), [("{1,0}", 1), ("{0,1}", 0)])
def test_the_bias_follows_the_memory(layout: str, axis: int) -> None:
    operands = ["f32[4,6]", "f32[6,4]", "f32[4]"]
    config = gemm_config(epilogue="BIAS")
    values, (result,) = gemm(f"f32[4,4]{layout}", operands, config, "__cublas$lt$matmul")
    a, b, bias = wide(*values)
    expected = a @ b + (bias if axis else bias[:, None])
    assert_close(result, expected.astype(np.float32), steps=4)


def test_a_bias_is_shorter_than_a_padded_result() -> None:
    """As XLA:GPU makes it of 5 columns that cuBLAS wants padded to 8; nothing reads the others."""
    operands = ["f32[4,6]", "f32[6,8]", "f32[5]"]
    values, (result,) = gemm("f32[4,8]", operands, gemm_config(epilogue="BIAS"), "__cublas$lt$matmul")
    a, b, bias = wide(*values)
    assert_close(result[:, :5], (a @ b[:, :5] + bias).astype(np.float32), steps=4)
    assert np.isnan(result[:, 5:]).all()


def test_gelu_in_f64_has_the_constants_of_the_program() -> None:
    """Which is in bf16, and which XLA takes for the library's."""
    operands = ["bf16[4,6]", "bf16[6,5]"]
    text = call_module("__cublas$lt$matmul", "(bf16[4,5], s8[8]{0})", operands, gemm_config(epilogue="GELU"))
    values = wide(*operands_of(operands))
    copy = widened(parse(text), computes_wide=computes_wide)
    result = NumpyBackend().compile(copy.module).run(values)[0]
    factor, cubic = rounded_to("bf16", np.array([np.sqrt(2 / np.pi), 0.044715])).astype(np.float64)
    x = values[0] @ values[1]
    np.testing.assert_allclose(result, 0.5 * x * (1 + np.tanh(factor * (x + cubic * x**3))), rtol=1e-13)


F8 = ["f8e4m3fn[4,16]", "f8e4m3fn[16,8]"]
SCALES = [np.float32(0.5), np.float32(4)]


def scaled(result: str, operands: list[str], config: str, values: list[Any]) -> list[Array]:
    text = call_module("__cublas$lt$matmul$f8", f"({result}, s8[64]{{0}})", operands, config)
    return run(text, values)[:-1]


def test_f8_with_scales() -> None:
    values = operands_of(F8)
    a, b = wide(*values)
    (result,) = scaled("bf16[4,8]", [*F8, "f32[]", "f32[]"], gemm_config(), [*values, *SCALES])
    assert_close(result, rounded_to("bf16", 2 * (a @ b)), steps=1)


@pytest.mark.parametrize("beta", [0, 0.5])
def test_f8_result_saturates_and_reports_its_magnitude(beta: float) -> None:
    addends = ["f16[4,8]"] * bool(beta)
    bias = ["f16[8]"]
    a, b, *rest = operands_of([*F8, *addends, *bias], seed=5)
    d_scale = np.float32(200)
    operands = [*F8, *addends, "f32[]", "f32[]", *bias, "f32[]"]
    values = [a, b, *rest[:-1], *SCALES, rest[-1], d_scale]
    config = gemm_config(beta=beta, epilogue="BIAS_RELU", more=',"damax_output":true')
    result, amax = scaled("f8e4m3fn[4,8], f32[]", operands, config, values)
    wide_a, wide_b, *wide_rest = wide(a, b, *rest)
    exact = 2 * (wide_a @ wide_b) + wide_rest[-1]
    if beta:
        exact = exact + beta * wide_rest[0]
    exact = np.maximum(exact, 0)
    assert float(amax) == pytest.approx(exact.max(), rel=1e-5)
    assert (exact * 200 > 448).any()
    np.testing.assert_array_equal(
        result.astype(np.float64), rounded_to("f8e4m3fn", np.clip(exact * 200, -448, 448)).astype(np.float64)
    )


def test_f8_with_four_scales() -> None:
    """As XLA called it until 2024."""
    values = operands_of(F8)
    operands = [*F8, "f32[]", "f32[]", "f32[]", "f32[]"]
    one, d_scale = np.float32(1), np.float32(0.25)
    (result,) = scaled("f8e5m2[4,8]", operands, gemm_config(), [*values, *SCALES, one, d_scale])
    a, b = wide(*values)
    np.testing.assert_array_equal(
        result.astype(np.float64), rounded_to("f8e5m2", 0.5 * (a @ b)).astype(np.float64)
    )


def test_block_scales() -> None:
    operands = ["f8e4m3fn[4,64]", "f8e4m3fn[8,64]", "f8e8m0fnu[4,2]", "f8e8m0fnu[8,2]"]
    a, b = operands_of(operands[:2])
    rng = np.random.default_rng(1)
    scales = [rounded_to("f8e8m0fnu", 2.0 ** rng.integers(-3, 3, (n, 2))) for n in (4, 8)]
    config = gemm_config(((), (), (1,), (1,)), more=',"scale_mode":2')
    text = call_module("__cublas$lt$matmul$mx", "(f32[4,8], s8[64]{0})", operands, config)
    for left_out in ("", ',"scale_mode":3'):
        with pytest.raises(Unsupported, match="scale_mode"):
            run(text.replace(',"scale_mode":2', left_out), [a, b, *scales])
    result = run(text, [a, b, *scales])[0]
    wide_a, wide_b = (
        x.astype(np.float64) * np.repeat(s.astype(np.float64), 32, axis=1) for x, s in zip((a, b), scales)
    )
    assert_close(result, (wide_a @ wide_b.T).astype(np.float32), steps=4)


def test_grouped_products() -> None:
    operands = ["f32[9,6]", "f32[3,6,5]", "s32[3]"]
    ragged = (
        '{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"]},'
        '"lhs_ragged_dimensions":["0"],"rhs_group_dimensions":["0"]}'
    )
    config = gpu_config(
        grouped_gemm_backend_config='{"gemm_backend_config":{"alpha_real":2,"beta":0,"epilogue":"DEFAULT"},'
        f'"ragged_dot_dimension_numbers":{ragged}}}'
    )
    a, b = operands_of(operands[:2])
    sizes = np.array([4, 0, 3], np.int32)
    text = call_module("__cublas$lt$groupedMatmul", "(f32[9,5], s8[64]{0})", operands, config)
    result = run(text, [a, b, sizes])[0]
    expected = np.concatenate([a[:4] @ b[0], a[4:7] @ b[2], np.zeros((2, 5))])
    assert_close(result, (2 * expected).astype(np.float32), steps=8)


@pytest.mark.parametrize(
    ("operands", "config", "reason"),
    [
        (["f32[4,6]", "f32[6,5]"], gemm_config(beta=1), "speaks of 3"),
        (["f32[4,6]", "f32[6,5]"], gemm_config(epilogue="BIAS"), "speaks of 3"),
        (["f32[4,6]", "f32[6,5]"], gemm_config(epilogue="DRELU"), "DRELU"),
        (["f32[4,6]", "f32[5,6]"], gemm_config(), "dot_dimension_numbers"),
        (["f32[4,6]", "f32[6,5]"], '{"gemm_backend_config":{"alpha_real":"x"}}', "malformed"),
        (["f32[4,6]", "f32[6,5]"], '{"gemm_backend_config":{"beta":0}}', "no alpha_real"),
    ],
)
def test_refusals(operands: list[str], config: str, reason: str) -> None:
    text = call_module("__cublas$gemm", "(f32[4,5], s8[64]{0})", operands, config)
    with pytest.raises(Unsupported, match=reason) as caught:
        NumpyBackend().compile(parse(text))
    assert caught.value.instruction == "custom-call.1"
