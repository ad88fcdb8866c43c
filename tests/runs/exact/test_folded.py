"""Functions of constants, as another compiler folds them."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import compare_modules

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


WEIGHTS = np.random.default_rng(0).integers(-127, 128, (9, 8))
SCALES = (np.random.default_rng(1).random(8) / 32).astype(np.float32)

OF_TABLES = f"""HloModule m
ENTRY e {{
  x = f32[4,9] parameter(0)
  w = s8[9,8] constant({{{", ".join("{" + ", ".join(map(str, row)) + "}" for row in WEIGHTS.tolist())}}})
  f = f32[9,8] convert(w)
  s = f32[8] constant({{{", ".join(map(repr, SCALES.tolist()))}}})
  b = f32[9,8] broadcast(s), dimensions={{1}}
  t = f32[9,8] multiply(f, b)
  ROOT r = f32[4,8] dot(x, t), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


def folded_table(table: np.ndarray) -> str:
    rows = ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in table.tolist())
    return f"""HloModule m
ENTRY e {{
  x = f32[4,9] parameter(0)
  t = f32[9,8] constant({{{rows}}})
  ROOT r = f32[4,8] dot(x, t), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


@pytest.mark.parametrize(
    ("ulps", "relation"), [(0, Relation.EQUAL), (1, Relation.EQUAL), (64, Relation.UNEQUAL)]
)
def test_a_table_is_read_as_what_the_reference_computes_of_tables(ulps: int, relation: Relation) -> None:
    """int8 weights times their scales, folded: 72 numbers, of which each alone may be anything."""
    table = WEIGHTS.astype(np.float32) * SCALES
    table[3, 4] += np.float32(ulps) * np.spacing(table[3, 4])
    found = compare_modules(hlotool.parse(OF_TABLES), hlotool.parse(folded_table(table)))
    assert found.relation is relation
