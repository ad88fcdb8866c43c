"""Ties at which both ways lead to the same real number, and such at which they nearly do."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.directed.sets import PLAIN, InputSet
from hlotool.parse.reader import parse_module
from hlotool.replay.program import compile_program
from hlotool.search.mutation.at_ties import at_ties
from hlotool.search.mutation.equivalence import ties_of_reals
from hlotool.search.mutation.fates import Examiner, Fate
from hlotool.search.mutation.mutants import KINDS, Mutant

_START = """HloModule ties
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  none = f32[] constant(0)
  zero = f32[4] broadcast(none), dimensions={}
  half = f32[] constant(0.5)
  halves = f32[4] broadcast(half), dimensions={}
  absx = f32[4] abs(x)
  absy = f32[4] abs(y)
"""
#: The root of (|x| + |y|) / 2, and y / 2 divided by it: both are the root of |y| / 2 where x is 0.
_ROOTS = """sum = f32[4] add(absx, absy) mean = f32[4] multiply(sum, halves) root = f32[4] sqrt(mean)
  halved = f32[4] multiply(absy, halves) other = f32[4] divide(halved, root)"""
_LARGER = "more = f32[4] multiply(x, y) larger = f32[4] add(y, more)"


def _text(body: str) -> str:
    return _START + body + "\n}"


def _compared(body: str, sides: str = "x, zero") -> str:
    """A program that chooses between what `body` says by a comparison."""
    lines, chosen = body.rsplit("|", 1)
    return _text(
        f"{lines} p = pred[4] compare({sides}), direction=GE ROOT r = f32[4] select(p, {chosen.strip()})"
    )


def _mutant(text: str) -> Mutant:
    """The only tie of a program, decided the other way."""
    module = parse_module(text)
    (kind,) = (kind for kind in KINDS if kind.name == "tie decided the other way")
    (site,) = kind.sites(module)
    return Mutant(module, kind, site, 0)


def _is_same(text: str) -> bool:
    mutant = _mutant(text)
    return bool(ties_of_reals(compile_program("right", "", mutant.right, "numpy"), mutant))


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        (_compared(_ROOTS + "| root, other"), True),
        (_compared(_ROOTS + "| root, other", "x, halves"), False),
        (_compared(_ROOTS + "| root, other", "y, zero"), False),
        (_compared(_LARGER + "| larger, y"), True),
        (_compared(_LARGER + "| larger, y", "x, halves"), False),
        # The number that is compared is a copy of the one that is chosen.
        (_compared("c = f32[4] copy(x) | absx, zero", "c, zero"), True),
        (_compared("c = f32[4] copy(x) | absx, halves", "c, zero"), False),
        # Either number may be the one that the other one is made of.
        (_compared("s = f32[4] multiply(y, y) t = f32[4] multiply(x, y) | s, t", "x, y"), True),
        (_compared("s = f32[4] multiply(x, halves) d = f32[4] subtract(x, s) | d, zero", "x, s"), True),
        (_compared("s = f32[4] multiply(x, halves) d = f32[4] add(x, s) | d, y", "x, s"), False),
    ],
)  # fmt: skip
def test_a_choice_at_a_tie(text: str, equal: bool) -> None:
    assert _is_same(text) is equal


@pytest.mark.parametrize(("other", "equal"), [("absx", True), ("totals", False)])
def test_all_of_a_sum_are_not_zero_where_one_is(other: str, equal: bool) -> None:
    body = """total = f32[] reduce(absx, none), dimensions={0}, to_apply=add
      totals = f32[4] broadcast(total), dimensions={}"""
    assert _is_same(_compared(f"{body} | x, {other}")) is equal


_CALLED = """HloModule called
choose {{ x = f32[4] parameter(0) y = f32[4] parameter(1) none = f32[] constant(0)
  zero = f32[4] broadcast(none), dimensions={{}} p = pred[4] compare(x, zero), direction=GE
  more = f32[4] multiply(x, y) larger = f32[4] add(y, more) ROOT r = f32[4] select(p, larger, y) }}
