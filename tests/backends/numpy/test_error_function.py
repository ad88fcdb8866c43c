"""The error function of f32 against SciPy's of f64."""

from __future__ import annotations

import numpy as np
from scipy import special

from hlotool.backends.numpy.floats import erf


def test_all_magnitudes_within_a_unit_in_the_last_place() -> None:
    positive = np.arange(0, 0x7F800001, 4999, dtype=np.uint32).view(np.float32)
    x = np.concatenate([positive, -positive])
    exact = special.erf(x.astype(np.float64))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    error = np.abs(erf(x).astype(np.float64) - exact) / unit
    assert error.max() < 0.54
    assert np.mean(erf(x) != exact.astype(np.float32)) < 0.02


def test_particular_values() -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 4, -4, 1e-45], np.float32)
    result = erf(x)
    np.testing.assert_array_equal(result, np.array([0, 0, 1, -1, np.nan, 1, -1, 1e-45], np.float32))
    assert np.signbit(result[1])


def test_shapes_and_scalars() -> None:
    x = np.linspace(-3, 3, 30000, dtype=np.float32).reshape(100, 300)
    np.testing.assert_array_equal(erf(x.T), erf(x.T.copy()))
    assert erf(x.T).shape == (300, 100)
    scalar = erf(np.float32(0.5))  # type: ignore[arg-type]
    assert scalar.dtype == np.float32
    assert abs(float(scalar) - float(special.erf(0.5))) < 6e-8
    assert erf(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_f64_is_scipys() -> None:
    x = np.linspace(-3, 3, 11)
    np.testing.assert_array_equal(erf(x), special.erf(x))
