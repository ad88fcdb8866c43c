"""`cvt` against exact fractions and integers (PTX ISA, "cvt")."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from support.ptx import elementwise
from support.ptx_operands import COUNT, DTYPES, MODES, bits, signed_of
from support.ptx_operands import float_operands as operands
from support.ptx_operands import integer_operands as integers
from support.rounded import rounded

# Of NaN with payloads, which NumPy warns of.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")

INTEGERS = {"s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "s64": 64, "u64": 64}


def limits(name: str) -> tuple[int, int]:
    width = INTEGERS[name]
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if name[0] == "s" else (0, (1 << width) - 1)


@pytest.mark.parametrize("target", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("word", ["rni", "rzi", "rmi", "rpi"])
def test_floats_to_integers(source: str, target: str, word: str) -> None:
    array = operands(source, 1)[0]
    array[200:260] = (np.arange(60) / 4 - 7.5).astype(DTYPES[source])
    width = INTEGERS[target]
    found = elementwise(
        f"cvt.{word}.{target}.{source} {{d}}, {{0}};", [bits(array)], np.dtype(f"u{width // 8}")
    )
    low, high = limits(target)
    for value, got in zip(array.astype(np.float64).tolist(), found.tolist()):
        if math.isnan(value):
            expected = 1 << (width - 1) if width == 64 or source == "f64" else 0
        elif math.isinf(value):
            expected = high if value > 0 else low
        else:
            exact = Fraction(value)
            whole = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[word](exact)
            expected = max(low, min(high, whole))
        assert got == expected % (1 << width), (value, got, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
def test_integers_to_floats(source: str, target: str, mode: str) -> None:
    width = INTEGERS[source]
    array = integers(width, 1)[0]
    kind = DTYPES[target]
    raw = elementwise(
        f"cvt.{mode}.{target}.{source} {{d}}, {{0}};", [array], np.dtype(f"u{np.dtype(kind).itemsize}")
    )
    for value, got in zip(array.tolist(), raw.view(kind).astype(np.float64).tolist()):
        exact = Fraction(signed_of(value, width) if source[0] == "s" else value)
        assert got == rounded(exact, target, mode), (value, got)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("source", "target"), [("f64", "f32"), ("f32", "f16"), ("f32", "bf16"), ("f64", "f16")]
)
def test_floats_to_narrower_ones(source: str, target: str, mode: str) -> None:
    array = operands(source, 1)[0]
    kind = DTYPES[target]
    raw = elementwise(
        f"cvt.{mode}.{target}.{source} {{d}}, {{0}};", [bits(array)], np.dtype(f"u{np.dtype(kind).itemsize}")
    )
    for value, got in zip(array.astype(np.float64).tolist(), raw.view(kind).astype(np.float64).tolist()):
        if not math.isfinite(value):
            assert math.isnan(got) if math.isnan(value) else got == value
            continue
        assert got == rounded(Fraction(value), target, mode), (value, got)
        assert value == 0 or math.copysign(1, got) == math.copysign(1, value)


def test_floats_to_wider_ones() -> None:
    for source, target in (("f16", "f32"), ("bf16", "f32"), ("f32", "f64")):
        array = operands(source, 1)[0]
        kind = DTYPES[target]
        raw = elementwise(
            f"cvt.{target}.{source} {{d}}, {{0}};", [bits(array)], np.dtype(f"u{np.dtype(kind).itemsize}")
        )
        assert np.array_equal(raw.view(kind), array.astype(kind), equal_nan=True)


def test_floats_to_whole_floats() -> None:
    array = operands("f32", 1)[0]
    for word, function in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
        raw = elementwise(f"cvt.{word}.f32.f32 {{d}}, {{0}};", [bits(array)], np.uint32)
        assert np.array_equal(raw.view(np.float32), function(array), equal_nan=True)
    raw = elementwise("cvt.sat.f32.f32 {d}, {0};", [bits(array)], np.uint32).view(np.float32)
    assert np.array_equal(raw, np.where(np.isnan(array), 0, np.clip(array, 0, 1)))


@pytest.mark.parametrize("saturates", [False, True])
def test_integers_to_integers(saturates: bool) -> None:
    for source in ("s16", "u16", "s32", "u32", "s64", "u64"):
        for target in ("s16", "u16", "s32", "u32", "s64", "u64"):
            width, result = INTEGERS[source], INTEGERS[target]
            array = integers(width, 1)[0]
            word = ".sat" if saturates else ""
            found = elementwise(
                f"cvt{word}.{target}.{source} {{d}}, {{0}};", [array], np.dtype(f"u{result // 8}")
            )
            low, high = limits(target)
            for value, got in zip(array.tolist(), found.tolist()):
                exact = signed_of(value, width) if source[0] == "s" else value
                expected = max(low, min(high, exact)) if saturates else exact
                assert got == expected % (1 << result), (source, target, exact)


@pytest.mark.parametrize(("word", "mode"), [("rna", "rna"), ("rn", "rn"), ("rz", "rz")])
def test_tf32(word: str, mode: str) -> None:
    array = operands("f32", 1)[0]
    found = elementwise(f"cvt.{word}.tf32.f32 {{d}}, {{0}};", [bits(array)], np.uint32).view(np.float32)
    for value, got in zip(array.tolist(), found.tolist()):
        if math.isfinite(value):
            assert got == rounded(Fraction(value), "tf32", mode), value
        else:
            assert math.isnan(got) if math.isnan(value) else got == value


@pytest.mark.parametrize(
    ("name", "kind", "largest"),
    [("e4m3", ml_dtypes.float8_e4m3fn, 448), ("e5m2", ml_dtypes.float8_e5m2, 57344)],
)
def test_eight_bits(name: str, kind: type, largest: int) -> None:
    """Two f32 in 16 bits, the first operand above; what is too large becomes the largest; and back."""
    a, b = operands("f32", 2)
    raw = elementwise(f"cvt.rn.satfinite.{name}x2.f32 {{d}}, {{0}}, {{1}};", [bits(a), bits(b)], np.uint16)
    every = np.arange(256, dtype=np.uint8).view(kind).astype(np.float64)
    every = every[np.isfinite(every)]
    for shift, array in ((8, a), (0, b)):
        codes = (raw >> np.uint16(shift)).astype(np.uint8)
        for value, code in zip(array.astype(np.float64).tolist(), codes):
            if math.isnan(value):
                assert code == 0x7F
                continue
            clipped = max(-largest, min(largest, value))
            got = float(np.uint8(code).view(kind))
            assert abs(got - clipped) == np.abs(every - clipped).min(), (value, got)
    codes = np.arange(COUNT, dtype=np.uint16) * np.uint16(0x0101)
    halves = (
        elementwise(f"cvt.rn.f16x2.{name}x2 {{d}}, {{0}};", [codes], np.uint32)
        .view(np.float16)
        .reshape(-1, 2)
    )
    bytes_ = codes.view(np.uint8).reshape(-1, 2)
    assert np.array_equal(halves, bytes_.view(kind).astype(np.float16), equal_nan=True)


def test_two_halves_from_two_floats() -> None:
    """The first operand is the upper half."""
    a, b = operands("f32", 2)
    for name in ("f16", "bf16"):
        raw = elementwise(f"cvt.rn.{name}x2.f32 {{d}}, {{0}}, {{1}};", [bits(a), bits(b)], np.uint32)
        for shift, array in ((16, a), (0, b)):
            one = elementwise(f"cvt.rn.{name}.f32 {{d}}, {{0}};", [bits(array)], np.uint16)
            assert np.array_equal((raw >> np.uint32(shift)).astype(np.uint16), one)
