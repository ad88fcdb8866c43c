"""f64 as pairs of f32, value by value: what a pair holds, and what becomes of the rest."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.numpy.executions.pairs import Pairs, PairsBackend
from hlotool.parser.reader import parse_module

#: Beyond the range of f32; of too few digits; of too few, and denormal; between two numbers of 48 bits.
VALUES = np.array([1e300, 1e-36 * (1 + 2.0**-40), 1e-42 * (1 + 2.0**-20), 1 + 2.0**-52 + 2.0**-30])


def run(text: str, pairs: Pairs, *arguments: object) -> np.ndarray:
    return np.asarray(PairsBackend(pairs).compile(parse_module(text)).run(arguments))


def test_what_a_pair_holds() -> None:
    held = Pairs()(VALUES)
    assert held[0] == np.inf
    assert 0 < abs(held[1] / VALUES[1] - 1) < 2**-24
    assert 0 < abs(held[2] / VALUES[2] - 1) < 2**-6
    assert held[3] == 1 + 2.0**-30 + 2.0**-52
    np.testing.assert_array_equal(Pairs()(held), held)
    flushed = Pairs(flushes=True)(VALUES)
    assert list(flushed[:3]) == [np.inf, float(np.float32(VALUES[1])), 0]
    assert Pairs()(np.ones(2, np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("opcode", "x", "plain", "unknown"),
    [
        ("exponential", 100.0, np.inf, np.nan),  # beyond f32
        ("exponential", 1000.0, np.inf, np.nan),  # beyond f64, too
        ("exponential", np.inf, np.inf, np.inf),  # no overflow
        ("log", 0.0, -np.inf, -np.inf),  # nor is a pole
        ("negate", 3.0, -3.0, -3.0),
    ],
)
def test_what_overflows_may_be_unknown(opcode: str, x: float, plain: float, unknown: float) -> None:
    text = f"ENTRY e {{ x = f64[1] parameter(0) ROOT y = f64[1] {opcode}(x) }}"
    for overflow, expected in ((np.inf, plain), (np.nan, unknown)):
        np.testing.assert_array_equal(run(text, Pairs(overflow=overflow), np.array([x])), [expected])


def test_constants_and_what_loops_read_are_pairs() -> None:
    text = """
body { t = (f64[], s32[]) parameter(0)
  x = f64[] get-tuple-element(t), index=0  n = s32[] get-tuple-element(t), index=1  c = f64[] constant(1e-200)
  y = f64[] multiply(x, c)  one = s32[] constant(1)  m = s32[] add(n, one)
  ROOT r = (f64[], s32[]) tuple(y, m) }
more { t = (f64[], s32[]) parameter(0)  n = s32[] get-tuple-element(t), index=1  k = s32[] constant(1)
  ROOT b = pred[] compare(n, k), direction=LT }
ENTRY e { x = f64[] parameter(0)  z = s32[] constant(0)  t = (f64[], s32[]) tuple(x, z)
  w = (f64[], s32[]) while(t), condition=more, body=body  ROOT y = f64[] get-tuple-element(w), index=0 }"""
    assert np.isnan(run(text, Pairs(), np.float64(1e200)))
    assert run(text, Pairs(), np.float64(1e30)) == 0
