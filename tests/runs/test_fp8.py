"""`run --fp8` against the same numbers computed with ml_dtypes alone, and patterns as JAX writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.float8_programs import programs
from support.library_programs import gemm_config

import hlotool
from hlotool.errors import ExitCode
from hlotool.facts.quantization import FLOAT8
from hlotool.inputs.generate import generate_inputs
from hlotool.interface.cli.main import main
from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_module
from hlotool.runs.fp8 import looked_at

#: Types that hold numbers; f8e8m0fnu holds scales, has no zero and no sign.
NUMBERS = sorted(FLOAT8 - {ElementType.F8E8M0FNU}, key=str)


def drawn(seed: int, *dims: int) -> Any:
    """Magnitudes from far below to far above what float8 holds, zeros among them."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-9, 5, dims) * rng.choice([-1.0, 0.0, 1.0], dims, p=[0.45, 0.1, 0.45])
    return size.astype(np.float32)


def text_of(kind: ElementType, operation: str, clamps: bool, rows: int, columns: int) -> str:
    """A conversion, in one of the forms that scales and clamps have."""
    limit = float(ml_dtypes.finfo(dtype_of(kind)).max)
    dims = f"[{rows},{columns}]"
    return f"""HloModule m
ENTRY main {{
  x = f32{dims} parameter(0)
  s = f32[] parameter(1)
  spread = f32{dims} broadcast(s), dimensions={{}}
  scaled = f32{dims} {operation}(x, spread)
  low = f32[] constant({-limit})
  high = f32[] constant({limit})
  limited = f32{dims} clamp(low, scaled, high)
  ROOT q = {kind}{dims} convert({"limited" if clamps else "scaled"})
}}
"""


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_counts_of_random_programs(kind: ElementType, seed: int) -> None:
    rng = np.random.default_rng([seed, NUMBERS.index(kind)])
    operation = rng.choice(["multiply", "divide"])
    clamps = bool(rng.integers(2))
    rows, columns = (int(n) for n in rng.integers(1, 40, 2))
    x, scale = drawn(seed, rows, columns), np.float32(rng.uniform(0.01, 30))
    (found,) = looked_at(parse_module(text_of(kind, operation, clamps, rows, columns)), (x, scale)).tensors
    # The same by ml_dtypes.
    scaled = x * scale if operation == "multiply" else x / scale
    info = ml_dtypes.finfo(dtype_of(kind))
    limit, tiny = float(info.max), float(info.smallest_normal)
    with np.errstate(all="ignore"):
        given = np.clip(scaled, -limit, limit) if clamps else scaled
        stored = given.astype(dtype_of(kind)).astype(np.float64)
    finite = np.isfinite(stored)
    assert (found.total, found.executions, found.scaling, found.clamped) == (x.size, 1, "delayed", clamps)
    assert found.underflow == ((scaled != 0) & (stored == 0)).sum()
    assert found.subnormal == ((stored != 0) & (np.abs(stored) < tiny)).sum()
    assert found.saturated == (finite & (np.abs(scaled) > limit)).sum()
    assert found.overflow == (~finite).sum()
    assert found.amax == np.abs(x).max()
    assert found.scaled_amax == np.abs(scaled).max()
    assert found.least_scale == found.largest_scale == scale
    assert found.divides == (operation == "divide")
    difference, size = (stored - scaled)[finite], scaled.astype(np.float64)[finite]
    if size.any():
        expected = np.sqrt((difference**2).sum() / (size**2).sum())
        assert found.error == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_errors_of_products(seed: int) -> None:
    """A product of factors in float8, and in wider types, as NumPy computes it in f64."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((7, 33)).astype(np.float32)
    w = (rng.standard_normal((33, 5)) * 0.02).astype(np.float32)
    sx, sw = np.float32(448 / np.abs(x).max()), np.float32(0.5)
    module = parse_module(PRODUCT)
    (found,) = looked_at(module, (x, w, sx, sw)).products
    a, b = x.astype(np.float64) * sx, w.astype(np.float64)
    truth = a @ b

    def error(left: Any, right: Any) -> float:
        return float(np.sqrt((((left @ right) - truth) ** 2).mean() / (truth**2).mean()))

    f8 = error(
        (x * sx).astype(ml_dtypes.float8_e4m3fn).astype(np.float64),
        (w / sw).astype(ml_dtypes.float8_e5m2).astype(np.float64) * sw,
    )
    assert found.error == pytest.approx(f8, rel=1e-5)
    for kind, said in ((ml_dtypes.bfloat16, found.error_bf16), (np.float16, found.error_f16)):
        narrow = [v.astype(kind).astype(np.float64) for v in (x, w)]
        assert said == pytest.approx(error(narrow[0] * sx, narrow[1]), rel=1e-3)
    assert found.error_f32 == pytest.approx(0, abs=1e-7)
    assert (found.factors, found.scaled_before) == (["qx", "qw"], True)


#: One factor is scaled back before the product, the other one is not.
PRODUCT = """HloModule m
ENTRY main {
  x = f32[7,33] parameter(0)
  w = f32[33,5] parameter(1)
  sx = f32[] parameter(2)
  sw = f32[] parameter(3)
  xs = f32[7,33] broadcast(sx), dimensions={}
  ws = f32[33,5] broadcast(sw), dimensions={}
  scaled_x = f32[7,33] multiply(x, xs)
  qx = f8e4m3fn[7,33] convert(scaled_x)
  scaled_w = f32[33,5] divide(w, ws)
  qw = f8e5m2[33,5] convert(scaled_w)
  wide_x = f32[7,33] convert(qx)
  wide_w = f32[33,5] convert(qw)
  back = f32[33,5] multiply(wide_w, ws)
  ROOT z = f32[7,5] dot(wide_x, back), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


#: Between a tensor and its product, as in gemm_rewriter_fp8_test.cc: what gives f32[16,32] of f32[16,32].
BETWEEN = {
    "nothing": "b = f32[16,32] copy(a)",
    "transposes": "t = f32[32,16] transpose(a), dimensions={1,0}\n"
    "b = f32[16,32] transpose(t), dimensions={1,0}",
    "reshapes": "t = f32[512] reshape(a)\nb = f32[16,32] reshape(t)",
    "a slice": "p = f32[18,32] pad(a, c), padding=0_2x0_0\nb = f32[16,32] slice(p), slice={[0:16],[0:32]}",
    "a dynamic slice": "b = f32[16,32] dynamic-slice(a, i, i), dynamic_slice_sizes={16,32}",
    "a select": "k = pred[16,32] broadcast(flag), dimensions={}\n"
    "cs = f32[16,32] broadcast(c), dimensions={}\nb = f32[16,32] select(k, a, cs)",
    "bf16": "n = bf16[16,32] convert(a)\nb = f32[16,32] convert(n)",
}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("operation", ["multiply", "divide"])
def test_what_a_tensor_goes_through(between: str, operation: str) -> None:
    """Products of tensors that are scaled back, and of what is made of these."""
    module = parse_module(f"""HloModule m
ENTRY main {{
  x = f32[16,32] parameter(0)
  y = f8e4m3fn[32,16] parameter(1)
  s = f32[] parameter(2)
  flag = pred[] constant(true)
  i = s32[] constant(0)
  c = f32[] constant(0)
  ss = f32[16,32] broadcast(s), dimensions={{}}
  scaled = f32[16,32] {"divide" if operation == "multiply" else "multiply"}(x, ss)
  q = f8e4m3fn[16,32] convert(scaled)
  wide = f32[16,32] convert(q)
  a = f32[16,32] {operation}(wide, ss)
  {BETWEEN[between]}
  v = f32[32,16] convert(y)
  ROOT z = f32[16,16] dot(b, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
""")
    rng = np.random.default_rng(1)
    x = rng.standard_normal((16, 32)).astype(np.float32)
    y = rng.standard_normal((32, 16)).astype(ml_dtypes.float8_e4m3fn)
    s = np.float32(0.01 if operation == "multiply" else 100)
    (product,) = looked_at(module, (x, y, s)).products
    assert (product.factors, product.scaled_before) == (["q", "y"], True)
    wide = y.astype(np.float64)
    stored = (x * 100).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) / 100
    truth = x.astype(np.float64) @ wide
    expected = np.sqrt(((stored @ wide - truth) ** 2).mean() / (truth**2).mean())
    assert product.error == pytest.approx(expected, rel=0.05)


