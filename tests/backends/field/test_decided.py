"""What signs, ranges and the laws of logarithms add to the laws of the field: pairs equal by them, or not."""

from __future__ import annotations

import pytest

import hlotool
from hlotool.facts.signs import Law
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import compare_modules

F = "f32[4,6]"
PROGRAM = """HloModule m
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT sum = f32[] add(a, b) }}
largest {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT larger = f32[] maximum(a, b) }}
ENTRY e {{
  x = f32[4,6] parameter(0)
  y = f32[4,6] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[4,6] broadcast(zero), dimensions={{}}
  one = f32[] constant(1)
  ones = f32[4,6] broadcast(one), dimensions={{}}
  xx = f32[4,6] multiply(x, x)
  ey = f32[4,6] exponential(y)
  positive = f32[4,6] add(xx, ey)
  negative = f32[4,6] negate(positive)
  tanh = f32[4,6] tanh(x)
  m = f32[4] reduce(x, zero), dimensions={{1}}, to_apply=largest
  below = f32[4,6] broadcast(m), dimensions={{0}}
  s = f32[4] reduce(ey, zero), dimensions={{1}}, to_apply=sum
  whole = f32[4,6] broadcast(s), dimensions={{0}}
  share = f32[4,6] divide(ey, whole)
  {body}
}}"""


def prove(one: str, other: str) -> ExactResult:
    return compare_modules(*(hlotool.parse(PROGRAM.format(body=body)) for body in (one, other)))


#: One program, one that is equal by laws of signs, and those laws; the second line's operand has no such law.
DECIDED = [
    (f"ROOT r = {F} abs(positive)", f"ROOT r = {F} copy(positive)", {Law.SUM, Law.SQUARE, Law.EXPONENTIAL}),
    (f"ROOT r = {F} abs(negative)", f"ROOT r = {F} copy(positive)", {Law.SUM}),
    (f"ROOT r = {F} sign(positive)", f"ROOT r = {F} copy(ones)", {Law.SUM}),
    (f"ROOT r = {F} maximum(positive, zeros)", f"ROOT r = {F} copy(positive)", {Law.SUM, Law.CONSTANT}),
    (f"ROOT r = {F} minimum(positive, zeros)", f"ROOT r = {F} copy(zeros)", {Law.SUM}),
    (f"ROOT r = {F} minimum(tanh, ones)", f"ROOT r = {F} copy(tanh)", {Law.BOUNDED}),
    (f"ROOT r = {F} clamp(zero, share, one)", f"ROOT r = {F} copy(share)", {Law.SHARE}),
    (f"ROOT r = {F} clamp(zero, positive, one)", f"ROOT r = {F} minimum(positive, ones)", {Law.SUM}),
    (f"c = pred[4,6] compare(positive, zeros), direction=LT\n ROOT r = {F} select(c, x, y)",
     f"ROOT r = {F} copy(y)", {Law.SUM}),
    (f"c = pred[4,6] compare(positive, zeros), direction=GT\n ROOT r = {F} select(c, x, y)",
     f"ROOT r = {F} copy(x)", {Law.SUM}),
    (f"d = {F} subtract(x, below)\n ROOT r = {F} abs(d)", f"ROOT r = {F} subtract(below, x)",
     {Law.BELOW_MAXIMUM}),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "laws"), DECIDED)
def test_equal_by_what_is_known_of_signs(one: str, other: str, laws: set[Law]) -> None:
    result = prove(one, other)
    assert result.relation is Relation.EQUAL
    assert {law.value for law in laws} <= set(result.laws)
    assert prove(one, one).laws == []  # nothing is assumed where nothing has to be


@pytest.mark.parametrize(("one", "other", "laws"), DECIDED)
def test_unequal_without_what_the_law_needs(one: str, other: str, laws: set[Law]) -> None:
    """Of x and of x + y nothing is known: the same rewrites are faults there."""
    unknown = "z = f32[4,6] add(x, y)\n  "
    for known in ("positive", "negative", "tanh", "share", "below"):
        one, other = (body.replace(known, "z") for body in (one, other))
    assert prove(unknown + one, unknown + other).relation is Relation.UNEQUAL


#: By log(a b) = log(a) + log(b), for positive a and b.
LOGARITHMS = [
    (f"p = {F} multiply(xx, ey)\n ROOT r = {F} log(p)",
     f"a = {F} log(xx)\n ROOT r = {F} add(a, y)",
     f"a = {F} log(xx)\n ROOT r = {F} subtract(a, y)"),
    (f"p = {F} sqrt(ey)\n q = {F} sqrt(xx)\n pq = {F} multiply(p, q)\n ROOT r = {F} log(pq)",
     f"h = f32[] constant(0.5)\n hs = {F} broadcast(h), dimensions={{}}\n p = {F} multiply(xx, ey)\n"
     f"l = {F} log(p)\n ROOT r = {F} multiply(l, hs)",
     f"h = f32[] constant(0.25)\n hs = {F} broadcast(h), dimensions={{}}\n p = {F} multiply(xx, ey)\n"
     f"l = {F} log(p)\n ROOT r = {F} multiply(l, hs)"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "equal", "unequal"), LOGARITHMS)
def test_equal_by_laws_of_logarithms(one: str, equal: str, unequal: str) -> None:
    assert prove(one, equal).relation is Relation.EQUAL
    assert "log(a b) = log(a) + log(b)" in prove(one, equal).laws
    assert prove(one, unequal).relation is Relation.UNEQUAL


HALF = f"h = f32[] constant(0.5)\n hs = {F} broadcast(h), dimensions={{}}\n "

#: By log(x^y) = y log(x), whatever the sign of x is at a random point.
LOGARITHMS_OF_POWERS = [
    (f"p = {F} power(xx, y)\n ROOT r = {F} log(p)",
     f"l = {F} log(xx)\n ROOT r = {F} multiply(l, y)",
     f"l = {F} log(x)\n ROOT r = {F} multiply(l, y)"),
    (f"p = {F} sqrt(x)\n ROOT r = {F} log(p)",
     f"{HALF}l = {F} log(x)\n ROOT r = {F} multiply(l, hs)",
     f"{HALF}l = {F} log(x)\n ROOT r = {F} divide(l, hs)"),
    (f"l = {F} log(ey)\n n = {F} negate(l)\n p = {F} rsqrt(n)\n ROOT r = {F} log(p)",
     f"{HALF}n = {F} negate(y)\n l = {F} log(n)\n lh = {F} multiply(l, hs)\n ROOT r = {F} negate(lh)",
     f"{HALF}l = {F} log(y)\n lh = {F} multiply(l, hs)\n ROOT r = {F} negate(lh)"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "equal", "unequal"), LOGARITHMS_OF_POWERS)
def test_equal_by_the_logarithm_of_a_power(one: str, equal: str, unequal: str) -> None:
    assert prove(one, equal).relation is Relation.EQUAL
    assert prove(one, equal).laws == []
    assert prove(one, unequal).relation is Relation.UNEQUAL


def test_a_clamp_that_only_looks_superfluous() -> None:
    """exp comes as near to 0 as one likes, so that 1e-6 below it is no bound."""
    tiny = f"t = f32[] constant(1e-6)\n ts = {F} broadcast(t), dimensions={{}}\n "
    assert (
        prove(tiny + f"ROOT r = {F} maximum(share, ts)", f"ROOT r = {F} copy(share)").relation
        is Relation.UNEQUAL
    )
