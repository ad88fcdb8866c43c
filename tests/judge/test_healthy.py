"""Legal executions of one program agree; small faults do not. Simulated in other orders and types."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import Facts, Origin, Rounding, Sum
from hlotool.ir.arrays import Array, element_type_of
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.judge.comparison import Comparison, compare_values
from hlotool.judge.verdicts import Verdict

DOT = Origin(1, "d", "dot")


def _facts(
    terms: int, accumulator: ElementType = ElementType.F32, through: ElementType | None = None
) -> Facts:
    rounding = None if through is None else Rounding(epsilon(through), through, DOT)
    return Facts(sum=Sum(terms, terms**0.5 * epsilon(accumulator), DOT), rounding=rounding)


def _compare(expected: Array, actual: Array, facts: Facts) -> Comparison:
    element_type = element_type_of(expected.dtype)
    assert element_type is not None
    return compare_values(ArrayShape(element_type, expected.shape), expected, actual, facts=[facts])


def _rng() -> np.random.Generator:
    return np.random.default_rng(11)


def _sequential(x: Array) -> Array:
    """Sum along the last axis, one after the other, rounding every step."""
    return np.asarray(np.cumsum(x, axis=-1, dtype=x.dtype)[..., -1])


def _blocked(x: Array) -> Array:
    """Sum in eight interleaved lanes, as vector units do."""
    padded = np.concatenate([x, np.zeros((*x.shape[:-1], -x.shape[-1] % 8), x.dtype)], axis=-1)
    lanes = padded.reshape(*x.shape[:-1], -1, 8)
    return _sequential(np.asarray(np.cumsum(lanes, axis=-2, dtype=x.dtype)[..., -1, :]))


@pytest.mark.parametrize("terms", [10, 784, 5000])
@pytest.mark.parametrize("order", [_sequential, _blocked])
def test_sums_in_another_order_agree(terms: int, order: Callable[[Array], Array]) -> None:
    """Sums of random signs: many of them are small by cancellation."""
    x = _rng().standard_normal((400, terms)).astype(np.float32)
    exact = x.astype(np.float64).sum(-1).astype(np.float32)
    assert _compare(exact, order(x), _facts(terms)).verdict is Verdict.AGREE


@pytest.mark.parametrize("terms", [100, 4096])
def test_matrix_products_in_another_order_agree_and_a_lost_term_does_not(terms: int) -> None:
    rng = _rng()
    x, w = (
        rng.standard_normal((40, terms)).astype(np.float32),
        rng.standard_normal((terms, 50)).astype(np.float32),
    )
    product = x @ w
    order = rng.permutation(terms)
    other = (x[:, order] * np.float32(0.5)) @ (w[order] * np.float32(2))
    assert _compare(product, other, _facts(terms)).verdict is Verdict.AGREE
    assert _compare(product, x[:, 1:] @ w[1:], _facts(terms)).verdict is Verdict.WRONG


def test_one_element_off_by_a_percent_differs_wherever_it_is() -> None:
    rng = _rng()
    x, w = (
        rng.standard_normal((30, 784)).astype(np.float32),
        rng.standard_normal((784, 30)).astype(np.float32),
    )
    product = x @ w
    typical = np.abs(product) > np.abs(product).mean() / 100
    for index in np.argwhere(typical)[::7]:
        faulty = product.copy()
        faulty[tuple(index)] *= np.float32(1.01)
        comparison = _compare(product, faulty, _facts(784))
        assert comparison.verdict is Verdict.WRONG
        metrics = comparison.leaves[0].metrics
        assert metrics is not None
        assert metrics.mismatched == 1
        assert metrics.top[0].index == tuple(index)


def test_a_dropped_row_differs_even_beside_masked_logits() -> None:
    logits = _rng().standard_normal((64, 64)).astype(np.float32)
    logits[np.triu_indices(64, 1)] = -1e9
    faulty = logits.copy()
    faulty[10, :5] = 0
    assert _compare(logits, faulty, _facts(64)).verdict is Verdict.WRONG


def test_bf16_products_that_keep_f32_agree_with_those_that_round() -> None:
    rng = _rng()
    x = rng.standard_normal((30, 256)).astype(ml_dtypes.bfloat16)
    w = rng.standard_normal((256, 30)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal(30).astype(ml_dtypes.bfloat16)
    product = x.astype(np.float32) @ w.astype(np.float32)
    kept = (product + b.astype(np.float32)).astype(ml_dtypes.bfloat16)
    rounded = product.astype(ml_dtypes.bfloat16) + b
    facts = _facts(256, through=ElementType.BF16)
    assert _compare(rounded, kept, facts).verdict is Verdict.AGREE
    faulty = kept.copy()
    faulty[3] = kept[4]
    assert _compare(rounded, faulty, facts).verdict is Verdict.WRONG


def test_denormals_that_one_side_flushes_agree() -> None:
    x = np.float32(1e-20) * _rng().uniform(1, 2, 100).astype(np.float32)
    product = x * x
    assert 0 < product.max() < 2.0**-126
    assert _compare(product, np.zeros_like(product), _facts(1)).verdict is Verdict.AGREE


def test_softmax_in_two_forms_agrees() -> None:
    x = 10 * _rng().standard_normal((50, 100)).astype(np.float32)
    shifted = np.exp(x - x.max(-1, keepdims=True))
    one = shifted / _sequential(shifted)[:, None]
    exponent = x.astype(np.float64)
    other = np.exp(exponent) / np.exp(exponent).sum(-1, keepdims=True)
    facts = Facts(sum=_facts(100).sum, transcendental=Origin(2, "e", "exponential"))
    assert _compare(one, other.astype(np.float32), facts).verdict is Verdict.AGREE
