"""Trip counts that follow from the program; the loop run on the reference says whether they are right."""

from __future__ import annotations

import numpy as np
import pytest
from support.rewrites import rewrite

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Instruction, Module
from hlotool.parse.reader import parse_module
from hlotool.passes.base import total
from hlotool.passes.trip_count import trip_count

LOOP = """HloModule loop
cond {{
  p = ({t}[], s32[], {t}[]) parameter(0)
  i = {t}[] get-tuple-element(p), index=0
  n = {t}[] constant({limit})
  ROOT c = pred[] compare({compared}), direction={direction}
}}
body {{
  p = ({t}[], s32[], {t}[]) parameter(0)
  i = {t}[] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1
  d = {t}[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(k, one)
  step = {t}[] constant({step})
  j = {t}[] {update}
  ROOT r = ({t}[], s32[], {t}[]) tuple(j, next, d)
}}
ENTRY e {{
  start = {t}[] constant({start})
  zero = s32[] constant(0)
  two = {t}[] constant(2)
  s = ({t}[], s32[], {t}[]) tuple(start, zero, two)
  w = ({t}[], s32[], {t}[]) while(s), condition=cond, body=body
  ROOT k = s32[] get-tuple-element(w), index=1
}}"""
DEFAULT = {
    "t": "s32", "start": 0, "limit": 10, "step": 1, "direction": "LT", "update": "add(i, step)",
    "compared": "i, n",
}  # fmt: skip


def loop_of(module: Module) -> Instruction:
    return next(i for i in module.entry.instructions if i.opcode == "while")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 10),
        ({"limit": 0}, 0),
        ({"start": 3, "step": 4}, 2),
        ({"direction": "LE"}, 11),
        ({"direction": "NE", "step": 2}, 5),
        ({"start": 10, "limit": 0, "direction": "GT", "update": "subtract(i, step)"}, 10),
        ({"update": "add(step, i)"}, 10),
        ({"update": "add(i, d)"}, 5),
        ({"compared": "n, i", "direction": "GT"}, 10),
        ({"t": "u8", "limit": 200, "start": 100, "step": 50}, 2),
        ({"t": "u8", "limit": 3, "start": 100, "direction": "GT", "step": 50}, 39),
        ({"t": "s8", "limit": -100, "start": 100, "direction": "GT"}, 28),
        ({"t": "s64", "limit": 7}, 7),
    ],
)
def test_counts(changes: dict[str, object], expected: int) -> None:
    module = parse_module(LOOP.format(**{**DEFAULT, **changes}))
    assert trip_count(loop_of(module), 100) == expected
    assert int(np.asarray(NumpyBackend().compile(module).run([]))) == expected
    unrolled, manager = rewrite(module, "unroll{max_trips=100},fix(simplify-tuples,fold,dce)")
    assert total(manager.runs[0].changes) == 1
    assert [i.opcode for i in unrolled.entry.instructions] == ["constant"]
    assert int(np.asarray(NumpyBackend().compile(unrolled).run([]))) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"limit": 101},
        {"step": 0},
        {"update": "multiply(i, step)"},
        {"update": "subtract(step, i)"},
        {"t": "f32"},
    ],
)
def test_what_is_not_known_or_too_much(changes: dict[str, object]) -> None:
    module = parse_module(LOOP.format(**{**DEFAULT, **changes}))
    assert trip_count(loop_of(module), 100) is None


def test_a_start_that_is_not_constant() -> None:
    text = LOOP.format(**DEFAULT).replace("start = s32[] constant(0)", "start = s32[] parameter(0)")
    assert trip_count(loop_of(parse_module(text)), 100) is None


def test_two_conditions() -> None:
    text = LOOP.format(**DEFAULT).replace(
        "  ROOT c = pred[] compare(i, n), direction=LT",
        "  a = pred[] compare(i, n), direction=LT\n  k = s32[] get-tuple-element(p), index=1\n"
        "  m = s32[] constant(4)\n  b = pred[] compare(k, m), direction=LT\n  ROOT c = pred[] and(a, b)",
    )
    assert trip_count(loop_of(parse_module(text)), 100) == 4


def test_large_loops_stay() -> None:
    module = parse_module(LOOP.format(**DEFAULT))
    for options in ("max_trips=9", "max_instructions=50"):
        _, manager = rewrite(module, f"unroll{{{options}}}")
        assert manager.runs[0].changes == {}


def test_channels_are_not_copied() -> None:
    text = LOOP.format(**DEFAULT).replace(
        "  next = s32[] add(k, one)",
        "  sent = s32[] all-reduce(k), channel_id=1, replica_groups={}, to_apply=sum\n"
        "  next = s32[] add(sent, one)",
    )
    text = text.replace(
        "cond {", "sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT s = s32[] add(a, b) }\ncond {"
    )
    _, manager = rewrite(parse_module(text), "unroll")
    assert manager.runs[0].changes == {}
