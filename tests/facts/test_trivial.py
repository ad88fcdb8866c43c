"""Which programs are trivial: what frontends compile for single operations, and nothing that people write."""

from __future__ import annotations

import pytest

from hlotool.facts.recognition import is_trivial
from hlotool.parser.reader import parse_module

_TRIVIAL = {
    "nothing": "ROOT x = f32[4] parameter(0)",
    "movement": "x = f32[4,2] parameter(0) t = f32[2,4] transpose(x), dimensions={1,0} "
    "ROOT r = f32[8] reshape(t)",
    "convert": "x = s32[4] parameter(0) ROOT c = f32[4] convert(x)",
    "one addition": "x = f32[4] parameter(0) c = f32[] constant(1) b = f32[4] broadcast(c), dimensions={} "
    "ROOT s = f32[4] add(x, b)",
    "promoted": "x = u32[] parameter(0) y = s32[] parameter(1) c = u32[] convert(y) ROOT s = u32[] add(x, c)",
    "row": "x = f32[4,2] parameter(0) i = s32[] parameter(1) z = s32[] constant(0) "
    "ROOT r = f32[1,2] dynamic-slice(x, i, z), dynamic_slice_sizes={1,2}",
    "fused": "x = f32[4] parameter(0) ROOT f = f32[4] fusion(x), kind=kLoop, calls=negated",
    "annotated": 'x = f32[4] parameter(0) ROOT s = f32[4] custom-call(x), custom_call_target="Sharding"',
}
_NOT_TRIVIAL = {
    "two operations": "x = f32[4] parameter(0) e = f32[4] exponential(x) ROOT s = f32[4] add(x, e)",
    "one and a fused one": "x = f32[4] parameter(0) e = f32[4] exponential(x) "
    "ROOT f = f32[4] fusion(e), kind=kLoop, calls=negated",
    "product": "x = f32[4,4] parameter(0) "
    "ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "sum": "x = f32[4] parameter(0) z = f32[] constant(0) "
    "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add",
    "library": 'x = f32[4] parameter(0) ROOT s = f32[4] custom-call(x), custom_call_target="mystery"',
}
_CALLED = """
negated { a = f32[4] parameter(0) ROOT n = f32[4] negate(a) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
"""


@pytest.mark.parametrize(
    ("entry", "expected"),
    [(entry, True) for entry in _TRIVIAL.values()] + [(entry, False) for entry in _NOT_TRIVIAL.values()],
    ids=[*_TRIVIAL, *_NOT_TRIVIAL],
)
def test_is_trivial(entry: str, expected: bool) -> None:
    assert is_trivial(parse_module(f"HloModule m\n{_CALLED}\nENTRY e {{ {entry} }}")) is expected
