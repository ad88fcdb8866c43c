"""Values that are overwritten and needed. Programs that XLA scheduled have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.errors import HlotoolError
from hlotool.facts.schedules import missing_copies
from hlotool.parser.reader import parse_module

UPDATE = """HloModule m, is_scheduled=true, input_output_alias={ {1}: (0, {}, may-alias) }

ENTRY e {
  p = f32[4] parameter(0)
  u = f32[1] parameter(1)
  i = s32[] parameter(2)
  n = f32[4] negate(p)
  d = f32[4] dynamic-update-slice(n, u, i)
  a = f32[4] add(p, d)
  ROOT t = (f32[4], f32[4]) tuple(a, d)
}
"""

LOOP = """HloModule m, is_scheduled=true

body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] get-tuple-element(s), index=2
  o = s32[] constant(1)
  j = s32[] add(i, o)
  z = f32[4] add(x, y)
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, z, y)
}

condition {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT
}

ENTRY e {
  p = f32[4] parameter(0)
  zero = s32[] constant(0)
  first = s32[] copy(zero)
  n = f32[4] negate(p)
  t = (s32[], f32[4], f32[4]) tuple(first, n, p)
  w = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body
  x = f32[4] get-tuple-element(w), index=1
  ROOT r = f32[4] add(x, p)
}
"""


def found(text: str) -> list[str]:
    return [str(one) for one in missing_copies(parse_module(text))]


@pytest.mark.parametrize("text", [UPDATE, LOOP])
def test_programs_that_copy_what_they_need(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (UPDATE, "add(p, d)", "add(n, d)", "dynamic-update-slice %d overwrites %n, which add %a reads later"),
        (
            UPDATE,
            "tuple(a, d)",
            "tuple(n, d)",
            "dynamic-update-slice %d overwrites %n, which tuple %t reads later",
        ),
        (
            UPDATE,
            "slice(n, u",
            "slice(p, u",
            "dynamic-update-slice %d overwrites %p, which add %a reads later",
        ),
        (UPDATE, "add(p, d)", "add(n, n)", "dynamic-update-slice %d overwrites %n, which add %a reads later"),
        (LOOP, "(first, n, p)", "(zero, n, p)", "while %w overwrites %zero, a constant"),
        (LOOP, "(first, n, p)", "(first, p, p)", "while %w overwrites %p, an argument that is not donated"),
        (LOOP, "(first, n, p)", "(first, n, n)", "while %w overwrites %n, which it has twice"),
        (LOOP, "add(x, p)", "add(x, n)", "while %w overwrites %n, which add %r reads later"),
    ],
)
def test_a_copy_that_is_gone(text: str, old: str, new: str, said: str) -> None:
    assert f"{said}: a copy is missing" in found(text.replace(old, new))


def test_a_part_of_the_state_that_the_body_hands_on_is_not_overwritten() -> None:
    assert found(LOOP.replace("(first, n, p)", "(first, n, p)").replace("add(x, p)", "add(p, p)")) == []


def test_a_body_that_hands_on_two_names_of_one_buffer_overwrites_nothing() -> None:
    # As libtpu leaves a loop whose state names the same array twice.
    same = LOOP.replace("tuple(j, z, y)", "tuple(j, y, y)")
    assert found(same.replace("(first, n, p)", "(first, n, n)").replace("add(x, p)", "add(x, n)")) == []
    assert "while %w overwrites %n, which add %r reads later: a copy is missing" in found(
        same.replace("add(x, p)", "add(x, n)")
    )


def test_a_reshape_has_a_buffer_of_its_own() -> None:
    # With the layouts of TPUs it moves elements; what does not is a bitcast.
    moved = UPDATE.replace("negate(p)", "negate(p) v = f32[2,2] reshape(n)").replace(
        "tuple(a, d)", "tuple(v, d)"
    )
    assert found(moved) == []
    assert found(moved.replace("reshape(n)", "bitcast(n)")) != []


def test_only_scheduled_programs_say_what_is_overwritten() -> None:
    assert found(UPDATE.replace(", is_scheduled=true", "").replace("add(p, d)", "add(n, d)")) == []


def test_what_xla_scheduled_has_all_its_copies() -> None:
    seen = 0
    for path in sorted(Path("corpus").rglob("*after_optimizations.txt")):
        try:
            module = parse_module(path.read_text(encoding="utf-8"))
        except HlotoolError:
            continue
        seen += module.is_scheduled
        assert list(map(str, missing_copies(module))) == [], path
    assert seen > 100
