"""Floating-point instructions against exact fractions, rounded once as the PTX ISA says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.ptx import elementwise
from support.ptx_operands import COUNT, DTYPES, MODES, bits
from support.ptx_operands import float_operands as operands
from support.rounded import rounded

# Of NaN with payloads, which NumPy warns of.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


def check(
    instruction: str,
    name: str,
    arrays: Sequence[Any],
    exact: Callable[..., Fraction],
    plain: Callable[..., float],
    mode: str = "rn",
    result: str = "",
) -> None:
    """All results: exact ones rounded; where operands are not finite, or the result is zero, what f64
    arithmetic says.
    """
    result = result or name
    kind = DTYPES[result]
    found = elementwise(
        instruction, [bits(array) for array in arrays], np.dtype(f"u{np.dtype(kind).itemsize}")
    ).view(kind)
    with np.errstate(all="ignore"):
        for place, values in enumerate(zip(*(array.astype(np.float64).tolist() for array in arrays))):
            special = not all(map(math.isfinite, values))
            try:
                value = Fraction(0) if special else exact(*map(Fraction, values))
            except ZeroDivisionError:
                special = True
            if special or value == 0:
                expected = float(plain(*map(np.float64, values)))
            else:
                expected = math.copysign(rounded(value, result, mode), 1 if value > 0 else -1)
            got = float(found[place])
            same = math.isnan(got) if math.isnan(expected) else got == expected
            if same and expected == 0 and not (value == 0 and mode == "rm"):
                same = math.copysign(1, got) == math.copysign(1, expected)
            assert same, (instruction, values, got, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_arithmetic_in_all_directions(name: str, mode: str) -> None:
    two, three = operands(name, 2), operands(name, 3)
    check(f"add.{mode}.{name} {{d}}, {{0}}, {{1}};", name, two, lambda a, b: a + b, lambda a, b: a + b, mode)
    check(f"sub.{mode}.{name} {{d}}, {{0}}, {{1}};", name, two, lambda a, b: a - b, lambda a, b: a - b, mode)
    check(f"mul.{mode}.{name} {{d}}, {{0}}, {{1}};", name, two, lambda a, b: a * b, lambda a, b: a * b, mode)
    check(f"div.{mode}.{name} {{d}}, {{0}}, {{1}};", name, two, lambda a, b: a / b, lambda a, b: a / b, mode)
    check(
        f"fma.{mode}.{name} {{d}}, {{0}}, {{1}}, {{2}};",
        name,
        three,
        lambda a, b, c: a * b + c,
        lambda a, b, c: a * b + c,
        mode,
    )


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_half_precision(name: str) -> None:
    two, three = operands(name, 2), operands(name, 3)
    check(f"add.rn.{name} {{d}}, {{0}}, {{1}};", name, two, lambda a, b: a + b, lambda a, b: a + b)
    check(f"sub.rn.{name} {{d}}, {{0}}, {{1}};", name, two, lambda a, b: a - b, lambda a, b: a - b)
    check(f"mul.rn.{name} {{d}}, {{0}}, {{1}};", name, two, lambda a, b: a * b, lambda a, b: a * b)
    check(
        f"fma.rn.{name} {{d}}, {{0}}, {{1}}, {{2}};",
        name,
        three,
        lambda a, b, c: a * b + c,
        lambda a, b, c: a * b + c,
    )


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_packed_halves_are_two_of_them(name: str) -> None:
    kind = DTYPES[name]
    low, high = operands(name, 3), operands(name, 3, seed=1)
    packed = [
        bits(x).astype(np.uint32) | bits(y).astype(np.uint32) << np.uint32(16) for x, y in zip(low, high)
    ]
    for opcode, number in (
        ("add.rn", 2),
        ("mul.rn", 2),
        ("fma.rn", 3),
        ("max", 2),
        ("min.NaN", 2),
        ("neg", 1),
        ("abs", 1),
    ):
        parts = ", ".join(f"{{{place}}}" for place in range(number))
        both = elementwise(f"{opcode}.{name}x2 {{d}}, {parts};", packed[:number], np.uint32)
        for shift, single in ((0, low), (16, high)):
            one = elementwise(
                f"{opcode}.{name} {{d}}, {parts};", [bits(x) for x in single[:number]], np.uint16
            )
            assert np.array_equal((both >> np.uint32(shift)).astype(np.uint16), one), (opcode, kind)


@pytest.mark.parametrize("mode", MODES)
def test_roots(mode: str) -> None:
    """A root is right if its square and those of its neighbours lie around the operand."""
    array = np.abs(operands("f32", 1)[0])
    found = elementwise(f"sqrt.{mode}.f32 {{d}}, {{0}};", [bits(array)], np.uint32).view(np.float32)
    for value, root in zip(array.tolist(), found):
        if not math.isfinite(value) or value == 0:
            assert math.isnan(root) if math.isnan(value) else root == value
            continue
        below, above = (Fraction(float(np.nextafter(root, np.float32(side)))) for side in (0, np.inf))
        exact, own = Fraction(value), Fraction(float(root))
        if mode in ("rz", "rm"):
            assert own**2 <= exact < above**2
        elif mode == "rp":
            assert below**2 < exact <= own**2
        else:
            assert ((below + own) / 2) ** 2 <= exact <= ((own + above) / 2) ** 2


def test_subnormals_are_flushed() -> None:
    a, b = operands("f32", 2)
    tiny = np.finfo(np.float32).tiny
    flush = lambda x: np.where(np.abs(x) < tiny, np.copysign(np.float32(0), x), x)  # noqa: E731
    with np.errstate(all="ignore"):
        expected = flush(flush(a) * flush(b))
    found = elementwise("mul.rn.ftz.f32 {d}, {0}, {1};", [bits(a), bits(b)], np.uint32).view(np.float32)
    assert np.array_equal(found, expected, equal_nan=True)


def test_saturation_makes_nan_zero() -> None:
    a, b = operands("f32", 2)
    found = elementwise("add.rn.sat.f32 {d}, {0}, {1};", [bits(a), bits(b)], np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        total = a + b
    assert np.array_equal(found, np.where(np.isnan(total), 0, np.clip(total, 0, 1)))


def test_nan_is_canonical() -> None:
    """Whatever NaN goes in, arithmetic gives 0x7fffffff, or 0x7fff."""
    payloads = np.full(64, 0xFFC01234, np.uint32)
    one = np.full(64, 0x3F800000, np.uint32)
    assert set(elementwise("add.rn.f32 {d}, {0}, {1};", [payloads, one], np.uint32).tolist()) == {0x7FFFFFFF}
    assert set(elementwise("cvt.rn.bf16.f32 {d}, {0};", [payloads], np.uint16).tolist()) == {0x7FFF}
    half = np.full(64, 0xFE01, np.uint16)
    assert set(elementwise("max.NaN.f16 {d}, {0}, {0};", [half], np.uint16).tolist()) == {0x7FFF}


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
def test_minimum_and_maximum(name: str) -> None:
    """A number before NaN, but with `.NaN`; -0 is smaller than +0."""

    def order(a: float, b: float, larger: bool) -> float:
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        key = lambda x: (x, math.copysign(1, x))  # noqa: E731
        return max(a, b, key=key) if larger else min(a, b, key=key)

    a, b = operands(name, 2)
    kind = DTYPES[name]
    for opcode, larger in (("max", True), ("min", False)):
        for nan in ("", ".NaN"):
            if nan and name == "f64":
                continue
            raw = elementwise(f"{opcode}{nan}.{name} {{d}}, {{0}}, {{1}};", [bits(a), bits(b)], bits(a).dtype)
            for x, y, got in zip(a.tolist(), b.tolist(), raw.view(kind).astype(np.float64).tolist()):
                x, y = float(x), float(y)
                expected = math.nan if nan and (math.isnan(x) or math.isnan(y)) else order(x, y, larger)
                assert (math.isnan(got) and math.isnan(expected)) or (
                    got == expected and math.copysign(1, got) == math.copysign(1, expected)
                ), (opcode, nan, x, y, got)


def test_signs_and_classes() -> None:
    a, b = operands("f32", 2)
    found = elementwise("copysign.f32 {d}, {0}, {1};", [bits(a), bits(b)], np.uint32).view(np.float32)
    assert np.array_equal(bits(found), bits(np.copysign(b, a)))
    tiny = np.finfo(np.float32).tiny
    for word, expected in {
        "finite": np.isfinite(a),
        "infinite": np.isinf(a),
        "notanumber": np.isnan(a),
        "normal": np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": (np.abs(a) < tiny) & (a != 0),
    }.items():
        assert np.array_equal(
            elementwise(f"testp.{word}.f32 {{d}}, {{0}};", [bits(a)], np.bool_), expected
        ), word


@pytest.mark.parametrize(
    "word", ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
)
@pytest.mark.parametrize("name", ["f32", "bf16"])
def test_comparisons_with_nan(name: str, word: str) -> None:
    a, b = operands(name, 2)
    found = elementwise(f"setp.{word}.{name} {{d}}, {{0}}, {{1}};", [bits(a), bits(b)], np.bool_)
    for x, y, got in zip(a.astype(np.float64).tolist(), b.astype(np.float64).tolist(), found.tolist()):
        unordered = math.isnan(x) or math.isnan(y)
        related = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
        if word in ("num", "nan"):
            expected = unordered == (word == "nan")
        else:
            expected = (
                related[word[:2]] and not unordered if len(word) == 2 else related[word[:2]] or unordered
            )
        assert got == expected, (word, x, y)


#: The largest error relative to the result that the ISA allows, or absolute.
APPROXIMATE = {
    "ex2.approx.f32": (np.exp2, 2.0**-22, 0.0),
    "lg2.approx.f32": (np.log2, 2.0**-22, 2.0**-22),
    "sin.approx.f32": (np.sin, 0.0, 2.0**-20.5),
    "cos.approx.f32": (np.cos, 0.0, 2.0**-20.5),
    "tanh.approx.f32": (np.tanh, 2.0**-10.987, 0.0),
    "rcp.approx.f32": (lambda x: 1 / x, 2.0**-23, 0.0),
    "rsqrt.approx.f32": (lambda x: 1 / np.sqrt(x), 2.0**-22.9, 0.0),
    "sqrt.approx.f32": (np.sqrt, 2.0**-23, 0.0),
}


@pytest.mark.parametrize("opcode", APPROXIMATE)
def test_approximate_functions_stay_within_their_bounds(opcode: str) -> None:
    """Seed 0 gives the nearest values; others differ from them, within the bound and the rounding to f32,
    and repeatably.
    """
    function, relative, absolute = APPROXIMATE[opcode]
    x = np.random.default_rng(0).uniform(0.01, 3, COUNT).astype(np.float32)
    exact = function(x.astype(np.float64))
    results = [
        elementwise(f"{opcode} {{d}}, {{0}};", [bits(x)], np.uint32, seed=seed).view(np.float32)
        for seed in (0, 1, 1, 2)
    ]
    assert np.array_equal(results[0], exact.astype(np.float32))
    assert np.array_equal(results[1], results[2])
    assert not np.array_equal(results[1], results[3])
    room = np.maximum(np.abs(exact) * relative, absolute) + np.abs(exact) * 2.0**-24
    for found in results:
        assert (np.abs(found - exact) <= room * 1.0001).all()
