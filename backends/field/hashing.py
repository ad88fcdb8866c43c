"""Pseudo-random numbers, the same in every process: what stands for unknown functions and arguments."""

from __future__ import annotations

import hashlib
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

#: 64-bit numbers of any dimensions.
Words: TypeAlias = npt.NDArray[np.uint64]

_STEP: Final = 0x9E3779B97F4A7C15
_MIX: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_ALL: Final = (1 << 64) - 1


def splitmix(numbers: Words) -> Words:
    """A hash of each number: the output function of SplitMix64, a permutation of the 64-bit numbers.

    Steele, Lea and Flood, Fast splittable pseudorandom number generators (OOPSLA 2014).
    """
    if numbers.ndim == 0:
        return np.array(splitmix_of(int(numbers)), np.uint64)
    x = numbers + np.uint64(_STEP)
    x ^= x >> np.uint64(30)
    x *= np.uint64(_MIX[0])
    x ^= x >> np.uint64(27)
    x *= np.uint64(_MIX[1])
    x ^= x >> np.uint64(31)
    return x


def splitmix_of(number: int) -> int:
    """`splitmix` of one Python integer below 2^64."""
    x = (number + _STEP) & _ALL
    x = (x ^ (x >> 30)) * _MIX[0] & _ALL
    x = (x ^ (x >> 27)) * _MIX[1] & _ALL
    return x ^ (x >> 31)


def key(*parts: object) -> int:
    """A 64-bit number made from strings, numbers and tuples of them; their `repr` tells them apart."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")
