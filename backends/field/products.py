"""Sums, products and contractions of words.

Floats of 64 bits hold integers below 2^53: products of 16-bit limbs, summed by BLAS, are exact up to 2^20
terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.hashing import Words
from hlotool.backends.field.residues import MODULO_P, MODULO_Q, Residues
from hlotool.backends.field.words import add, join, multiply, split

#: Terms of a contraction that are summed at once: two products of limbs each, all below 2^53.
MOST_TERMS: Final = 1 << 20

_LIMB: Final = np.uint64(16)

Floats = npt.NDArray[np.float64]


def sum_of(words: Words, axes: Sequence[int]) -> Words:
    """The sum over some dimensions, which are dropped; fewer than 2^32 terms each."""
    p, q = (np.asarray(np.sum(half, axis=tuple(axes), dtype=np.uint64)) for half in split(words))
    return join(_reduced(p, MODULO_P), _reduced(q, MODULO_Q))


def product_of(words: Words, axes: Sequence[int]) -> Words:
    """The product over some dimensions, which are dropped; 1 where there are no factors."""
    kept = [d for d in range(words.ndim) if d not in axes]
    rows = words.transpose([*axes, *kept]).reshape(
        prod(words.shape[d] for d in axes), *(words.shape[d] for d in kept)
    )
    if not len(rows):
        return np.full(rows.shape[1:], 1 << 32 | 1, np.uint64)
    while (count := len(rows)) > 1:
        half = count // 2
        rows = np.concatenate([multiply(rows[:half], rows[half : 2 * half]), rows[2 * half :]])
    return np.array(rows[0])


def matmul(a: Words, b: Words) -> Words:
    """The product of matrices [..., M, K] and [..., K, N]; the other dimensions broadcast."""
    terms = a.shape[-1]
    result = _matmul(a[..., :MOST_TERMS], b[..., :MOST_TERMS, :])
    for start in range(MOST_TERMS, terms, MOST_TERMS):
        stop = start + MOST_TERMS
        result = add(result, _matmul(a[..., start:stop], b[..., start:stop, :]))
    return result


def _matmul(a: Words, b: Words) -> Words:
    """One product in f64 for each half: limbs of `a` below each other, of `b` beside each other."""
    rows, columns = a.shape[-2], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    halves = []
    for x, y, modulo in zip(split(a), split(b), (MODULO_P, MODULO_Q)):
        left = np.concatenate(_limbs(x), axis=-2)
        right = np.concatenate(_limbs(y), axis=-1)
        found = np.matmul(left, right).reshape(*batch, 2, rows, 2, columns)
        halves.append(
            _carried(
                found[..., 0, :, 0, :],
                found[..., 0, :, 1, :] + found[..., 1, :, 0, :],
                found[..., 1, :, 1, :],
                modulo,
            )
        )
    return join(*halves)


def bilinear(function: Callable[[Floats, Floats], npt.NDArray[Any]], a: Words, b: Words) -> Words:
    """`function`, which is linear in both arguments, for words: a dot of any dimensions, a convolution.

    Args:
        function: of two f64 arrays; every element of its result is a sum of up to MOST_TERMS products of an
            element of each, without other factors.
        a: first argument, of the dimensions that `function` takes.
        b: second argument.
    """
    halves = []
    for x, y, modulo in zip(split(a), split(b), (MODULO_P, MODULO_Q)):
        (x_high, x_low), (y_high, y_low) = _limbs(x), _limbs(y)
        middle = function(x_high, y_low) + function(x_low, y_high)
        halves.append(_carried(function(x_high, y_high), middle, function(x_low, y_low), modulo))
    return join(*halves)


def _limbs(residues: Words) -> tuple[Floats, Floats]:
    """The high and the low 16 bits."""
    return (residues >> _LIMB).astype(np.float64), (residues & np.uint64(0xFFFF)).astype(np.float64)


def _carried(high: Floats, middle: Floats, low: Floats, modulo: Residues) -> Words:
    """2^32 high + 2^16 middle + low as residues."""
    total = _reduced(np.asarray(high).astype(np.uint64), modulo) << _LIMB << _LIMB
    total = total + (_reduced(np.asarray(middle).astype(np.uint64), modulo) << _LIMB)
    return _reduced(np.asarray(total + np.asarray(low).astype(np.uint64)), modulo)


def _reduced(numbers: Words, modulo: Residues) -> Words:
    """The residues of an array that nobody else holds."""
    return modulo.reduce(np.asarray(numbers))
