"""Random relative errors on arrays: stochastic arithmetic in the manner of CADNA and Verificarlo.

A perturbed number is x · (1 + e · ξ), ξ in [-1, 1]. Half of ξ is common to the elements that one operation
computes, because the error of an approximation, or of a rounded constant, has a direction; the other half is
each element's own. What looks exact (trailing zero bits: small integers, masks, powers of two) stays exact:
it is so in every legal execution, and a counter that is off by an ulp would end a loop one iteration late.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.backends.numpy.threads import each
from hlotool.ir.dtypes import Array

#: Elements perturbed together: they stay in the processor's cache.
_BLOCK = 1 << 15
#: Random numbers that all operations draw theirs from, beginning anywhere.
_POOL = 1 << 17

#: Elements of a large array that are looked at, the zero bits that they must have besides, and the share of
#: them that has so by chance.
_SAMPLE, _MORE_ZEROS, _BY_CHANCE = 1024, 4, 0.02

#: Integers of the same width.
_BITS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.uint64),
}
#: Dtypes of the parts of complex numbers.
_PARTS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


@dataclass(frozen=True, slots=True)
class Member:
    """One legal execution out of many.

    Attributes:
        seed: of all its random numbers; None perturbs nothing.
        keeps: how likely the result of an operation in a narrow type stays in f32: never (0), always (1) or
            by a coin per operation.
        flushes: denormal results become zero.
        scale: multiplies every error.
    """

    seed: int | None = None
    keeps: float = 0.0
    flushes: bool = False
    scale: float = 1.0


class Noise:
    """Source of perturbations, the same in every thread: devices that compute the same get the same.

    Attributes:
        member: which execution runs.
    """

    def __init__(self, member: Member) -> None:
        self.member = member
        self._generation = 0
        self._local = threading.local()
        self._pool: dict[np.dtype[Any], Array] = {}

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
        if self.member.seed is None or relative == 0:
            return value
        dtype = value.dtype
        if dtype in _PARTS:
            return self._complex(value, relative, zeros)
        if dtype not in _BITS or not value.size:
            return value
        relative *= self.member.scale
        if value.ndim == 0:
            return self._scalar(value, relative, zeros)
        source = np.ascontiguousarray(value).reshape(-1)
        result = np.empty_like(source)
        zeros = zeros if _look_exact(source, zeros) else 0
        draw = self._random.random
        common = 1 + relative / 2 * (2 * draw() - 1)
        numbers = self._numbers(dtype)
        parts = [(start, int(draw() * (_POOL - _BLOCK))) for start in range(0, source.size, _BLOCK)]

        def fill(part: tuple[int, int]) -> None:
            start, first = part
            x = source[start : start + _BLOCK]
            drawn = numbers[first : first + x.size]
            _perturb(result[start : start + _BLOCK], x, drawn, relative / 2, common, zeros)

        if len(parts) > 1:
            each(fill, parts)
        else:
            fill(parts[0])
        return result.reshape(value.shape)

    def _complex(self, value: Any, relative: float, zeros: int) -> Any:
        together: Array = np.array(value, order="C", ndmin=1)
        parts = together.view(_PARTS[value.dtype])
        changed: Array = self.perturbed(parts, relative, zeros)
        whole = changed.view(value.dtype).reshape(value.shape)
        return whole if value.ndim else whole[()]

    def _scalar(self, value: Any, relative: float, zeros: int) -> Any:
        if zeros and not int(value.view(_BITS[value.dtype])) & ((1 << zeros) - 1):
            return value
        changed = float(value) * (1 + relative * self._random.uniform(-1, 1))
        return value.dtype.type(changed)

    def _numbers(self, dtype: np.dtype[Any]) -> Array:
        if dtype not in self._pool:
            drawn: npt.NDArray[np.float64] = np.random.default_rng(0).uniform(-1, 1, _POOL)
            self._pool[dtype] = drawn.astype(dtype)
        return self._pool[dtype]


def _perturb(out: Array, x: Array, drawn: Array, own: float, common: float, zeros: int) -> None:
    """out = x · (common + own · drawn), but x where its last bits are zero."""
    np.multiply(drawn, x.dtype.type(own), out=out)
    out += x.dtype.type(common)
    out *= x
    if zeros:
        np.copyto(out, x, where=_is_exact(x, zeros))


def _is_exact(x: Array, zeros: int) -> npt.NDArray[np.bool_]:
    """Library calls give f32 in wide executions, too, which has fewer bits than are asked for."""
    bits = _BITS[x.dtype]
    zeros = min(zeros, 8 * x.dtype.itemsize)
    found: npt.NDArray[np.bool_] = np.equal(np.bitwise_and(x.view(bits), bits.type((1 << zeros) - 1)), 0)
    return found


def _look_exact(x: Array, zeros: int) -> bool:
    """Whether more elements than a few by chance look exact; of large arrays some are looked at."""
    if not zeros or x.size <= _SAMPLE:
        return bool(zeros)
    sample = np.ascontiguousarray(x[:: x.size // _SAMPLE])
    return float(_is_exact(sample, zeros + _MORE_ZEROS).mean()) > _BY_CHANCE
