"""What is said of a result: the same, allowed by name, or wrong."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.backends.base import TOKEN
from hlotool.lab.conformance import judging
from hlotool.lab.conformance.generators.cases import Case
from hlotool.lab.conformance.judging import Judged, judged, reference_leaves
from hlotool.lab.conformance.trials import Trial, trials


def trial(text: str, arguments: list[Any], opcode: str) -> Trial:
    """A random trial made by hand: the reference says what it gives."""
    from hlotool.parser.reader import parse_module

    return Trial("by hand", Case(0, opcode, parse_module(text), arguments), "by hand")


def said_of(of: Trial, *leaves: Any) -> Judged:
    return judged(of, [list(leaves)])


SUM = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64] parameter(0)  i = f32[] parameter(1)
  ROOT r = f32[] reduce(x, i), dimensions={0}, to_apply=add
}
"""


def test_what_is_expected_passes() -> None:
    for found in trials("add", frozenset(), 2, 0):
        assert judged(found, reference_leaves(found)) == Judged()


def test_ulps_are_counted() -> None:
    x = np.float32([0.5, 1, 2])
    exponential = trial("r = f32[3] exponential(f32[3])", [x], "exponential")
    exact = np.exp(x)
    assert said_of(exponential, np.nextafter(exact, np.float32(9))) == Judged({judging.ROUNDING}, 1)
    assert said_of(exponential, exact * np.float32(1.001)).wrong


def test_no_ulps_for_what_is_exact() -> None:
    added = trial("r = f32[1] add(f32[1], f32[1])", [np.float32([1]), np.float32([2])], "add")
    found = said_of(added, np.float32([3.001]))
    assert found.wrong
    assert "instead of 3.0 at [0]" in found.wrong[0]
    assert not found.freedoms


def test_sums_in_another_order() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(64).astype(np.float32)
    summed = trial(SUM, [x, np.float32(0)], "reduce")
    backwards = np.float32(0)
    for value in x[::-1]:
        backwards += value
    assert not said_of(summed, backwards).wrong
    assert said_of(summed, backwards + x[3]).wrong


def test_what_the_tables_leave_goes_to_the_judge() -> None:
    """A sum in bf16 on the way has no entry in the tables; the ensemble of legal executions decides."""
    text = """ENTRY e {
  x = f32[32] parameter(0)  y = f32[32] parameter(1)
  p = f32[32] multiply(x, y)  ROOT r = f32[32] subtract(p, x)
}"""
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(32).astype(np.float32) for _ in range(2))
    fused = (x.astype(np.float64) * y - x).astype(np.float32)
    of = trial(text, [x, y], "subtract")
    assert (fused != reference_leaves(of)[0][0]).any()
    found = said_of(of, fused)
    assert (found.freedoms, found.wrong) == ({judging.LEGAL_EXECUTION}, [])
    assert said_of(of, fused + np.float32(0.01)).wrong


def test_nan_of_other_bits() -> None:
    of = trial("r = f32[1] sqrt(f32[1])", [np.float32([-1])], "sqrt")
    other = np.uint32([0x7FC00001]).view(np.float32)
    assert said_of(of, other) == Judged({judging.NAN_PAYLOAD})


def test_bits_that_are_asked_for_are_not_free() -> None:
    found = next(t for t in trials("bitcast-convert", frozenset(), 0, 0) if t.tolerance.bits)
    (expected,) = reference_leaves(found)[0]
    other = np.asarray(expected).copy()
    other.view(np.uint8).reshape(-1)[0] ^= 1
    assert said_of(found, other).wrong


@pytest.mark.parametrize("given", [np.float32([1, 2]), np.float64([1])])
def test_another_structure(given: Any) -> None:
    of = trial("r = f32[1] negate(f32[1])", [np.float32([-1])], "negate")
    assert "and not f32[1]" in said_of(of, given).wrong[0]


def test_a_departure_of_xla_by_its_predicate() -> None:
    of = trial("r = s32[1] power(s32[1], s32[1])", [np.int32([3]), np.int32([64])], "power")
    assert said_of(of, np.int32([1])) == Judged({"integer-power-six-bits"})


def test_a_departure_of_xla_by_its_value() -> None:
    """Where no predicate says which elements it is about, what XLA gives is allowed, and nothing else."""
    (found,) = [t for t in trials("multiply", frozenset(), 0, 0) if t.rule == "s4-not-wrapped"]
    assert found.spec is not None
    departing = found.spec.departing(found.module)
    assert departing is not None
    assert said_of(found, *departing) == Judged({"s4-not-wrapped"})
    assert said_of(found, np.asarray(departing[0]) + 1).wrong


def test_tokens_are_passed_over() -> None:
    text = (
        "ENTRY e { x = f32[1] parameter(0) t = token[] after-all() ROOT r = (f32[1], token[]) tuple(x, t) }"
    )
    of = trial(text, [np.float32([1])], "after-all")
    assert reference_leaves(of)[0][1] is TOKEN
    assert said_of(of, np.float32([1]), None) == Judged()


def test_devices_are_judged_one_by_one() -> None:
    found = next(t for t in trials("all-reduce", frozenset(), 0, 0) if len(t.grid) == 2 and not t.rule)
    rows = [[np.asarray(leaf) for leaf in row] for row in reference_leaves(found)]
    assert judged(found, rows) == Judged()
    rows[1][0] = rows[1][0] + np.ones((), rows[1][0].dtype)
    assert judged(found, rows).wrong[0].startswith("device 1, leaf 0: ")


PRODUCT = """
ENTRY e {
  x = f32[8,16] parameter(0)  y = f32[16,8] parameter(1)
  ROOT r = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_a_tpu_multiplies_bf16() -> None:
    """No other target does, and a TPU does nothing else to a product."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(dims).astype(np.float32) for dims in ((8, 16), (16, 8)))
    product = trial(PRODUCT, [x, y], "dot")
    rounded = [v.astype(ml_dtypes.bfloat16).astype(np.float32) for v in (x, y)]
    result = rounded[0] @ rounded[1]
    assert not judged(product, [[result]], "tpu").wrong
    assert judged(product, [[result]]).wrong
    assert judged(product, [[result * np.float32(1.1)]], "tpu").wrong


def test_a_tpu_has_the_range_of_f32_in_f64() -> None:
    added = trial("r = f64[3] add(f64[3], f64[3])", [np.array([1.0, 3e38, 1e300])] * 2, "add")
    result = np.array([2.0, np.inf, np.inf])
    assert judged(added, [[result]], "tpu").freedoms == {"f64-of-two-f32"}
    assert "pair of f32" in judging.meaning("f64-of-two-f32")
    assert judged(added, [[result]]).wrong
    assert judged(added, [[np.array([2.5, np.inf, np.inf])]], "tpu").wrong
