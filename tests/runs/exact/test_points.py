"""How many points a comparison takes: more where a single float decides, or few integers are given."""

from __future__ import annotations

import pytest

import hlotool
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.points import Options, points_for, points_for_integers
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import compare_modules, programs
from hlotool.system.resources import TooMuchWork, work_done, work_limit

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
    assert compare(*programs(right, right), Options(2)).trials == 8


@pytest.mark.parametrize(
    ("parameters", "points"),
    [
        (["f32[4]", "c64[]"], 1),
        (["f32[4]", "s32[]"], 8),
        (["s32[64]"], 1),
        (["s32[63]"], 2),
        (["(u8[16], s32[200])"], 4),
        (["s32[0]"], 1),
        (["pred[]"], 1),
        (["pred[16]"], 4),
    ],
)
def test_points_for_integers(parameters: list[str], points: int) -> None:
    lines = [f"p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters)]
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\nROOT r = f32[] constant(0)\n}\n"
    assert points_for_integers(hlotool.parse(text)) == points


LABELS = """HloModule m
ENTRY e {
  labels = s32[8] parameter(0)
  classes = s32[8,10] iota(), iota_dimension=1
  each = s32[8,10] broadcast(labels), dimensions={0}
  hit = pred[8,10] compare(each, classes), direction=EQ
  once = s32[8,10] convert(hit)
  number = s32[10] constant({1, 1, 1, NUMBER, 1, 1, 1, 1, 1, 1})
  numbers = s32[8,10] broadcast(number), dimensions={1}
  ROOT r = s32[8,10] multiply(once, numbers)
}"""


def test_a_fault_in_one_label_is_seen() -> None:
    """0.9 ** 64 is 1 in 800; at two points, of which none has the label in 0.9 ** 16, it were 19 of 24."""
    right, wrong = (hlotool.parse(LABELS.replace("NUMBER", number)) for number in "12")
    found = [compare_modules(right, wrong, seed=8 * seed).relation for seed in range(24)]
    assert found.count(Relation.UNEQUAL) >= 23


def test_a_lost_integer_is_seen() -> None:
    """With seed 0 and 1 the second of two integers is 0: at two points x + y would be x."""
    texts = [
        "HloModule m\nENTRY e {\n  x = s32[] parameter(0)\n  y = s32[] parameter(1)\n"
        f"  ROOT r = s32[] {root}\n}}\n"
        for root in ("add(x, y)", "copy(x)")
    ]
    assert compare_modules(*map(hlotool.parse, texts)).relation is Relation.UNEQUAL


def test_what_work_is_left_decides_about_further_points() -> None:
    """The points that were asked for must fit; those for integers may."""
    module = hlotool.parse(LABELS.replace("NUMBER", "1"))
    sides = programs(module, module)
    counts = []
    for points in (1, None):
        before = work_done()
        assert compare(*sides, Options(most_points=points)).trials == (2 if points else 8)
        counts.append(work_done() - before)
    two, eight = counts
    with work_limit((two + eight) / 2):
        result = compare(*sides)
    assert result.relation is Relation.EQUAL
    assert 2 <= result.trials < 8
    with pytest.raises(TooMuchWork), work_limit(two - 1):
        compare(*sides)
