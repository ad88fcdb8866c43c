"""How much values tell."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hlotool.judge.locate.likeness import is_uniform, significant_bits


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        # Significands from the definition of IEEE 754: 0xcccccd, and 0x99999a without its last zero.
        (np.float32([0.1, 0.3]), 24 + 23),
        (np.float32([0.1, -0.1, 0.1]), 24),
        (np.int32([3, 5, 8]), 2 + 3 + 1),
        (np.array([1.1015625], ml_dtypes.bfloat16), 8),
        (np.complex64([0.5 + 3j]), 1 + 2),
        (np.float32([np.nan, np.inf, 0]), 0),
        (np.zeros((0, 3), np.float32), 0),
    ],
)
def test_significant_bits_of_different_elements_are_counted(value: np.ndarray, bits: int) -> None:
    assert significant_bits(value) == bits


def test_what_is_empty_unknown_or_the_same_everywhere_tells_nothing() -> None:
    assert all(map(is_uniform, (None, np.zeros((0, 3), np.float32), np.full(9, 2.5), np.float32(0.1))))
    assert not is_uniform(np.arange(9))
