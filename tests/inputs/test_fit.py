"""Arrays fit declared shapes exactly or not at all."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.errors import InputDataError
from hlotool.inputs.given import fit
from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ArrayShape, ElementType


def _fit(value: Any, element_type: str, *dims: int) -> Any:
    return fit(value, ArrayShape(ElementType(element_type), dims), "x")


@pytest.mark.parametrize("element_type", ElementType, ids=str)
def test_arrays_of_the_declared_dtype_pass_unchanged(element_type: ElementType) -> None:
    array = np.array([0, 1, 1]).astype(dtype_of(element_type))
    assert fit(array, ArrayShape(element_type, (3,)), "x") is array


@pytest.mark.parametrize("element_type", ["bf16", "f8e4m3fn", "f8e5m2", "f4e2m1fn", "s4", "u4", "u2"])
def test_untyped_bytes_are_reinterpreted(element_type: str) -> None:
    """What `np.load` makes of ml_dtypes arrays."""
    array = np.array([0, 1, 1]).astype(dtype_of(ElementType(element_type)))
    raw = array.view(f"V{array.itemsize}")
    np.testing.assert_array_equal(_fit(raw, element_type, 3), array)
    np.testing.assert_array_equal(_fit(raw.reshape(3, 1), element_type, 3, 1), array.reshape(3, 1))


def test_unsigned_bits_of_narrow_floats_are_reinterpreted() -> None:
    assert _fit(np.array([0x3F80], np.uint16), "bf16", 1)[0] == 1
    assert _fit(np.array([0x38], np.uint8), "f8e4m3fn", 1)[0] == 1
    assert _fit(np.array([7], np.uint16), "f16", 1)[0] == 7


@pytest.mark.parametrize(
    ("value", "element_type"),
    [
        (np.array([1.5, np.nan, np.inf]), "f32"),
        (np.array([1.5, -2.0, 0.0]), "bf16"),
        (np.array([1.5, 2.0, 3.0], np.float16), "f64"),
        (np.array([1, 2, -3]), "s8"),
        (np.array([1, 2, 3]), "u4"),
        (np.array([1, 2, 3]), "f16"),
        (np.array([0, 1, 1]), "pred"),
        (np.array([True, False, True]), "s32"),
        (np.array([1.0, 2.0, 3.0]), "c64"),
    ],
)
def test_exact_conversions(value: Any, element_type: str) -> None:
    array = _fit(value, element_type, 3)
    assert array.dtype == dtype_of(ElementType(element_type))
    np.testing.assert_array_equal(array, value)


@pytest.mark.parametrize(
    ("value", "element_type", "message"),
    [
        (
            np.array([1.0, 0.1]),
            "f32",
            r"x: 1 of 2 values of type f64 are not exact in f32 \(first: 0.1 at \[1\]\)",
        ),
        (np.array([1e39, 1.0]), "f32", "1 of 2"),
        (np.array([300, 1]), "u8", "1 of 2"),
        (np.array([-1, 1]), "u64", "1 of 2"),
        (np.array([-1, 1], np.int32), "u32", "1 of 2"),
        (np.array([2**63, 1], np.uint64), "s64", "1 of 2"),
        (np.array([2**53 + 1, 1]), "f64", "1 of 2"),
        (np.array([2, 1]), "pred", "1 of 2"),
        (np.array([1.0, 2.0]), "s32", "expected s32, got f64; convert it yourself"),
        (np.array([1j, 2]), "f32", "expected f32, got c128"),
        (np.array(["a", "b"]), "f32", "expected f32, got dtype <U1"),
        (np.array([None, 1]), "f32", "got dtype object"),
        (np.array([1.0]), "f32", r"x: expected f32\[2\], got dimensions \[1\]"),
        (np.array(1.0), "f32", r"got dimensions \[\]"),
    ],
)
def test_misfits(value: Any, element_type: str, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        _fit(value, element_type, 2)


def test_python_numbers_are_rounded() -> None:
    assert _fit(0.1, "f32") == np.float32(0.1)
    np.testing.assert_array_equal(_fit([0.1, 3], "bf16", 2), np.array([0.1, 3], ml_dtypes.bfloat16))
    assert _fit(True, "pred")
    with pytest.raises(InputDataError):
        _fit(1.0, "s32")
    with pytest.raises(InputDataError):
        _fit(300, "u8")
    with pytest.raises(InputDataError, match="not exact"):
        _fit(np.float64(0.1), "f32")


def test_dynamic_dimensions_take_smaller_arrays() -> None:
    bounded = ArrayShape(ElementType.F32, (4, 2), (True, False))
    unbounded = ArrayShape(ElementType.F32, (-1,), (True,))
    assert fit(np.ones((3, 2), np.float32), bounded, "x").shape == (3, 2)
    assert fit(np.ones(9, np.float32), unbounded, "x").shape == (9,)
    with pytest.raises(InputDataError, match=r"expected f32\[<=4,2\], got dimensions \[5,2\]"):
        fit(np.ones((5, 2), np.float32), bounded, "x")


@given(st.lists(st.floats(width=16), min_size=1), st.sampled_from(["f32", "f64", "c64"]))
def test_what_is_accepted_is_unchanged(values: list[float], element_type: str) -> None:
    array = np.array(values, np.float64)
    np.testing.assert_array_equal(_fit(array, element_type, len(values)), array)
