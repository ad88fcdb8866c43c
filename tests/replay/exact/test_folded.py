"""Functions of constants, as another compiler folds them."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.replay.exact import Relation
from hlotool.replay.exact.task import compare_modules

REFERENCE = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  c = f32[] constant(1003.7)
  d = f32[] constant(6.91)
  l = f32[] log(c)
  s = f32[] subtract(l, d)
  b = f32[4] broadcast(s), dimensions={}
  ROOT r = f32[4] multiply(x, b)
}"""
FOLDED = """HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  s = f32[] constant({})
  b = f32[4] broadcast(s), dimensions={{}}
  ROOT r = f32[4] multiply(x, b)
}}"""

#: log(1003.7) in f32; 6.91 cancels all but 0.0014486 of it.
LOG = np.log(np.float32(1003.7))


@pytest.mark.parametrize(
    ("ulps", "relation"),
    [(-1, Relation.EQUAL), (0, Relation.EQUAL), (1, Relation.EQUAL), (8, Relation.UNEQUAL)],
)
def test_what_cancels_leaves_the_roundings(ulps: int, relation: Relation) -> None:
    """A library whose log is an ulp off folds 0.0014481 or 0.0014491, thousands of ulps away."""
    value = (LOG + np.float32(ulps) * np.spacing(LOG)) - np.float32(6.91)
    tested = FOLDED.format(repr(float(value)))
    assert compare_modules(hlotool.parse(REFERENCE), hlotool.parse(tested)).relation is relation


def test_a_constant_that_is_written_has_no_such_freedom() -> None:
    written, other = (FOLDED.format(value) for value in ("0.00144863129", "0.00144910812"))
    assert compare_modules(hlotool.parse(written), hlotool.parse(other)).relation is Relation.UNEQUAL
