"""Values as records."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.ir.arrays import element_type_of
from hlotool.ir.types import TOKEN, ArrayShape, ElementType, TupleShape
from hlotool.runs.leaves import output_records, scalar_text
from hlotool.runs.records import OutputRecord


def summary(array: Any) -> OutputRecord:
    array = np.asarray(array)
    element_type = element_type_of(array.dtype)
    assert element_type is not None
    [record] = output_records(ArrayShape(element_type, array.shape), array)
    return record


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (float(np.float32(0.1)), "0.100000001"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (-0.0, "-0"),
        (1 - 2j, "1-2j"),
    ],
)
def test_scalars(value: complex, text: str) -> None:
    assert scalar_text(value) == text


def test_statistics_are_those_of_the_finite_values() -> None:
    record = summary(np.float32([1, np.nan, 3, np.inf, -np.inf, np.nan]))
    assert (record.minimum, record.mean, record.maximum) == (1, 2, 3)
    assert (record.nan, record.inf, record.total) == (2, 2, 6)
    assert record.first == ["1", "nan", "3", "inf", "-inf"]


def test_no_finite_value() -> None:
    record = summary(np.float32([np.nan]))
    assert (record.minimum, record.mean, record.maximum, record.nan) == (None, None, None, 1)


def test_a_mean_that_overflows() -> None:
    record = summary(np.full(3, 1.5e308))
    assert (record.minimum, record.mean) == (1.5e308, None)


@pytest.mark.parametrize(
    ("array", "first"),
    [
        (np.array([True, False]), ["true", "false"]),
        (np.array([1 + 2j], np.complex64), ["1+2j"]),
        (np.zeros((0, 3), np.float32), []),
    ],
)
def test_what_has_no_statistics(array: Any, first: list[str]) -> None:
    record = summary(array)
    assert record.first == first
    assert (record.minimum, record.mean, record.maximum) == (None, None, None)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.uint64])
def test_types_of_every_kind(dtype: Any) -> None:
    record = summary(np.arange(6).astype(dtype).reshape(2, 3))
    assert (record.minimum, record.maximum, record.mean) == (0, 5, 2.5)
    assert record.first == ["0", "1", "2", "3", "4"]


def test_tokens_hold_nothing() -> None:
    array = ArrayShape(ElementType.S32, (2,))
    shape = TupleShape((TOKEN, TupleShape((array,))))
    [record] = output_records(shape, (None, (np.int32([4, 5]),)))
    assert (record.index, record.shape, record.first) == ([1, 0], "s32[2]", ["4", "5"])
