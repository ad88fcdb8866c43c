"""Trip counts that follow from the program; the loop run on the reference says whether they are right."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.rewrites import rewrite

from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.trip_counts import (
    MOST_REPETITIONS,
    UNKNOWN_TRIPS,
    loop_repetitions,
    most_trips,
    static_trip_count,
    trip_count,
    trips_expected,
)
from hlotool.ir.module import Instruction, Module
from hlotool.parser.reader import parse_module

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
        ({"start": 9, "limit": 0, "direction": "GE", "update": "subtract(i, step)", "step": 3}, 4),
        ({"t": "u32", "start": 5, "limit": 0, "direction": "GT", "update": "subtract(i, step)"}, 5),
        ({"start": 4, "limit": 4, "direction": "EQ"}, 1),
        ({"direction": "NE", "step": -1, "limit": -6}, 6),
    ],
)
def test_counts(changes: dict[str, object], expected: int) -> None:
    module = parse_module(LOOP.format(**{**DEFAULT, **changes}))
    assert static_trip_count(loop_of(module)) == expected
    assert int(np.asarray(NumpyBackend().compile(module).run([]))) == expected
    unrolled, manager = rewrite(module, "unroll{max_trips=100},fix(simplify-tuples,fold,dce)")
    assert sum(manager.runs[0].changes.values()) == 1
    assert [i.opcode for i in unrolled.entry.instructions] == ["constant"]
    assert int(np.asarray(NumpyBackend().compile(unrolled).run([]))) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"step": 0},
        {"direction": "EQ", "start": 10, "step": 0},
        {"t": "u8", "direction": "GE", "limit": 0},
        {"update": "multiply(i, step)"},
        {"update": "subtract(step, i)"},
        {"t": "f32"},
    ],
)
def test_what_is_not_known(changes: dict[str, object]) -> None:
    module = parse_module(LOOP.format(**{**DEFAULT, **changes}))
    assert static_trip_count(loop_of(module)) is None


def test_a_start_that_is_not_constant() -> None:
    text = LOOP.format(**DEFAULT).replace("start = s32[] constant(0)", "start = s32[] parameter(0)")
    assert static_trip_count(loop_of(parse_module(text))) is None


def test_two_conditions() -> None:
    text = LOOP.format(**DEFAULT).replace(
        "  ROOT c = pred[] compare(i, n), direction=LT",
        "  a = pred[] compare(i, n), direction=LT\n  k = s32[] get-tuple-element(p), index=1\n"
        "  m = s32[] constant(4)\n  b = pred[] compare(k, m), direction=LT\n  ROOT c = pred[] and(a, b)",
    )
    assert static_trip_count(loop_of(parse_module(text))) == 4


def test_counts_beyond_what_can_be_run() -> None:
    """By hand: 2**40 steps of one; the other way around a u32 that counts up from 5 to 0."""
    long = LOOP.format(**{**DEFAULT, "t": "s64", "limit": 2**40})
    assert static_trip_count(loop_of(parse_module(long))) == 2**40
    around = LOOP.format(**{**DEFAULT, "t": "u32", "start": 5, "limit": 0, "direction": "NE"})
    assert static_trip_count(loop_of(parse_module(around))) == 2**32 - 5
    thrice = LOOP.format(**{**DEFAULT, "t": "u8", "start": 5, "limit": 0, "direction": "NE", "step": 3})
    # 5 + 3 * 169 = 2 * 256
    assert static_trip_count(loop_of(parse_module(thrice))) == 169


FUSED = """HloModule fused
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
cond {
  p = (f32[], (s32[], s32[])) parameter(0)
  inner = (s32[], s32[]) get-tuple-element(p), index=1
  i = s32[] get-tuple-element(inner), index=0
  n = s32[] get-tuple-element(inner), index=1
  ROOT f = pred[] fusion(i, n), kind=kLoop, calls=less
}
advance {
  a = s32[] parameter(0)
  two = s32[] constant(2)
  three = s32[] constant(3)
  b = s32[] add(a, three)
  ROOT c = s32[] subtract(b, two)
}
body {
  p = (f32[], (s32[], s32[])) parameter(0)
  x = f32[] get-tuple-element(p), index=0
  inner = (s32[], s32[]) get-tuple-element(p), index=1
  i = s32[] get-tuple-element(inner), index=0
  n = s32[] get-tuple-element(inner), index=1
  j = s32[] call(i), to_apply=advance
  following = (s32[], s32[]) tuple(j, n)
  y = f32[] add(x, x)
  ROOT r = (f32[], (s32[], s32[])) tuple(y, following)
}
ENTRY e {
  x = f32[] parameter(0)
  start = s32[] constant(-2)
  copied = s32[] copy(start)
  limit = s32[] constant(5)
  inner = (s32[], s32[]) tuple(copied, limit)
  state = (f32[], (s32[], s32[])) tuple(x, inner)
  ROOT w = (f32[], (s32[], s32[])) while(state), condition=cond, body=body
}"""


def test_through_fusions_calls_and_nested_tuples() -> None:
    """From -2 in steps of 3 - 2 to below 5, by hand."""
    assert static_trip_count(loop_of(parse_module(FUSED))) == 7


def test_one_part_of_a_condition_bounds_the_loop() -> None:
    """The other part depends on the data."""
    text = FUSED.replace(
        "  ROOT f = pred[] fusion(i, n), kind=kLoop, calls=less",
        "  f = pred[] fusion(i, n), kind=kLoop, calls=less\n  x = f32[] get-tuple-element(p), index=0\n"
        "  finite = pred[] is-finite(x)\n  ROOT both = pred[] and(f, finite)",
    )
    loop = loop_of(parse_module(text))
    assert (static_trip_count(loop), most_trips(loop)) == (None, 7)


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ('{"known_trip_count":{"n":"25"}}', 25),
        ('{"known_trip_count":{"n":"0"}}', 0),
        ('{"known_trip_count":{}}', 7),
        ('{"outer_dimension_partitions":["2"]}', 7),
        ('"text"', 7),
    ],
)
def test_what_xla_wrote_down_goes_first(note: str, expected: int) -> None:
    module = parse_module(FUSED.replace("body=body\n}", f"body=body, backend_config={note}\n}}"))
    assert trip_count(loop_of(module)) == expected
    assert static_trip_count(loop_of(module)) == 7


def test_repetitions_of_nested_loops_multiply() -> None:
    """7 iterations of the outer loop, as many of the inner one in each: by hand."""
    head, computations = FUSED.split("\n", 1)
    inner = computations.replace("ENTRY e", "once").replace("ROOT w", "w")
    inner = inner.replace("body=body\n}", "body=body\n  ROOT y = f32[] get-tuple-element(w), index=0\n}")
    outer = re.sub(r"\b(cond|body|less|advance)\b(?!=)", r"\1_2", computations)
    outer = outer.replace("y = f32[] add(x, x)", "y = f32[] call(x), to_apply=once")
    module = parse_module("\n".join((head, inner, outer)))
    found = {computation.name: times for computation, times in loop_repetitions(module).items()}
    assert (found["e"], found["body_2"], found["once"], found["body"], found["advance"]) == (1, 7, 7, 49, 49)


def test_repetitions_are_bounded_and_at_least_one() -> None:
    def times(text: str) -> int:
        module = parse_module(text)
        return next(n for c, n in loop_repetitions(module).items() if c.name == "body")

    assert times(FUSED.replace("constant(5)", "constant(-9)")) == 1
    assert times(FUSED.replace("copied = s32[] copy(start)", "copied = s32[] negate(start)")) == UNKNOWN_TRIPS
    note = f'backend_config={{"known_trip_count":{{"n":"{2**50}"}}}}'
    huge = FUSED.replace("body=body\n}", f"body=body, {note}\n}}")
    assert times(huge) == MOST_REPETITIONS


def test_a_limit_beside_another_condition_is_no_expectation() -> None:
    """As rejection sampling has it: until numbers are accepted, and no more than 2^31-1 times."""
    text = LOOP.format(**DEFAULT | {"limit": 2**31 - 1, "update": "multiply(i, d)"}).replace(
        "ROOT c = pred[] compare(i, n), direction=LT",
        "k = s32[] get-tuple-element(p), index=1 l = pred[] compare(k, n), direction=LT "
        "d = s32[] get-tuple-element(p), index=2 m = pred[] compare(i, d), direction=LT "
        "ROOT c = pred[] and(l, m)",
    )
    loop = loop_of(parse_module(text))
    assert most_trips(loop) == 2**31 - 1
    assert trips_expected(loop) < 100
    assert trips_expected(loop_of(parse_module(LOOP.format(**DEFAULT | {"limit": 5000})))) == 5000


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
