"""Exact elementwise operations against XLA, to the bit, on corner values of every element type."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import run
from support.elementwise import (
    FLOATS,
    SIGNED,
    UNSIGNED,
    Operation,
    both,
    by_speed,
    check_operations,
    corner_pairs,
)

from hlotool.lab.conformance.agreement import differing, flushed
from hlotool.lab.conformance.generators.cases import corner_values, random_array

pytestmark = pytest.mark.xla

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def compares(suffix: str = "") -> list[Operation]:
    return [Operation("compare", "pred", (0, 1), f", direction={d}{suffix}") for d in DIRECTIONS]


def binary(opcodes: str, name: str) -> list[Operation]:
    return [Operation(opcode, name, (0, 1)) for opcode in opcodes.split()]


def unary(opcodes: str, name: str) -> list[Operation]:
    return [Operation(opcode, name, (0,)) for opcode in opcodes.split()]


def choices(name: str) -> list[Operation]:
    """clamp and select; parameter 2 is the upper limit, parameter 3 the predicate."""
    return [Operation("clamp", name, (0, 1, 2)), Operation("select", name, (3, 0, 1))]


def operands(name: str) -> list[np.ndarray]:
    a, b = corner_pairs(name)
    return [a, b, a[::-1].copy(), np.arange(len(a)) % 3 == 0]


def test_pred() -> None:
    operations = binary("add multiply maximum minimum and or xor", "pred") + unary("not", "pred")
    check_operations(operations + compares() + choices("pred"), ["pred"] * 4, operands("pred"))


@pytest.mark.parametrize("name", by_speed(SIGNED + UNSIGNED, "s4 s8 s32 u2 u32 u64"))
def test_integers(name: str) -> None:
    operations = binary("add subtract multiply divide remainder maximum minimum and or xor", name)
    operations += binary("shift-left shift-right-arithmetic shift-right-logical", name)
    operations += unary("count-leading-zeros negate not", name) + compares() + choices(name)
    if name in SIGNED:
        operations += unary("abs sign", name)
    if name != "s4":
        operations += unary("popcnt", name)
    check_operations(operations, [name] * 3 + ["pred"], operands(name))


def test_popcnt_of_s4() -> None:
    """XLA's CPU code counts the copies of the sign bit too: -8 has 5 one bits there, and 1 here."""
    ((ours, theirs),) = both([Operation("popcnt", "s4", (0,))], ["s4"], [np.arange(-8, 8).astype("int4")])
    assert ours.astype(int).tolist() == [1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3]
    assert (ours == theirs)[8:].all()


@pytest.mark.parametrize("name", by_speed(SIGNED + UNSIGNED, "s4 s8 s32 u2 u32 u64"))
def test_integer_power(name: str) -> None:
    """Exponents that XLA's CPU code reads whole: it looks at their low 6 bits only."""
    base, exponent = corner_pairs(name)
    wide = exponent.astype(np.float64)
    known = (wide < 64) & (wide > -(2**31))
    check_operations(binary("power", name), [name] * 2, [base[known], exponent[known]])


@pytest.mark.parametrize("name", by_speed(FLOATS, "f4e2m1fn f8e3m4 bf16 f32"))
def test_floats(name: str) -> None:
    operations = binary("add subtract multiply divide remainder maximum minimum", name) + compares()
    operations += compares(", type=TOTALORDER") + choices(name) + [Operation("is-finite", "pred", (0,))]
    operations += unary("abs ceil floor negate round-nearest-afz round-nearest-even sign real imag", name)
    check_operations(operations, [name] * 3 + ["pred"], operands(name))


@pytest.mark.parametrize("name", by_speed(FLOATS, "f4e2m1fn f8e3m4 bf16 f32"))
def test_sqrt(name: str) -> None:
    """XLA's CPU code computes f8 in f16 and rounds twice: three roots of f8e3m4 come out one step larger."""
    values = corner_values(name)
    ((ours, theirs),) = both(unary("sqrt", name), [name], [values])
    wrong = differing(ours, theirs) & ~flushed(ours, theirs, [values])
    expected = [0.96875, 3.875, 15.5] if name == "f8e3m4" else []
    assert values[wrong].astype(float).tolist() == expected


@pytest.mark.parametrize("name", by_speed(FLOATS, "f4e2m1fn f8e3m4 bf16 f32"))
def test_reduce_precision(name: str) -> None:
    rng = np.random.default_rng(0)
    corners = corner_values(name)
    patterns = rng.integers(0, 256, 500 * corners.dtype.itemsize, np.uint8).view(corners.dtype)
    values = corners if corners.dtype.itemsize == 1 else np.concatenate([corners, patterns])
    widths = [(5, 10), (5, 2), (8, 7), (3, 2), (8, 0), (2, 1), (11, 52)]
    if name == "f32" or name == "f64":
        widths.append((1, 3))
    suffixes = [f", exponent_bits={exponent}, mantissa_bits={mantissa}" for exponent, mantissa in widths]
    operations = [Operation("reduce-precision", name, (0,), suffix) for suffix in suffixes]
    for operation, (ours, theirs) in zip(operations, both(operations, [name], [values])):
        assert not differing(ours, theirs).any(), operation


@pytest.mark.parametrize(
    ("source", "noise", "target"),
    [
        ("f32", "u32", "s32"),
        ("f32", "u32", "s8"),
        ("f16", "u16", "s16"),
        ("bf16", "u16", "s4"),
        ("f64", "u64", "s64"),
    ],
)
def test_stochastic_convert(source: str, noise: str, target: str) -> None:
    rng = np.random.default_rng(0)
    corners = corner_values(source)
    values = np.concatenate(
        [corners, (random_array(rng, source, (500,)).astype(np.float64) * 9).astype(corners.dtype)]
    )
    random = random_array(rng, noise, values.shape)
    check_operations([Operation("stochastic-convert", target, (0, 1))], [source, noise], [values, random])


def test_scalar_predicate_chooses_a_whole_array() -> None:
    text = """HloModule m
ENTRY e {
  p = pred[] parameter(0)
  a = f32[3] parameter(1)
  b = f32[3] parameter(2)
  ROOT r = f32[3] select(p, a, b)
}"""
    a, b = np.arange(3, dtype=np.float32), np.arange(3, 6, dtype=np.float32)
    assert run(text, [np.True_, a, b])[0].tolist() == [0, 1, 2]
    assert run(text, [np.False_, a, b])[0].tolist() == [3, 4, 5]


def test_scalar_limits_of_clamp() -> None:
    text = """HloModule m
ENTRY e {
  low = s32[] parameter(0)
  x = s32[4] parameter(1)
  high = s32[] parameter(2)
  ROOT r = s32[4] clamp(low, x, high)
}"""
    x = np.array([-5, 0, 5, 9], np.int32)
    assert run(text, [np.int32(0), x, np.int32(5)])[0].tolist() == [0, 0, 5, 5]
    assert run(text, [np.int32(6), x, np.int32(5)])[0].tolist() == [5, 5, 5, 5]