ENTRY e {{ x = f32[4] parameter(0) y = f32[4] parameter(1) {body} }}"""


@pytest.mark.parametrize(
    ("body", "equal"),
    [
        ("ROOT r = f32[4] fusion(x, y), kind=kLoop, calls=choose", True),
        ("c = f32[4] call(x, y), to_apply=choose ROOT r = f32[4] add(c, x)", True),
        ("c = f32[4] call(x, y), to_apply=choose ROOT r = f32[4] call(c, y), to_apply=choose", False),
    ],
)
def test_a_comparison_that_runs_once_is_looked_at(body: str, equal: bool) -> None:
    assert _is_same(_CALLED.format(body=body)) is equal


def test_the_same_number_in_another_fusion() -> None:
    """Each fusion takes the real part for itself."""
    text = """HloModule parts
    size { z = c64[4] parameter(0) x = f32[4] real(z) ROOT a = f32[4] abs(x) }
    choose { z = c64[4] parameter(0) a = f32[4] parameter(1) x = f32[4] real(z) none = f32[] constant(0)
      zero = f32[4] broadcast(none), dimensions={} p = pred[4] compare(x, zero), direction=GE
      ROOT r = f32[4] select(p, a, zero) }
    ENTRY e { z = c64[4] parameter(0) a = f32[4] fusion(z), kind=kLoop, calls=size
      ROOT r = f32[4] fusion(z, a), kind=kLoop, calls=choose }"""
    assert _is_same(text)
    assert not _is_same(text.replace("abs(x)", "cosine(x)"))


def test_loops_and_integers_are_left_alone() -> None:
    loop = """HloModule loop
    choose { x = f32[4] parameter(0) none = f32[] constant(0) zero = f32[4] broadcast(none), dimensions={}
      p = pred[4] compare(x, zero), direction=GE ROOT y = f32[4] select(p, x, zero) }
    body { t = (s32[], f32[4]) parameter(0) n = s32[] get-tuple-element(t), index=0 one = s32[] constant(1)
      m = s32[] add(n, one) x = f32[4] get-tuple-element(t), index=1
      y = f32[4] call(x), to_apply=choose ROOT r = (s32[], f32[4]) tuple(m, y) }
    goes_on { t = (s32[], f32[4]) parameter(0) n = s32[] get-tuple-element(t), index=0
      three = s32[] constant(3) ROOT p = pred[] compare(n, three), direction=NE }
    ENTRY e { x = f32[4] parameter(0) n = s32[] constant(0) t = (s32[], f32[4]) tuple(n, x)
      w = (s32[], f32[4]) while(t), condition=goes_on, body=body
      ROOT r = f32[4] get-tuple-element(w), index=1 }"""
    assert at_ties(_mutant(loop)) == []
    integers = """HloModule integers
    ENTRY e { x = f32[4] parameter(0) n = s32[4] iota(), iota_dimension=0 two = s32[4] constant({2, 2, 2, 2})
      p = pred[4] compare(n, two), direction=GE ROOT r = f32[4] select(p, x, x) }"""
    assert at_ties(_mutant(integers)) == []


@pytest.mark.parametrize(
    ("body", "fate"),
    [
        (_LARGER + "| larger, y", Fate.EQUIVALENT),
        # Both are 0 times something where x is 0, and that is infinite, or NaN, to floats alone.
        ("l = f32[4] log(absx) s = f32[4] multiply(x, l) | s, zero", Fate.SURVIVED),
        ("q = f32[4] divide(y, x) s = f32[4] multiply(x, q) | s, zero", Fate.SURVIVED),
    ],
)
def test_what_divides_by_zero_is_not_the_same(body: str, fate: Fate) -> None:
    """No set has the tie, so that no run of the mutant shows it."""
    mutant = _mutant(_compared(body))
    reference = compile_program("right", "", mutant.right, "numpy")
    values = np.array([1, -2, 3, -4], np.float32), np.array([5, 6, -7, 8], np.float32)
    assert ties_of_reals(reference, mutant)
    assert Examiner(reference, [InputSet(PLAIN, values)]).fate(mutant).fate is fate
