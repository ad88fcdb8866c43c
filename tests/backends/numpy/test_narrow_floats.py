"""Conversions of narrow floats are those of ml_dtypes and NumPy, for every value there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import elementwise
from hlotool.backends.numpy.precision import F32, from_f32, narrow, to_f32
from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ElementType

NARROW = [DTYPES[kind] for kind in ElementType if kind in DTYPES and kind.is_narrow_float]
BYTES = [dtype for dtype in NARROW if dtype.itemsize == 1]
pytestmark = pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")


def patterns(dtype: Any) -> Any:
    """Every bit pattern of a type."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return np.arange(1 << (8 * dtype.itemsize), dtype=unsigned).view(dtype)


def assert_same(got: Any, expected: Any) -> None:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_value_widens_as_astype_does(dtype: Any) -> None:
    every = patterns(dtype)
    many = np.resize(every, max(every.size, 4096))
    for values in (every, many, many.reshape(64, -1).T, many[::3], many[0]):
        assert_same(to_f32(values), values.astype(np.float32))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_repeated_values_widen_once(dtype: Any) -> None:
    row = np.broadcast_to(np.ones(1, dtype), (3, 2000))
    wide = to_f32(row)
    assert wide.strides == (0, 0)
    assert_same(wide, row.astype(np.float32))
    rows = np.broadcast_to(patterns(dtype)[:200, None], (200, 30))
    assert_same(to_f32(rows), rows.astype(np.float32))


@pytest.mark.parametrize("dtype", BYTES, ids=str)
def test_what_shares_its_upper_bits_rounds_alike(dtype: Any) -> None:
    """Rounding never decreases, so the ends and the middle of each interval stand for all of it."""
    upper = np.left_shift(np.arange(1 << 16, dtype=np.uint32), 16)
    for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        values = (upper | np.uint32(lower)).view(F32)
        assert_same(from_f32(values, dtype), values.astype(dtype))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_arrays_of_any_kind_are_rounded(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for shape in ((), (3,), (0, 5), (40, 50), (2, 1000)):
        values = np.float32(rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape))
        assert_same(from_f32(np.asarray(values), dtype), np.asarray(values).astype(dtype))
        assert_same(
            from_f32(np.asarray(values, np.float64), dtype), np.asarray(values, np.float64).astype(dtype)
        )
    assert_same(from_f32(np.ones((2000, 2), F32)[:, 0], dtype), np.ones(2000, dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", BYTES, ids=str)
def test_every_f32_rounds_as_astype_does(dtype: Any) -> None:
    step = 1 << 22
    for start in range(0, 1 << 32, step):
        values = np.arange(start, start + step, dtype=np.int64).astype(np.uint32).view(F32)
        assert_same(from_f32(values, dtype), values.astype(dtype))


@pytest.mark.parametrize("kind", [kind for kind in ElementType if kind.is_narrow_float], ids=str)
def test_functions_of_many_numbers_are_looked_up(kind: ElementType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has what is computed for each number."""
    calls = []

    def function(x: Any) -> Any:
        calls.append(x.size)
        return np.exp(x)

    monkeypatch.setattr(elementwise, "_MANY", 1 << 12)
    kernel = elementwise.adapt(function, [kind], kind)
    every = patterns(DTYPES[kind])
    many = np.resize(every, (2, 1 << 16))
    expected = narrow(np.exp(to_f32(every)), kind)
    assert_same(kernel(many), np.resize(expected, many.shape))
    assert calls == [every.size]
    assert_same(kernel(many.T), np.resize(expected, many.shape).T)
    assert_same(kernel(many[0, :100]), np.resize(expected, 100))
