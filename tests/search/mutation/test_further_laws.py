"""Laws on rows, low bits, kinds of numbers and choices: programs that are one, and some that nearly are."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.directed.plan import directed_sets
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.reading import result_symbols
from hlotool.values.generate import generate_inputs
from hlotool.values.npz import arrays_in

_COMPUTATIONS = """HloModule m
argmin {
  a = s32[] parameter(0)
  i = s32[] parameter(1)
  b = s32[] parameter(2)
  j = s32[] parameter(3)
  less = pred[] compare(a, b), direction=LT
  same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tied = pred[] and(same, before)
  first = pred[] or(less, tied)
  value = s32[] select(first, a, b)
  place = s32[] select(first, i, j)
  ROOT r = (s32[], s32[]) tuple(value, place)
}
argmin_or_equal {
  a = s32[] parameter(0)
  i = s32[] parameter(1)
  b = s32[] parameter(2)
  j = s32[] parameter(3)
  less = pred[] compare(a, b), direction=LE
  same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tied = pred[] and(same, before)
  strict = pred[] compare(a, b), direction=LT
  first = pred[] or(strict, tied)
  value = s32[] select(less, a, b)
  place = s32[] select(first, i, j)
  ROOT r = (s32[], s32[]) tuple(value, place)
}
last_of_equals {
  a = s32[] parameter(0)
  i = s32[] parameter(1)
  b = s32[] parameter(2)
  j = s32[] parameter(3)
  less = pred[] compare(a, b), direction=LT
  value = s32[] select(less, a, b)
  place = s32[] select(less, i, j)
  ROOT r = (s32[], s32[]) tuple(value, place)
}
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}
ENTRY e {
  x = s32[4] parameter(0)
  f = f32[4] parameter(1)
  i = s32[4] iota(), iota_dimension=0
  zero = s32[] constant(0)
  one = s32[] constant(1)
  most = s32[] constant(2147483647)
  zeros = s32[4] broadcast(zero), dimensions={}
  ones = s32[4] broadcast(one), dimensions={}
  three = s32[4] constant({3, 3, 3, 3})
  four = s32[4] constant({4, 4, 4, 4})
  five = s32[4] constant({5, 5, 5, 5})
  seven = s32[4] constant({7, 7, 7, 7})
  nothing = f32[4] constant({0, 0, 0, 0})
  unit = f32[4] constant({1, 1, 1, 1})
  minus = s32[4] negate(x)
  negative = pred[4] compare(x, zeros), direction=LT
  is_nan = pred[4] compare(f, f), direction=NE
"""
_ONCE = (
    "v = (s32[], s32[]) reduce(x, i, most, zero), dimensions={{0}}, to_apply={to_apply} "
    "ROOT r = s32[] get-tuple-element(v), index=1"
)
_TWICE = (
    "p = s32[1] slice(x), slice={{[{place}:{place}+1]}} q = s32[5] concatenate(x, p), dimensions={{0}} "
    "j = s32[1] slice(i), slice={{[0:1]}} k = s32[5] concatenate(i, j), dimensions={{0}} "
    "v = (s32[], s32[]) reduce(q, k, most, zero), dimensions={{0}}, to_apply={to_apply} "
    "ROOT r = s32[] get-tuple-element(v), index=1"
)


def _twice(to_apply: str, place: int = 0) -> str:
    text = _TWICE.format(to_apply=to_apply, place=place)
    return text.replace(f"{place}+1", str(place + 1))


#: `x & 3` with the sign of x, as simplifiers write remainders; then as a number that is not negative.
_REST = (
    "size = s32[4] select({sign}, minus, x) low = s32[4] and(size, {mask}) back = s32[4] negate(low) "
    "rest = s32[4] select({sign}, back, low) below = pred[4] compare(rest, zeros), direction=LT "
    "up = s32[4] add(rest, four) ROOT r = s32[4] select(below, up, rest)"
)
_POSITIVE = "positive = pred[4] compare(x, zeros), direction=GT "
_MASKED = "m = s32[4] multiply(x, {factor}) ROOT r = s32[4] and(m, {mask})"
_PARITY = (
    "bits = s32[4] and(x, ones) a = s32[] reduce(bits, {start}), dimensions={{0}}, to_apply=sum "
    "b = s32[] reduce(i, {start}), dimensions={{0}}, to_apply=sum s = s32[] add(a, b) "
    "two = s32[] constant({divisor}) ROOT r = s32[] remainder(s, two)"
)
_ZERO = (
    "c = s32[4] select(negative, minus, {other}) ROOT r = pred[4] compare(c, zeros), direction={direction}"
)
_LARGER = (
    "low = s32[4] and(x, three) more = s32[4] add(low, {larger}) some = pred[4] compare(low, zeros), "
    "direction=GT c = s32[4] select({mask}, more, low) ROOT r = pred[4] compare(c, zeros), direction=NE"
)
_FINITE = (
    "lost = f32[4] select(is_nan, {instead}, f) ok = pred[4] is-finite({asked}) "
    "ROOT r = f32[4] select(ok, {asked}, {otherwise})"
)
_WITHIN = "inner = f32[4] select(is_nan, {one}, f) ROOT r = f32[4] select(negative, inner, {other})"
_AT_ONCE = (
    "number = pred[4] not(is_nan) both = pred[4] and(negative, number) "
    "ROOT r = f32[4] select(both, f, {other})"
)

CASES = {
    "an element twice": (_ONCE.format(to_apply="argmin"), _twice("argmin"), True),
    "an element twice, for another one": (_ONCE.format(to_apply="argmin"), _twice("argmin", 1), False),
    "an element twice, of which the last counts": (
        _ONCE.format(to_apply="last_of_equals"), _twice("last_of_equals"), False,
    ),
    "of equal numbers either": (
        _ONCE.format(to_apply="argmin"), _ONCE.format(to_apply="argmin_or_equal"), True,
    ),
    "of equal numbers the last": (
        _ONCE.format(to_apply="argmin"), _ONCE.format(to_apply="last_of_equals"), False,
    ),
    "a remainder by four, both ways": (
        _REST.format(sign="negative", mask="three"),
        _POSITIVE + _REST.format(sign="positive", mask="three"), True,
    ),
    "a remainder by eight, moved by four": (
        _REST.format(sign="negative", mask="seven"),
        _POSITIVE + _REST.format(sign="positive", mask="seven"), False,
    ),
    "bits that are 0": (
        _MASKED.format(factor="four", mask="seven"), _MASKED.format(factor="four", mask="five"), True,
    ),
    "a bit that is not": (
        _MASKED.format(factor="three", mask="seven"), _MASKED.format(factor="three", mask="five"), False,
    ),
    "two more and no odd one": (
        _PARITY.format(start="zero", divisor=2), _PARITY.format(start="one", divisor=2), True,
    ),
    "two more, modulo three": (
        _PARITY.format(start="zero", divisor=3), _PARITY.format(start="one", divisor=3), False,
    ),
    "0 is its own negative": (
        _ZERO.format(other="x", direction="NE"), "ROOT r = pred[4] compare(x, zeros), direction=NE", True,
    ),
    "no other number is": (
        _ZERO.format(other="x", direction="LT"), "ROOT r = pred[4] compare(x, zeros), direction=LT", False,
    ),
    "never 0 instead of what is not": (
        _LARGER.format(mask="some", larger="four"), _LARGER.format(mask="some", larger="five"), True,
    ),
    "0 instead of what is not": (
        _LARGER.format(mask="some", larger="four"), _LARGER.format(mask="some", larger="minus"), False,
    ),
    "NaN becomes what it becomes anyway": (
        _FINITE.format(instead="nothing", asked="lost", otherwise="nothing"),
        _FINITE.format(instead="nothing", asked="f", otherwise="nothing"), True,
    ),
    "NaN becomes something else": (
        _FINITE.format(instead="unit", asked="lost", otherwise="nothing"),
        _FINITE.format(instead="unit", asked="f", otherwise="nothing"), False,
    ),
    "a choice within a choice": (
        _WITHIN.format(one="unit", other="unit"), _AT_ONCE.format(other="unit"), True,
    ),
    "a choice within a choice of something else": (
        _WITHIN.format(one="nothing", other="unit"), _AT_ONCE.format(other="unit"), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_laws(name: str) -> None:
    one, other, equal = CASES[name]
    left, right = (parse_module(f"{_COMPUTATIONS}{body}\n}}") for body in (one, other))
    symbols = [result_symbols(module, LAWS) for module in (left, right)]
    assert all(map(np.array_equal, *symbols)) is equal
    plain = generate_inputs(left, 0).values
    sets = [plain, *(one.values for one in directed_sets(left, plain, 0))]
    assert all(results(left, values) == results(right, values) for values in sets) is equal


def results(module: Module, values: tuple[Value, ...]) -> list[bytes]:
    """Arrays with one NaN and one zero each."""
    found = []
    for array in arrays_in(NumpyBackend().compile(module).run(values)):
        is_float = array.dtype.kind == "f"
        found.append((np.where(np.isnan(array), np.nan, array + 0) if is_float else array).tobytes())
    return found
