"""Corner values of elementwise operations, each with its source; needs no XLA.

"measured" means jaxlib 0.10.2 on CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import Array, run

from hlotool.backends.numpy.integers import choose
from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES

INF, NAN = np.inf, np.nan


def apply(opcode: str, name: str, *operands: list[Any], result: str = "", attributes: str = "") -> Array:
    """One operation on vectors of one element type."""
    size = len(operands[0])
    lines = [f"  p{i} = {name}[{size}] parameter({i})" for i in range(len(operands))]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    lines.append(f"  ROOT r = {result or name}[{size}] {opcode}({names}){attributes}")
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, "}"])
    wide = np.uint64 if name == "u64" else None
    return run(text, [np.array(o, wide).astype(DTYPES[ELEMENT_TYPES[name]]) for o in operands])[0]


INTEGERS = [
    # operation_semantics.md#div: towards zero; by zero -1 or all ones; INT_MIN / -1 wraps.
    ("divide", "s32", [7, -7, 7, -7, 5, -(2**31)], [2, 2, -2, -2, 0, -1], [3, -3, -3, 3, -1, -(2**31)]),
    ("divide", "u8", [200, 7], [3, 0], [66, 255]),
    ("divide", "s4", [-8, 7], [-1, 0], [-8, -1]),
    # operation_semantics.md#rem: sign of the dividend; x % 0 = x.
    ("remainder", "s32", [7, -7, 7, -7, 5, -(2**31)], [2, 2, -2, -2, 0, -1], [1, -1, 1, -1, 5, 0]),
    ("remainder", "u64", [2**64 - 1, 9], [10, 0], [5, 9]),
    # Mathematical values, wrapped; measured for exponents below 64.
    (
        "power",
        "s32",
        [0, 1, -1, -1, 2, 0, 3, 2],
        [0, -5, -1, -2, -1, -1, 20, 31],
        [1, 1, -1, 1, 0, 0, -808182895, -(2**31)],
    ),
    ("power", "s32", [3, -1, 0], [65, 65, 64], [1820079875, -1, 0]),
    ("power", "u32", [3], [2**31], [1]),
    ("power", "s8", [2], [7], [-128]),
    # operation_semantics.md#shiftleft: amounts are unsigned, too large ones shift everything out.
    ("shift-left", "s8", [1, 1, 1, -1], [7, 8, -1, 4], [-128, 0, 0, -16]),
    ("shift-left", "u4", [3, 15], [2, 4], [12, 0]),
    ("shift-right-logical", "s8", [-1, -128, -1], [1, 7, 8], [127, 1, 0]),
    ("shift-right-logical", "s4", [-1, -8], [1, 3], [7, 1]),
    ("shift-right-arithmetic", "s8", [-128, -5, 5], [7, 100, -1], [-1, -1, 0]),
    ("shift-right-arithmetic", "u8", [200, 100, 200], [1, 1, 9], [228, 50, 255]),
    ("add", "s8", [127, -128], [1, -1], [-128, 127]),
    ("add", "s4", [7, -8], [1, -1], [-8, 7]),
    ("multiply", "u2", [3, 2], [3, 2], [1, 0]),
    ("subtract", "u8", [0], [1], [255]),
    # hlo_opcode.h: the upper half of the product.
    ("mulhi", "s32", [-(2**31), 2**31 - 1, -1], [-(2**31), 2, 1], [2**30, 0, -1]),
    ("mulhi", "u64", [2**64 - 1, 2**63], [2**64 - 1, 4], [2**64 - 2, 2]),
    ("mulhi", "s64", [-(2**63), -1], [-(2**63), 2**62], [2**62, -1]),
    ("mulhi", "u4", [15], [15], [14]),
]


@pytest.mark.parametrize(("opcode", "name", "a", "b", "expected"), INTEGERS)
def test_integers(opcode: str, name: str, a: list[int], b: list[int], expected: list[int]) -> None:
    result = apply(opcode, name, a, b)
    assert result.dtype == DTYPES[ELEMENT_TYPES[name]]
    assert [int(v) for v in result] == expected


UNARY_INTEGERS = [
    ("count-leading-zeros", "s8", [0, 1, -1, 127], [8, 7, 0, 1]),
    ("count-leading-zeros", "u4", [0, 1, 15], [4, 3, 0]),
    ("count-leading-zeros", "u64", [0, 1, 2**63], [64, 63, 0]),
    ("popcnt", "s8", [0, -1, -128], [0, 8, 1]),
    ("popcnt", "s4", [-1, -8], [4, 1]),
    ("abs", "s8", [-128, -5], [-128, 5]),
    ("negate", "s8", [-128, 5], [-128, -5]),
    ("negate", "u8", [1], [255]),
    ("not", "u2", [0, 2], [3, 1]),
    ("sign", "s16", [-7, 0, 7], [-1, 0, 1]),
]


@pytest.mark.parametrize(("opcode", "name", "a", "expected"), UNARY_INTEGERS)
def test_unary_integers(opcode: str, name: str, a: list[int], expected: list[int]) -> None:
    assert [int(v) for v in apply(opcode, name, a)] == expected


FLOATS = [
    # operation_semantics.md#max: NaN wins; measured: +0 is larger than -0, in both orders.
    ("maximum", [0.0, -0.0, NAN, 1.0], [-0.0, 0.0, 1.0, NAN], [0.0, 0.0, NAN, NAN]),
    ("minimum", [0.0, -0.0, NAN, 1.0], [-0.0, 0.0, 1.0, NAN], [-0.0, -0.0, NAN, NAN]),
    # C's fmod.
    ("remainder", [5.5, -5.5, 1.0, INF, 3.0], [2.0, 2.0, 0.0, 2.0, INF], [1.5, -1.5, NAN, NAN, 3.0]),
    # C's pow.
    (
        "power",
        [NAN, 1.0, -8.0, 0.0, -0.0, -1.0],
        [0.0, NAN, 1 / 3, -1.0, -3.0, INF],
        [1.0, 1.0, NAN, INF, -INF, 1.0],
    ),
    ("atan2", [0.0, -0.0, 0.0, -0.0], [-1.0, -1.0, 1.0, 1.0], [np.pi, -np.pi, 0.0, -0.0]),
    ("divide", [1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [INF, -INF, NAN]),
]
UNARY_FLOATS = [
    # operation_semantics.md#sign; measured for zeros.
    ("sign", [-0.0, 0.0, -3.0, INF, NAN], [-0.0, 0.0, -1.0, 1.0, NAN]),
    # C's round: 0.49999997 is below a half.
    (
        "round-nearest-afz",
        [0.5, -0.5, 2.5, 0.49999997, -0.3, 8388609.0],
        [1.0, -1.0, 3.0, 0.0, -0.0, 8388609.0],
    ),
    ("round-nearest-even", [0.5, -0.5, 1.5, 2.5], [0.0, -0.0, 2.0, 2.0]),
    ("rsqrt", [0.0, -0.0, 4.0, -1.0, INF], [INF, -INF, 0.5, NAN, 0.0]),
    ("cbrt", [-8.0, 27.0], [-2.0, 3.0]),
    ("logistic", [-INF, INF, 0.0, -1000.0], [0.0, 1.0, 0.5, 0.0]),
    ("negate", [0.0, -0.0], [-0.0, 0.0]),
    ("log", [0.0, -0.0, -1.0], [-INF, -INF, NAN]),
    ("tanh", [INF, -INF, -0.0], [1.0, -1.0, -0.0]),
    ("floor", [-0.5, 0.5], [-1.0, 0.0]),
    ("ceil", [-0.5, 0.5], [-0.0, 1.0]),
    ("imag", [1.0], [0.0]),
    ("real", [1.0], [1.0]),
]


def assert_same(actual: Array, expected: list[float]) -> None:
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=1e-6)
    assert (
        np.signbit(actual)[~np.isnan(expected)].tolist() == np.signbit(expected)[~np.isnan(expected)].tolist()
    )


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize(("opcode", "a", "b", "expected"), FLOATS)
def test_floats(opcode: str, name: str, a: list[float], b: list[float], expected: list[float]) -> None:
    assert_same(apply(opcode, name, a, b), expected)


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize(("opcode", "a", "expected"), UNARY_FLOATS)
def test_unary_floats(opcode: str, name: str, a: list[float], expected: list[float]) -> None:
    assert_same(apply(opcode, name, a), expected)


def test_narrow_floats_round_once_per_operation() -> None:
    """hlo_evaluator_typed_visitor.h (ElementwiseT): computed in f32, rounded to bf16."""
    assert apply("add", "bf16", [256.0, 256.0], [1.0, 3.0]).astype(float).tolist() == [256.0, 260.0]
    assert apply("multiply", "f8e4m3fn", [448.0, 1.125], [1.0, 1.125]).astype(float).tolist() == [448.0, 1.25]
    assert np.isnan(apply("add", "f8e4m3fn", [448.0], [448.0]).astype(float)[0])
    assert apply("add", "f8e5m2", [57344.0], [57344.0]).astype(float)[0] == INF


def test_comparison_of_floats() -> None:
    """operation_semantics.md#compare: IEEE by default, bits in total order on request."""
    a, b = [NAN, -0.0, 1.0], [NAN, 0.0, NAN]
    for direction, expected in {"EQ": [0, 1, 0], "NE": [1, 0, 1], "LT": [0, 0, 0], "GE": [0, 1, 0]}.items():
        plain = apply("compare", "f32", a, b, result="pred", attributes=f", direction={direction}")
        assert plain.astype(int).tolist() == expected
    ordered = [-NAN, -INF, -1.0, -0.0, 0.0, 1.0, INF, NAN]
    for name in ("f32", "f16", "bf16", "f8e5m2"):
        less = apply(
            "compare",
            name,
            ordered[:-1],
            ordered[1:],
            result="pred",
            attributes=", direction=LT, type=TOTALORDER",
        )
        assert less.all()


