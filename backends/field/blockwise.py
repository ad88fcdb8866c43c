"""Functions of words on arrays of any size, in blocks that stay in cache, on all cores; pseudo-random
words.

Pseudo-random numbers are the same in every process: they stand for unknown functions and arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.numpy.blocks import block_indices
from hlotool.backends.numpy.threads import each
from hlotool.ir.arrays import Array

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


#: Elements of one block: a dozen temporaries of them fit into a second-level cache.
BLOCK = 1 << 13


def in_blocks(dtype: type[np.generic]) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Decorator of an elementwise function of arrays that broadcast against each other: see `by_blocks`."""

    def decorate(function: Callable[..., Array]) -> Callable[..., Array]:
        @wraps(function)
        def whole(*operands: Array) -> Array:
            return by_blocks(function, dtype, *operands)

        return whole

    return decorate


def by_blocks(function: Callable[..., Array], dtype: type[np.generic], *operands: Array) -> Array:
    """An elementwise function of arrays that broadcast against each other.

    Args:
        function: called with arrays of up to BLOCK elements, among them some that still have to be broadcast;
            returns a new array.
        dtype: of its result.
        operands: arrays of any dimensions.
    """
    dims = operands[0].shape
    for operand in operands:
        if operand.shape != dims:
            dims = np.broadcast(*operands).shape
            break
    if prod(dims) <= BLOCK:
        return function(*operands)
    result = np.empty(dims, dtype)
    views = [operand if operand.ndim == 0 else np.broadcast_to(operand, dims) for operand in operands]

    def block(index: tuple[slice, ...]) -> None:
        result[index] = function(*(view if view.ndim == 0 else view[index] for view in views))

    each(block, list(block_indices(dims, [tuple(range(len(dims)))], BLOCK)))
    return result


def once_per_element(function: Callable[..., Array]) -> Callable[..., Array]:
    """Decorator of an elementwise function of one array: what a broadcast repeats is computed once.

    For functions that cost much more than writing their result.
    """

    @wraps(function)
    def whole(words: Words, *others: object) -> Array:
        if 0 not in words.strides:
            return function(words, *others)
        once = without_repeats(words)
        return np.broadcast_to(function(once, *others), words.shape)

    return whole


def without_repeats(words: Words) -> Words:
    """The array with dimensions of size 1 in place of those along which a broadcast repeats its elements."""
    if 0 not in words.strides:
        return words
    return words[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in words.strides)]
