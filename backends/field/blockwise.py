"""Elementwise functions of words on arrays of any size: in blocks that stay in cache, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import prod

import numpy as np

from hlotool.backends.field.hashing import Words
from hlotool.backends.numpy.blocks import block_indices
from hlotool.backends.numpy.threads import each
from hlotool.ir.dtypes import Array

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