CORNERS = [-NAN, -INF, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, INF, NAN]


@pytest.mark.parametrize("direction", ["LT", "LE", "EQ", "GT"])
@pytest.mark.parametrize("values", [CORNERS, [-INF, -1.0, 0.0, 0.0, 1e-45, INF]])
def test_total_order_of_many(values: list[float], direction: str) -> None:
    """As that of few, with special numbers and without."""
    a = values * 1000
    b = a[1:] + a[:1]
    attributes = f", direction={direction}, type=TOTALORDER"
    many = apply("compare", "f32", a, b, result="pred", attributes=attributes)
    few = apply("compare", "f32", values, values[1:] + values[:1], result="pred", attributes=attributes)
    assert many.tolist() == few.tolist() * 1000


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("number", CORNERS)
def test_extrema_of_many_numbers_and_one(kind: str, opcode: str, number: float) -> None:
    """As those of equally many."""
    text = f"""HloModule m
ENTRY e {{
  x = {kind}[6000] parameter(0)
  n = {kind}[] parameter(1)
  w = {kind}[6000] broadcast(n), dimensions={{}}
  a = {kind}[6000] {opcode}(x, w)
  b = {kind}[6000] {opcode}(w, x)
  ROOT r = ({kind}[6000], {kind}[6000]) tuple(a, b)
}}"""
    dtype = DTYPES[ELEMENT_TYPES[kind]]
    x = np.array(CORNERS * 600, dtype)
    for result in run(text, [x, dtype.type(number)]):
        expected = apply(opcode, kind, CORNERS, [number] * len(CORNERS))
        assert_same(result, np.tile(expected, 600).tolist())


