"""Sets for what a program guards, for limits of loops, and for what only one of two programs decides."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
import pytest

from hlotool.facts.decisions import questions
from hlotool.facts.flow import CallGraph
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.adversarial.sets import OUT_OF_DOMAIN, OUT_OF_RANGE, InputSet, leaves_of
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

#: A logarithm of a number that is looked at before, by way of a function as `jnp.where` makes one.
GUARDED = """HloModule m
where {
  p = pred[6] parameter(0)
  a = f32[6] parameter(1)
  b = s32[] parameter(2)
  c = f32[] convert(b)
  d = f32[6] broadcast(c), dimensions={}
  ROOT s = f32[6] select(p, a, d)
}
ENTRY e {
  x = f32[6] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[6] broadcast(zero), dimensions={}
  p = pred[6] compare(x, zeros), direction=GT
  one = s32[] constant(1)
  safe = f32[6] call(p, x, one), to_apply=where
  ROOT l = f32[6] log(safe)
}"""

UNGUARDED = """HloModule m
ENTRY e {
  x = f32[6] parameter(0)
  n = s32[6] parameter(1)
  l = f32[6] log(x)
  c = f32[6] convert(n)
  ROOT r = f32[6] divide(l, c)
}"""

LOOP = """HloModule m
body {
  s = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  a = s32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  b = s32[] add(a, i)
  ROOT t = (s32[], s32[], s32[]) tuple(j, n, b)
}
cond {
  s = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY e {
  n = s32[] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], s32[], s32[]) tuple(zero, n, zero)
  w = (s32[], s32[], s32[]) while(s), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=2
}"""

WRAPPED = """HloModule m
ENTRY e {
  x = f32[16] parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  p = pred[] compare(i, zero), direction=LT
  length = s32[] constant(16)
  j = s32[] add(i, length)
  k = s32[] select(p, j, i)
  ROOT y = f32[5] dynamic-slice(x, k), dynamic_slice_sizes={5}
}"""

#: Distances below 7 are counted.
COUNTED = """HloModule m
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  x = f32[5] parameter(0)
  y = f32[5] parameter(1)
  d = f32[5] subtract(x, y)
  seven = f32[] constant(7)
  w = f32[5] broadcast(seven), dimensions={}
  p = pred[5] compare(d, w), direction=LT
  c = s32[5] convert(p)
  zero = s32[] constant(0)
  ROOT n = s32[] reduce(c, zero), dimensions={0}, to_apply=add
}"""


def program(text: str) -> tuple[Module, tuple[Any, ...]]:
    module = parse_module(text)
    return module, generate_inputs(module, 0).values


def made(text: str, tested: str | None = None) -> list[InputSet]:
    module, plain = program(text)
    other = None if tested is None else parse_module(tested)
    return list(islice(directed_sets(module, plain, 0, tested=other), 120))


def test_what_a_program_guards_is_free() -> None:
    module, plain = program(GUARDED)
    (leaf,) = leaves_of(module, plain)
    assert not leaf.constraint.is_bounded
    assert np.all(plain[0] > 0), "the plain set is what it was"
    assert any((one.values[0] < 0).any() for one in made(GUARDED) if not one.odd)


def test_what_nothing_guards_leaves_its_domain_in_odd_sets_alone() -> None:
    sets = made(UNGUARDED)
    for one in sets:
        numbers, divisors = one.values
        if not one.odd:
            assert np.all(numbers > 0), one.name
            assert np.all(divisors != 0), one.name
    (odd,) = [one for one in sets if OUT_OF_DOMAIN in one.odd and one.name == "numbers out of domains"]
    assert (odd.values[0] == 0).any() or (odd.values[0] < 0).any()
    assert (odd.values[1] == 0).any()


def test_limits_of_loops() -> None:
    limits = {int(one.values[0]) for one in made(LOOP)}
    assert {-1, 0, 1, 130, 256} <= limits


def test_a_loop_that_looks_for_its_limit_gets_no_negative_one() -> None:
    """It would go round 2^32 times."""
    assert min(int(one.values[0]) for one in made(LOOP.replace("LT", "NE"))) > 0


def test_a_loop_that_is_done_with_a_negative_number_gets_one() -> None:
    halved = (
        LOOP.replace("compare(i, n), direction=LT", "compare(n, i), direction=GT")
        .replace("tuple(j, n, b)", "tuple(i, h, b)")
        .replace(
            "b = s32[] add(a, i)",
            "b = s32[] add(a, one)\n  two = s32[] constant(2)\n  h = s32[] divide(n, two)",
        )
    )
    assert min(int(one.values[0]) for one in made(halved)) == -3


def test_integers_that_a_loop_works_on_are_large_together() -> None:
    text = """HloModule m
