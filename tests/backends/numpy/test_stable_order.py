"""Stable orders by digits and by positions are those of NumPy's stable comparison sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hlotool.backends.numpy import ordering as module
from hlotool.backends.numpy.ordering import first_in_order, stable_order, take_along_last

DTYPES = ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def numbers(dtype: str, shape: tuple[int, ...], seed: int, distinct: int = 0) -> Any:
    """Over the whole range of the type, or so few different ones that many are equal."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    few = (distinct,) if distinct else shape
    values = rng.integers(limits.min, limits.max, few, dtype, endpoint=True)
    return rng.choice(values, shape) if distinct else values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (5,), (3000,), (4, 300), (300, 4), (2, 3, 257), (5, 0), (0, 5)])
@pytest.mark.parametrize("distinct", [0, 3])
def test_one_number(dtype: str, shape: tuple[int, ...], distinct: int) -> None:
    values = numbers(dtype, shape, 0, distinct)
    expected = np.argsort(values, axis=-1, kind="stable")
    assert np.array_equal(stable_order([values]), expected)
    assert np.array_equal(take_along_last(values, expected), np.sort(values, axis=-1))
    for count in (1, 2, shape[-1]):
        assert np.array_equal(first_in_order(values, count), expected[..., :count])


@pytest.mark.parametrize("shape", [(5,), (3000,), (4, 300), (300, 4)])
@pytest.mark.parametrize("dtypes", [("i1", "i4"), ("u4", "u8", "bool"), ("i8", "i8")])
def test_several_numbers(shape: tuple[int, ...], dtypes: tuple[str, ...]) -> None:
    values = [numbers(dtype, shape, seed, distinct=4) for seed, dtype in enumerate(dtypes)]
    rows = [np.lexsort([v[row] for v in reversed(values)]) for row in np.ndindex(shape[:-1])]
    assert np.array_equal(stable_order(values).reshape(-1, shape[-1]), np.stack(rows))


@pytest.mark.parametrize("order", ["C", "F"])
def test_take_along_last(order: Any) -> None:
    values = np.array(np.random.default_rng(0).normal(size=(3, 4, 5)), order=order)
    chosen = np.random.default_rng(1).integers(0, 5, (3, 4, 2))
    assert np.array_equal(take_along_last(values, chosen), np.take_along_axis(values, chosen, axis=-1))


@given(
    arrays.arrays(st.sampled_from(["i4", "u4", "i8"]), st.tuples(st.integers(1, 3), st.integers(1, 12))),
    st.sampled_from([0, 4, 100]),
)
def test_any_length_by_digits_or_positions(values: Any, short: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SHORT", short)
        assert np.array_equal(stable_order([values]), np.argsort(values, axis=-1, kind="stable"))


def test_nothing_to_sort_by() -> None:
    with pytest.raises(ValueError, match="no numbers"):
        stable_order([])
