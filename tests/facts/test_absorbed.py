"""Constants that vanish beside another one of the same sum, as XLA folds them."""

from __future__ import annotations

import pytest

from hlotool.facts.absorbed import absorbed_constants
from hlotool.parser.reader import parse_module
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import compare_modules

#: (1 - x)[1:] + 1e-10: what keeps a product of transmittances from being 0.
SUM = """HloModule m
ENTRY e {
  x = f32[6] parameter(0)
  one = f32[] constant(1)
  ones = f32[6] broadcast(one), dimensions={}
  s = f32[6] subtract(ones, x)
  cut = f32[5] slice(s), slice={[1:6]}
  eps = f32[] constant(1e-10)
  epses = f32[5] broadcast(eps), dimensions={}
  ROOT r = f32[5] add(cut, epses)
}"""
#: As XLA leaves it.
FOLDED = """HloModule m
ENTRY e {
  x = f32[6] parameter(0)
  one = f32[] constant(1)
  ones = f32[5] broadcast(one), dimensions={}
  cut = f32[5] slice(x), slice={[1:6]}
  ROOT r = f32[5] subtract(ones, cut)
}"""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", {1e-10}),
        ("1e-10", "5.9e-8", {5.9e-8}),
        # Half a unit in the last place of 1 is 5.96e-8.
        ("1e-10", "6.1e-8", set()),
        ("constant(1)", "constant(0.001)", set()),
        # Beside x, of which any may be 0, it stays.
        ("subtract(ones, x)", "multiply(ones, x)", set()),
        ("add(cut, epses)", "multiply(cut, epses)", set()),
        # It is read elsewhere, too.
        (
            "ROOT r = f32[5] add(cut, epses)",
            "a = f32[5] add(cut, epses) ROOT r = f32[5] divide(a, epses)",
            set(),
        ),
        ("f32", "bf16", {1e-10}),
    ],
)
def test_what_vanishes(old: str, new: str, found: set[float]) -> None:
    module = parse_module(SUM.replace(old, new))
    assert sorted(absorbed_constants(module)) == pytest.approx(sorted(found), rel=0.01)


def test_a_folded_sum_is_the_same_function() -> None:
    found = compare_modules(parse_module(SUM), parse_module(FOLDED))
    assert (found.relation, found.laws) == (Relation.EQUAL, ["1e-10 is 0"])


def test_a_lost_term_is_none() -> None:
    lost = parse_module(FOLDED.replace("subtract(ones, cut)", "negate(cut)"))
    assert compare_modules(parse_module(SUM), lost).relation is Relation.UNEQUAL
    kept = SUM.replace("subtract(ones, x)", "multiply(ones, x)")
    without = kept.replace("ROOT r = f32[5] add(cut, epses)", "ROOT r = f32[5] copy(cut)")
    assert compare_modules(parse_module(kept), parse_module(without)).relation is Relation.UNEQUAL
