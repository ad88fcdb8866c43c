"""Who reads the sign of a zero."""

from __future__ import annotations

import pytest

from hlotool.lab.mutation.equivalence import sign_of_zero_is_read
from hlotool.parser.reader import parse_module


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        ("ROOT r = f32[2] add(y, x)", False),
        ("ROOT r = f32[2] divide(y, x)", False),
        ("ROOT r = f32[2] divide(x, y)", True),
        ("e = f32[2] exponential(y) o = f32[2] add(e, e) ROOT r = f32[2] rsqrt(o)", False),
        ("e = f32[2] sine(y) o = f32[2] add(e, e) ROOT r = f32[2] rsqrt(o)", True),
        ("a = f32[2] abs(y) ROOT r = f32[2] divide(x, a)", False),
        ("two = f32[2] constant({2, 2}) s = f32[2] add(y, two) ROOT r = f32[2] divide(x, s)", False),
        ("two = f32[2] constant({2, 0}) s = f32[2] add(y, two) ROOT r = f32[2] divide(x, s)", True),
        ("n = s32[2] convert(y) f = f32[2] convert(n) ROOT r = f32[2] divide(x, f)", False),
        ("one = f32[2] constant({1, 1}) m = f32[2] maximum(y, one) ROOT r = f32[2] divide(x, m)", False),
        ("ROOT r = u32[2] bitcast-convert(y)", True),
        ("ROOT r = pred[2] compare(y, x), direction=LT", False),
        ("ROOT r = pred[2] compare(y, x), direction=LT, type=TOTALORDER", True),
        (
            "z = f32[2] constant({0, 0}) q = pred[2] compare(y, z), direction=EQ "
            "c = f32[2] select(q, z, y) ROOT r = pred[2] compare(c, x), direction=LT, type=TOTALORDER",
            False,
        ),
        (
            "z = f32[2] constant({0, 0}) q = pred[2] compare(y, z), direction=LT "
            "c = f32[2] select(q, z, y) ROOT r = pred[2] compare(c, x), direction=LT, type=TOTALORDER",
            True,
        ),
        ("ROOT r = f32[2] fusion(y, x), kind=kLoop, calls=quotient", False),
        ("ROOT r = f32[2] fusion(x, y), kind=kLoop, calls=quotient", True),
    ],
)
def test_who_reads_the_sign_of_a_zero(body: str, is_read: bool) -> None:
    """1 / -0 is -inf; a number that is at least 1 is no zero."""
    module = parse_module(
        "HloModule m\n"
        "quotient { p = f32[2] parameter(0) q = f32[2] parameter(1) ROOT d = f32[2] divide(p, q) }\n"
        f"ENTRY e {{ x = f32[2] parameter(0) y = f32[2] negate(x) {body} }}"
    )
    assert sign_of_zero_is_read(module, lambda instruction: instruction.name == "y") is is_read