body { s = (s32[], s32[]) parameter(0) a = s32[] get-tuple-element(s), index=0
  b = s32[] get-tuple-element(s), index=1 c = s32[] remainder(a, b) ROOT r = (s32[], s32[]) tuple(b, c) }
cond { s = (s32[], s32[]) parameter(0) b = s32[] get-tuple-element(s), index=1
  zero = s32[] constant(0) ROOT p = pred[] compare(b, zero), direction=NE }
ENTRY e { a = s32[] parameter(0) b = s32[] parameter(1) s = (s32[], s32[]) tuple(a, b)
  w = (s32[], s32[]) while(s), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=0 }"""
    (one,) = [one for one in made(text) if one.name == "large numbers in loops"]
    a, b = (int(value) for value in one.values)
    assert a > 0 > b
    assert math.gcd(a, b) > 1 << 24
    assert int(np.float32(a)) != a
    assert int(np.float32(b)) != b


def test_negative_positions_that_a_program_counts_from_the_end() -> None:
    (one,) = [one for one in made(WRAPPED) if one.name == "positions from the end"]
    assert -16 <= int(one.values[1]) <= -5
    assert one.odd == (OUT_OF_RANGE,)


def test_what_only_the_tested_program_asks_comes_first() -> None:
    sets = made(COUNTED, COUNTED.replace("direction=LT", "direction=LE"))
    names = [one.name for one in sets]
    with np.errstate(all="ignore"):
        exact = [n for n, one in enumerate(sets) if (one.values[0] - one.values[1] == 7).any()]
    assert sets[exact[0]].name.startswith("tested solved")
    assert names.index("tested solved 1") < names.index("solved 1")


def test_the_same_questions_make_no_sets_of_their_own() -> None:
    assert not any(one.name.startswith("tested") for one in made(COUNTED, COUNTED))


@pytest.mark.parametrize(
    ("right", "other", "same"),
    [
        ("p = pred[4] compare(x, w), direction=LT", "p = pred[4] compare(w, x), direction=GT", True),
        ("p = pred[4] compare(x, w), direction=LT", "p = pred[4] compare(x, w), direction=LE", False),
        ("p = pred[4] compare(x, w), direction=LT", "p = pred[4] compare(x, x), direction=LT", False),
    ],
)
def test_questions_are_the_same_whatever_operands_are_called(right: str, other: str, same: bool) -> None:
    text = """HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  {number}
  w = f32[4] broadcast(c), dimensions={{}}
  {compare}
  ROOT r = f32[4] select(p, x, w)
}}"""
    one = parse_module(text.format(number="c = f32[] constant(3)", compare=right))
    converted = "i = s32[] constant(3)\n  c = f32[] convert(i)"
    two = parse_module(text.format(number=converted, compare=other))
    asked, known = (questions(CallGraph(module)) for module in (one, two))
    assert (asked <= known) is same


def test_a_stand_in_is_met_by_numbers_of_its_size() -> None:
    """What is put in the place of masked scores wins where all others are lower."""
    masked = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  k = s32[8] parameter(1)
  three = s32[] constant(3)
  t = s32[8] broadcast(three), dimensions={}
  p = pred[8] compare(k, t), direction=LT
  low = f32[] constant(-1e+09)
  l = f32[8] broadcast(low), dimensions={}
  ROOT r = f32[8] select(p, x, l)
}"""
    sets = made(masked, masked.replace("-1e+09", "-10000"))
    assert any((one.values[0] < -20_000).any() and (one.values[0] > -1e9).all() for one in sets)