def test_a_call_of_cublas() -> None:
    """Behind XLA's GemmRewriter: scales are operands, and the result saturates."""
    config = gemm_config(1, 0, "DEFAULT")
    module = parse_module(f"""HloModule m
ENTRY main {{
  x = f32[16,16] parameter(0)
  w = f8e4m3fn[16,16] parameter(1)
  s = f32[] parameter(2)
  one = f32[] constant(1)
  spread = f32[16,16] broadcast(s), dimensions={{}}
  scaled = f32[16,16] divide(x, spread)
  a = f8e4m3fn[16,16] convert(scaled)
  m = (f8e4m3fn[16,16], s8[64]) custom-call(a, w, s, one, one),
    custom_call_target="__cublas$lt$matmul$f8", backend_config={config}
  ROOT r = f8e4m3fn[16,16] get-tuple-element(m), index=0
}}
""")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 16)).astype(np.float32)
    w = rng.standard_normal((16, 16)).astype(ml_dtypes.float8_e4m3fn)
    found = looked_at(module, (x, w, np.float32(0.02)))
    assert [(one.tensor, one.made_by) for one in found.tensors] == [
        ("w", "parameter"),
        ("a", "conversion"),
        ("r", "get-tuple-element"),
    ]
    (product,) = found.products
    assert product.opcode == "__cublas$lt$matmul$f8"
    wide = w.astype(np.float64)
    stored = (x / np.float32(0.02)).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * np.float32(0.02)
    truth = x.astype(np.float64) @ wide
    expected = np.sqrt(((stored @ wide - truth) ** 2).mean() / (truth**2).mean())
    assert product.error == pytest.approx(expected, rel=1e-4)


