"""Derived tolerances: the table, the growth of sums, the scale of a leaf."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import Facts, Origin, Rounding, Sum
from hlotool.ir.types import ElementType
from hlotool.judge.tolerance import (
    EXACT,
    ULPS,
    WIDEST,
    ChosenTolerance,
    chosen_by_user,
    derive,
    leaf_scale,
)

DOT = Origin(7, "dot.1", "dot")


def test_every_float_type_has_a_row_with_a_reason() -> None:
    assert set(ULPS) == {t for t in ElementType if t.is_floating}
    assert all(row.reason and row.ulps >= 1 for row in ULPS.values())


@pytest.mark.parametrize("element_type", [ElementType.S32, ElementType.PRED, ElementType.U4])
def test_integers_are_exact(element_type: ElementType) -> None:
    assert derive(element_type, Facts(), 100.0) == EXACT
    assert ChosenTolerance(0.1, 0.1)(element_type) == EXACT


def test_long_sums_get_more() -> None:
    def rtol(terms: int) -> float:
        error = terms**0.5 * epsilon(ElementType.F32)
        return derive(ElementType.F32, Facts(sum=Sum(terms, error, DOT))).rtol

    assert derive(ElementType.F32).rtol < rtol(100) < rtol(10000) < 1e-3
    assert rtol(40000) - rtol(10000) == pytest.approx(rtol(90000) - rtol(40000))


def test_the_coarsest_type_upstream_decides() -> None:
    through_bf16 = Facts(rounding=Rounding(2.0**-7, ElementType.BF16, DOT))
    tolerance = derive(ElementType.F32, through_bf16, 1.0)
    assert tolerance.rtol == derive(ElementType.BF16).rtol
    assert "bf16" in tolerance.reason
    from_f32 = Facts(rounding=Rounding(2.0**-23, ElementType.F32, DOT))
    assert derive(ElementType.BF16, from_f32).rtol == derive(ElementType.BF16).rtol


def test_the_reason_names_the_sum() -> None:
    reason = derive(ElementType.F32, Facts(sum=Sum(784, 3e-6, DOT), transcendental=DOT)).reason
    assert reason == "128 ulp of f32 plus the error of 784 terms summed by dot %dot.1 (line 7)"


def test_nothing_is_accepted_that_would_pass_everything() -> None:
    assert derive(ElementType.F32, Facts(sum=Sum(1 << 40, 10.0, DOT))).rtol == WIDEST
    assert all(derive(t).rtol <= WIDEST for t in ULPS)


def test_user_tolerances() -> None:
    chosen = chosen_by_user(1e-3, None)
    assert chosen is not None
    tolerance = chosen(ElementType.F32)
    assert (tolerance.rtol, tolerance.atol) == (1e-3, 0.0)
    assert tolerance.reason == "set by the user"
    assert chosen_by_user(None, None) is None
    assert chosen_by_user(0.0, None) == ChosenTolerance()


def test_scale_of_normal_numbers_is_their_deviation() -> None:
    x = np.random.default_rng(0).normal(0, 7, (100, 100))
    assert leaf_scale(x, x) == pytest.approx(7, rel=0.05)


def test_scale_ignores_zeros_infinities_and_nans() -> None:
    x = np.array([0, 0, 0, 2, -2, np.nan, np.inf], np.float32)
    assert leaf_scale(x, x) == 2


def test_masked_values_do_not_hide_the_rest() -> None:
    x = np.random.default_rng(0).standard_normal(1000)
    x[::2] = -1e9
    assert leaf_scale(x, x) < 20
    x[::2] = -np.finfo(np.float64).max
    assert leaf_scale(x, x) < 20


@pytest.mark.parametrize("share", [0.2, 0.24, 0.26, 0.3, 0.9])
def test_scale_is_at_most_eight_times_the_lower_quartile(share: float) -> None:
    """As the docstring says, whether or not the quartile had to be found."""
    x = np.abs(np.random.default_rng(1).standard_normal(1000)) + 1
    x[: int(1000 * share)] *= 1e-3
    typical = np.sqrt(np.mean(x**2))
    assert leaf_scale(x, x) == pytest.approx(min(typical, 8 * np.quantile(x, 0.25)), rel=1e-12)


def test_a_fault_does_not_excuse_itself() -> None:
    x = np.ones(10)
    assert leaf_scale(x, x * 1e6) == leaf_scale(x * 1e6, x) == 1


def test_scale_of_empty_complex_and_large_leaves() -> None:
    assert leaf_scale(np.zeros(0), np.zeros(0)) == 0
    assert leaf_scale(np.array([3 + 4j]), np.array([3 + 4j])) == 5
    large = np.broadcast_to(np.float32(3), (1000, 1000, 1000))
    assert leaf_scale(large, large) == 3
