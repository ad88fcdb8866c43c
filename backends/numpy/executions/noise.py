"""Random relative errors on arrays: stochastic arithmetic in the manner of CADNA and Verificarlo.

A factorisation may be the exact one of a matrix that is a little off (backward error).
"""

from __future__ import annotations

import enum
import random
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.backends.numpy.plan import each
from hlotool.ir.arrays import Array

#: Elements perturbed together: they stay in the processor's cache.
_BLOCK = 1 << 15
#: Random numbers that all operations draw theirs from, beginning anywhere.
_POOL = 1 << 17

#: Elements of a large array that are looked at, the zero bits that they must have besides, and the share of
#: them that has so by chance.
_SAMPLE, _MORE_ZEROS, _BY_CHANCE = 1024, 4, 0.02

#: Integers as wide as the floats, by the floats' codes.
_BITS: dict[str, type[np.unsignedinteger[Any]]] = {"f": np.uint32, "d": np.uint64}
#: The parts of complex numbers.
_PARTS: dict[str, type[np.floating[Any]]] = {"F": np.float32, "D": np.float64}


@dataclass(frozen=True, slots=True)
class Member:
    """One legal execution out of many.

    Attributes:
        seed: of all its random numbers; None perturbs nothing.
        keeps: how likely the result of an operation in a narrow type stays in f32: never (0), always (1) or
            by a coin per operation.
        flushes: denormal results become zero.
        scale: multiplies every error.
        signs: of zeros and NaN, where they may have others: 0 for those that NumPy makes; else no zero is
            added to anything, so that -0 stays, and NaN that operations make are positive (1) or negative
            (-1).
        in_turn: so many terms of a long sum are added up, and then to a running sum; 0 for sums that are as
            exact as can be.
        narrow: such sums of narrow types are rounded at every addition, too.
    """

    seed: int | None = None
    keeps: float = 0.0
    flushes: bool = False
    scale: float = 1.0
    signs: int = 0
    in_turn: int = 0
    narrow: bool = False


class Noise:
    """Source of perturbations, the same in every thread: devices that compute the same get the same.

    Attributes:
        member: which execution runs.
    """

    def __init__(self, member: Member) -> None:
        self.member = member
        self._generation = 0
        self._local = threading.local()
        self._pool: dict[str, Array] = {}

    def restart(self) -> None:
        """Begin an execution: every thread draws its numbers from the start."""
        self._generation += 1

    @property
    def _random(self) -> random.Random:
        local = self._local
        if getattr(local, "generation", None) != self._generation:
            local.generation = self._generation
            local.random = random.Random(self.member.seed)
        found: random.Random = local.random
        return found

    def coin(self) -> bool:
        """Whether this result keeps more precision than its type has."""
        if self.member.keeps in (0.0, 1.0):
            return self.member.keeps == 1.0
        return self._random.random() < self.member.keeps

    def perturbed(self, value: Any, relative: float, zeros: int) -> Any:
        """`value` with errors of up to `relative`; integers stay, infinities and NaN, too.

        Args:
            value: an array or NumPy scalar.
            relative: largest relative error.
            zeros: numbers whose last so many bits are zero look exact and stay; 0 spares none but zero.
        """
        if self.member.seed is None or relative == 0 or not value.size:
            return value
        kind = value.dtype.char
        if kind in "FD":
            return self._complex(value, relative, zeros)
        if kind not in _BITS:
            return value
        relative *= self.member.scale
        if value.ndim == 0:
            return self._scalar(value, relative, zeros)
        x = value.ravel()
        zeros = zeros if looks_exact(x, zeros) else 0
        draw = self._random.random
        common = 1 + relative / 2 * (2 * draw() - 1)
        numbers = self._numbers(kind)

        def part(start: int, first: int) -> Array:
            some = x[start : start + _BLOCK]
            return _perturbed(some, numbers[first : first + some.size], relative / 2, common, zeros)

        if x.size <= _BLOCK:
            return part(0, int(draw() * (_POOL - _BLOCK))).reshape(value.shape)
        result = np.empty_like(x)
        places = [(start, int(draw() * (_POOL - _BLOCK))) for start in range(0, x.size, _BLOCK)]

        def fill(place: tuple[int, int]) -> None:
            result[place[0] : place[0] + _BLOCK] = part(*place)

        each(fill, places)
        return result.reshape(value.shape)

    def _complex(self, value: Any, relative: float, zeros: int) -> Any:
        together: Array = np.array(value, order="C", ndmin=1)
        parts = together.view(_PARTS[value.dtype.char])
        changed: Array = self.perturbed(parts, relative, zeros)
        whole = changed.view(value.dtype).reshape(value.shape)
        return whole if value.ndim else whole[()]

    def _scalar(self, value: Any, relative: float, zeros: int) -> Any:
        if zeros and not int(value.view(_BITS[value.dtype.char])) & ((1 << zeros) - 1):
            return value
        return value.dtype.type(float(value) * (1 + relative * (2 * self._random.random() - 1)))

    def _numbers(self, kind: str) -> Array:
        if kind not in self._pool:
            drawn: npt.NDArray[np.float64] = np.random.default_rng(0).uniform(-1, 1, _POOL)
            self._pool[kind] = drawn.astype(kind)
        return self._pool[kind]


def _perturbed(x: Array, drawn: Array, own: float, common: float, zeros: int) -> Array:
    """x · (common + own · drawn), but x where its last bits are zero."""
    result: Array = drawn * own
    result += common
    result *= x
    if zeros:
        np.putmask(result, _is_exact(x, zeros), x)
    return result


def _is_exact(x: Array, zeros: int) -> npt.NDArray[np.bool_]:
    exact: npt.NDArray[np.bool_] = np.logical_not(
        x.view(_BITS[x.dtype.char]) & _last_bits(x.dtype.char, zeros)
    )
    return exact


@cache
def _last_bits(kind: str, zeros: int) -> Array:
    """A mask, as an array of rank 0: NumPy takes several times as long over a scalar."""
    return np.array((1 << zeros) - 1, _BITS[kind])


def looks_exact(value: Array, zeros: int) -> bool:
    """Whether more elements than a few by chance look exact, having so many zero bits at their end.

    Of large arrays some are looked at; small ones, and complex ones, may always look so.
    """
    if not zeros or value.size <= _SAMPLE or value.dtype.char not in _BITS:
        return bool(zeros)
    x = value.ravel()
    sample = np.ascontiguousarray(x[:: x.size // _SAMPLE])
    return float(_is_exact(sample, zeros + _MORE_ZEROS).mean()) > _BY_CHANCE


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
