"""Legal executions of a factorisation: the exact one of a matrix that is a little off.

Algorithms for QR, LU and eigenvalues are backward stable: blocked or not, by reflections or by rotations,
what they return belongs to a matrix close to the one given, measured by its columns or as a whole, and not to
a result close to the true one: where columns nearly depend on one another, results differ in the first digit.
Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, 9.3 and 19.3.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.noise import Noise
from hlotool.ir.dtypes import Array


class Stability(enum.Enum):
    """What the error of a factorised matrix is measured by: the largest magnitude of these elements."""

    #: Each column (QR, LU).
    COLUMNS = "columns"
    #: The whole matrix (eigenvalues).
    MATRIX = "matrix"


@dataclass(frozen=True, slots=True)
class PerturbMatrices:
    """Random errors of matrices in the last two dimensions.

    Attributes:
        noise: which execution it is.
        relative: largest error, relative to what `stability` says.
        stability: likewise.
    """

    noise: Noise
    relative: float
    stability: Stability

    def __call__(self, value: Any) -> Any:
        if self.noise.member.seed is None or not value.size or value.ndim < 2:
            return value
        parts = [self._off(value.real), self._off(value.imag)] if np.iscomplexobj(value) else []
        off = parts[0] + 1j * parts[1] if parts else self._off(value)
        # Where a column has one element nothing is added up, and rows only change places.
        is_single = np.count_nonzero(value, axis=-2, keepdims=True).max(axis=-1, keepdims=True) <= 1
        return np.where(is_single, value, value + off).astype(value.dtype)

    def _off(self, value: Array) -> Array:
        axes = (-2, -1) if self.stability is Stability.MATRIX else -2
        with np.errstate(all="ignore"):
            size = np.abs(value).max(axis=axes, keepdims=True)
        drawn: Array = self.noise.perturbed(np.ones(value.shape), self.relative, 0) - 1
        return np.where(np.isfinite(size), size, 0) * drawn