def test_clamp_prefers_the_upper_limit() -> None:
    """operation_semantics.md#clamp; NaN in any operand is NaN."""
    result = apply("clamp", "f32", [0.0, 5.0, NAN, 0.0], [-1.0, 3.0, 1.0, NAN], [2.0, 1.0, 2.0, 1.0])
    assert_same(result, [0.0, 1.0, NAN, NAN])


@pytest.mark.parametrize(
    ("exponent", "mantissa", "values", "expected"),
    [
        # hlo_evaluator_typed_visitor.h (ReducePrecision): subnormals of the target vanish, ties go to even.
        (5, 10, [65519.0, 65520.0, 6e-5, -6e-5, 1.00048828125], [65504.0, INF, 0.0, -0.0, 1.0]),
        (8, 0, [1.5, 2.9, 3.1, NAN], [2.0, 2.0, 4.0, NAN]),
        (2, 3, [1.5, 0.5, 4.0, 3.99], [1.5, 0.0, INF, INF]),
    ],
)
def test_reduce_precision(exponent: int, mantissa: int, values: list[float], expected: list[float]) -> None:
    attributes = f", exponent_bits={exponent}, mantissa_bits={mantissa}"
    assert_same(apply("reduce-precision", "f32", values, attributes=attributes), expected)


