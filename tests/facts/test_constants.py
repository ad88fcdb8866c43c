"""What constants are known to hold; expected values are read off the text."""

from __future__ import annotations

import pytest

from hlotool.facts.recognition import integer_constant, is_uniform, is_zero, uniform
from hlotool.ir.module import Instruction
from hlotool.parser.reader import parse_module


def last(text: str) -> Instruction:
    return parse_module(f"HloModule m\nENTRY e {{ {text} }}").entry.root


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ROOT c = f32[2] constant({3, 3})", 3),
        ("c = f32[] constant(3) b = f32[4] broadcast(c), dimensions={} ROOT r = f32[2,2] reshape(b)", 3),
        ("ROOT c = f32[2] constant({3, 4})", None),
        ("ROOT c = f32[2] constant({0, -0})", None),
        ("ROOT c = f32[0] constant({})", None),
        ("ROOT c = f32[2] constant({...})", None),
        ("c = f32[] constant(3) ROOT n = f32[] negate(c)", None),
    ],
)
def test_uniform(text: str, expected: float | None) -> None:
    assert uniform(last(text)) == expected


def test_zeros_have_signs() -> None:
    zero, negative = (last(f"ROOT c = f32[] constant({text})") for text in ("0", "-0"))
    assert is_uniform(zero, 0.0)
    assert not is_uniform(negative, 0.0)
    assert is_zero(zero)
    assert is_zero(negative)
    assert not is_zero(last("ROOT c = c64[] constant((0, 0))"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ROOT c = s32[] constant(-3)", -3),
        ("ROOT c = pred[] constant(true)", 1),
        ("ROOT c = u8[1] constant({7})", 7),
        ("ROOT c = f32[] constant(3)", None),
        ("ROOT c = s32[2] constant({3, 3})", None),
        ("ROOT c = s32[] parameter(0)", None),
    ],
)
def test_integer_constant(text: str, expected: int | None) -> None:
    assert integer_constant(last(text)) == expected
