"""Legal spread, found without the judge, and the fixed tolerances of XLA's tools."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.verdicts.peers import BOUNDS, passes
from benchmarks.verdicts.truth import legal_spread
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

SUM = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[64] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }"""

FLOOR = """HloModule m
ENTRY e { x = f32[3] parameter(0)
  f = f32[3] floor(x)
  ROOT r = s32[3] convert(f) }"""


def program(text: str) -> Module:
    return parse_module(text)


def test_well_conditioned_sum() -> None:
    values = np.random.default_rng(0).uniform(1, 2, 64).astype(np.float32)
    (leaf,) = legal_spread(program(SUM), [values], [])
    assert leaf.limit is not None
    assert 0 < leaf.limit < 1e-3
    assert leaf.ratio(np.float32(leaf.reference) + np.float32(0.01)) > 10
    assert leaf.ratio(np.asarray(leaf.reference)) == 0


def test_cancelled_sum_is_not_well_conditioned() -> None:
    values = np.random.default_rng(0).normal(size=64).astype(np.float32) * np.float32(1e6)
    values[32:] = -values[:32]
    (leaf,) = legal_spread(program(SUM), [values], [])
    assert leaf.limit is None
    assert leaf.ratio(np.asarray(np.float32(1e9))) == 0


def test_integers_must_be_equal_unless_legal_executions_differ() -> None:
    (leaf,) = legal_spread(program(FLOOR), [np.float32([0.5, 1.5, 2.5])], [])
    assert leaf.ratio(np.int32([0, 1, 3])) == np.inf
    (tie,) = legal_spread(program(FLOOR), [np.float32([0.5, 1.5, 3.0])], [])
    assert tie.limit is None


def test_what_compilers_return_widens_the_spread() -> None:
    values = np.random.default_rng(0).uniform(1, 2, 64).astype(np.float32)
    (alone,) = legal_spread(program(SUM), [values], [])
    far = [np.asarray(alone.reference + np.float32(0.001))]
    (leaf,) = legal_spread(program(SUM), [values], [far])
    assert leaf.limit is not None
    assert alone.limit is not None
    assert leaf.limit > 10 * alone.limit


def test_new_nan_counts() -> None:
    (leaf,) = legal_spread(program(SUM), [np.ones(64, np.float32)], [])
    assert leaf.ratio(np.asarray(np.float32(np.nan))) == np.inf


@pytest.mark.parametrize(
    ("expected", "actual", "content"),
    [
        ([1.0], [1.0005], {"run_hlo_module", "hlo_isolation"}),
        ([1e-9], [5e-4], {"run_hlo_module", "hlo_isolation"}),
        ([1.0], [1.05], {"hlo_isolation"}),
        ([1.0], [1.2], set()),
        ([np.nan, np.inf], [np.nan, np.inf], {"run_hlo_module", "hlo_isolation"}),
        ([1.0], [np.nan], set()),
        ([np.inf], [-np.inf], set()),
    ],
)
def test_fixed_tolerances(expected: list[float], actual: list[float], content: set[str]) -> None:
    sides = [np.float32(expected)], [np.float32(actual)]
    assert {name for name, bounds in BOUNDS.items() if passes(*sides, bounds)} == content


def test_fixed_tolerances_want_equal_integers() -> None:
    assert not passes([np.int32([1000])], [np.int32([1001])], BOUNDS["hlo_isolation"])


def test_nearly_a_tie_is_not_well_conditioned() -> None:
    """Errors of ten units in the last place reach the next integer."""
    (leaf,) = legal_spread(program(FLOOR), [np.float32([0.5, 1.5, 3 - 2.0**-20])], [])
    assert leaf.limit is None