def test_patterns_of_jax() -> None:
    jax = pytest.importorskip("jax")
    known = programs()
    assert len(known) >= 20
    for name, (function, arguments, scalings, products) in known.items():
        module = parse_module(jax.jit(function).lower(*arguments).as_text("hlo"))
        found = looked_at(module, generate_inputs(module, seed=0).values)
        assert sorted(one.scaling for one in found.tensors) == sorted(scalings), name
        assert len(found.products) == products, name
        given = all(one.scaling == "" for one in found.tensors if one.read_by)
        assert all((one.error is None) == given for one in found.products), name
    module = parse_module(jax.jit(known["in_a_loop"][0]).lower(*known["in_a_loop"][1]).as_text("hlo"))
    loop = looked_at(module, generate_inputs(module, seed=0).values)
    assert {one.executions for one in loop.tensors} == {4}


def test_from_one_type_to_another() -> None:
    """What one type holds and the other one does not: 448 and the last bit of e4m3."""
    module = parse_module(
        "HloModule m ENTRY e { x = f8e4m3fn[3] parameter(0) ROOT q = f8e5m2[3] convert(x) }"
    )
    values = np.array([1.125, 448, 2.0**-9], ml_dtypes.float8_e4m3fn)
    given, made = looked_at(module, (values,)).tensors
    assert (given.made_by, made.made_by, made.scaling) == ("parameter", "conversion", "none")
    assert (made.amax, made.underflow, made.subnormal, given.subnormal) == (448, 0, 0, 1)
    rounded = values.astype(ml_dtypes.float8_e5m2).astype(np.float64) - values.astype(np.float64)
    assert made.error == pytest.approx(np.sqrt((rounded**2).sum() / (values.astype(np.float64) ** 2).sum()))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "product.hlo"
    program.write_text(PRODUCT)
    assert main(["run", str(program), "--fp8"]) == ExitCode.NOTHING_COMPARED
    printed = capsys.readouterr().out
    assert "float8 in" in printed
    assert "delayed ÷" in printed
    main(["run", str(program), "--fp8", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["modules"]
    assert [one["tensor"] for one in row["fp8"]["tensors"]] == ["qx", "qw"]
    assert hlotool.replay(program).record.modules[0].fp8 is None


def test_without_float8(tmp_path: Path) -> None:
    program = tmp_path / "plain.hlo"
    program.write_text("HloModule m ENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }")
    result = hlotool.replay(program, fp8=True)
    assert "no tensor of such a type" in str(result)


def test_infinite_arguments_are_counted_apart() -> None:
    x = np.array([[np.inf, np.nan, 1e9, 1.0]], np.float32)
    module = parse_module(text_of(ElementType.F8E5M2, "multiply", False, 1, 4))
    (found,) = looked_at(module, (x, np.float32(1))).tensors
    assert (found.not_finite, found.overflow, found.saturated, found.amax) == (2, 1, 0, 1e9)
