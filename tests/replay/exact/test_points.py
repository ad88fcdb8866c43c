"""How many points a comparison takes: more where a single float decides."""

from __future__ import annotations

import pytest

import hlotool
from hlotool.replay.exact import Relation
from hlotool.replay.exact.points import points_for
from hlotool.replay.exact.task import compare_modules

PROGRAM = """HloModule m
largest {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }}
ENTRY e {{
  x = f32[4,8] parameter(0)
  i = s32[] parameter(1)
  zero = f32[] constant(0)
  s = f32[1,1] slice(x), slice={{[0:1],[0:1]}}
  y = f32[] reshape(s)
  {body}
}}"""


def program(body: str) -> hlotool.Module:
    return hlotool.parse(PROGRAM.format(body=body))


@pytest.mark.parametrize(
    ("body", "points"),
    [
        ("ROOT r = f32[4,8] add(x, x)", 1),
        ("ROOT r = f32[4,8] abs(x)", 1),
        ("ROOT r = f32[] abs(y)", 8),
        ("ROOT r = s32[] convert(y)", 8),
        ("ROOT r = f32[4] reduce(x, zero), dimensions={1}, to_apply=largest", 1),
        ("o = s32[] constant(7)\n ROOT r = pred[] compare(i, o), direction=LT", 1),
        ("o = f32[] constant(1)\n ROOT r = pred[] compare(o, zero), direction=LT", 1),
        ("q = f32[2,2] slice(x), slice={[0:2],[0:2]}\n ROOT r = f32[2,2] maximum(q, q)", 4),
    ],
)
def test_points(body: str, points: int) -> None:
    assert points_for(program(body)) == points


def test_a_fault_in_one_branch_of_a_scalar_is_seen() -> None:
    """It shows at every second point: of 32 seeds two points would miss it in eight."""
    right, wrong = (
        program(f"p = pred[] compare(y, zero), direction=LT\n n = f32[] {other}(y, y)\n"
                " d = f32[] add(y, y)\n ROOT r = f32[] select(p, n, d)")
        for other in ("multiply", "subtract")
    )  # fmt: skip
    found = [compare_modules(right, wrong, seed=seed).relation for seed in range(32)]
    assert found.count(Relation.UNEQUAL) >= 31
    assert compare_modules(right, right).trials == 8