def test_stochastic_convert() -> None:
    """hlo_evaluator.cc (StochasticConvertOp): up when the random number is below the fraction."""
    text = """HloModule m
ENTRY e {
  x = f32[6] parameter(0)
  r = u32[6] parameter(1)
  ROOT y = s8[6] stochastic-convert(x, r)
}"""
    x = np.array([1.25, 1.25, -1.25, 300.0, NAN, -128.5], np.float32)
    r = np.array([2**30 - 1, 2**30, 0, 0, 0, 0], np.uint32)
    assert run(text, [x, r])[0].tolist() == [2, 1, -2, 127, 0, -128]


def test_pred_arithmetic() -> None:
    """Measured: add is `or`, multiply is `and`."""
    a, b = [0, 0, 1, 1], [0, 1, 0, 1]
    for opcode, expected in {"add": [0, 1, 1, 1], "multiply": [0, 0, 0, 1], "xor": [0, 1, 1, 0]}.items():
        assert apply(opcode, "pred", a, b).astype(int).tolist() == expected


def test_mixed_precision_meets_in_the_result_type() -> None:
    """hlo_verifier.cc allows operands of different float types where a backend does."""
    text = """HloModule m
ENTRY e {
  a = bf16[1] parameter(0)
  b = f32[1] parameter(1)
  ROOT r = f32[1] add(a, b)
}"""
    arguments = [np.array([1.5]).astype("bfloat16"), np.array([2.0**-20], np.float32)]
    assert run(text, arguments)[0].tolist() == [1.5 + 2.0**-20]


@pytest.mark.parametrize("holds", [True, False])
def test_a_mask_that_is_the_same_everywhere_takes_an_operand_whole(holds: bool) -> None:
    a, b = np.arange(4096, dtype=np.float32), np.full(4096, np.nan, np.float32)
    mask = np.full(4096, holds)
    assert choose(mask, a, b) is (a if holds else b)
    mask[17] = not holds
    assert choose(mask, a, b).tobytes() == np.where(mask, a, b).tobytes()


def test_chosen_constants() -> None:
    mask = np.arange(4096).reshape(64, 64) % 3 == 0
    a, b = (np.broadcast_to(np.float32(value), (64, 64)) for value in (-0.0, np.nan))
    row = np.broadcast_to(np.arange(64, dtype=np.float32), (64, 64))
    for left, right in ((a, b), (row, b), (a, row)):
        found = choose(mask, left, right)
        assert found.shape == mask.shape
        assert found.tobytes() == np.where(mask, left, right).tobytes()
