"""Sums, products and contractions of words.

Floats of 64 bits hold integers below 2^53, positive and negative. A residue is taken from the middle, at most
P/2 in size, and multiplied by digits of the other operand, which are small and have signs, too: BLAS sums
hundreds of products with one of two digits, and the more the more digits there are, all of them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.blockwise import Words
from hlotool.backends.field.words import MODULO_P, MODULO_Q, P, Q, join, multiply, split
from hlotool.backends.numpy.threads import spans

Floats = npt.NDArray[np.float64]

#: Digits of a residue, at most: they allow sums of a million terms.
MOST_DIGITS: Final = 9


def base(digits: int) -> int:
    """The least base in which so many digits, at most half of it in size, make up all residues."""
    return int(P ** (1 / digits)) + 2


def most_terms(digits: int) -> int:
    """How many products of a residue and a digit are below 2^53 in sum, with what else is added to them."""
    return ((1 << 53) - base(digits) * P) // (P // 2 * (base(digits) // 2 + 1))


#: Terms that bilinear functions may sum.
MOST_TERMS: Final = most_terms(MOST_DIGITS)
#: Terms that a product of matrices sums at once, with two digits.
_TERMS: Final = most_terms(2)
#: Elements of a product of matrices that are computed at once: threads of BLAS that meet often wait long.
_TILE: Final = 1 << 20


def sum_of(words: Words, axes: Sequence[int]) -> Words:
    """The sum over some dimensions, which are dropped; fewer than 2^32 terms each."""
    p, q = (np.asarray(np.sum(half, axis=tuple(axes), dtype=np.uint64)) for half in split(words))
    return join(MODULO_P.reduce(p), MODULO_Q.reduce(q))


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
    if a.size < b.size:  # digits of the smaller operand
        product = _matmul(np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2))
        return np.ascontiguousarray(np.swapaxes(product, -1, -2))
    return _matmul(a, b)


def _matmul(a: Words, b: Words) -> Words:
    rows, columns = a.shape[-2], b.shape[-1]
    rank = max(a.ndim, b.ndim)
    left, right = (_centred(x.reshape((1,) * (rank - x.ndim) + x.shape)) for x in (a, b))
    digits = np.concatenate(_digits(right, 2), axis=-1)
    elements = prod(map(max, left.shape[1:-2], right.shape[1:-2])) * rows * columns
    if elements <= _TILE:
        return _product(left, digits)
    parts = [_product(left[..., part, :], digits) for part in spans(rows, -(-elements // _TILE))]
    return np.concatenate(parts, axis=-2)


def _product(left: Floats, digits: Floats) -> Words:
    """Of both residues [2, ..., M, K] and the low digits [2, ..., K, N] beside the high ones of others."""
    sums: Floats = np.matmul(left[..., :_TERMS], digits[..., :_TERMS, :])
    for start in range(_TERMS, left.shape[-1], _TERMS):
        part = slice(start, start + _TERMS)
        sums = _reduced(sums)
        sums += np.matmul(left[..., part], digits[..., part, :])
    columns = digits.shape[-1] // 2
    return _carried([sums[..., columns:], sums[..., :columns]], 2)


def bilinear(function: Callable[[Floats, Floats], npt.NDArray[Any]], a: Words, b: Words, terms: int) -> Words:
    """`function`, which is linear in both arguments, for words: a dot of any dimensions, a convolution.

    Args:
        function: of two f64 arrays; every element of its result is a sum of products of an element of each,
            without other factors.
        a: first argument, of the dimensions that `function` takes.
        b: second argument.
        terms: the longest sum has no more; at most MOST_TERMS.
    """
    count = next(n for n in range(2, MOST_DIGITS + 1) if terms <= most_terms(n))
    left = _centred(a)
    digits = reversed(_digits(_centred(b), count))
    return _carried((np.array([function(x, y) for x, y in zip(left, digit)]) for digit in digits), count)


#: Of both halves of words, along the first dimension.
_MODULI: Final = np.array([P, Q], np.float64)


def _centred(words: Words) -> Floats:
    """Both residues of words, along a new first dimension, or as large again: numbers of the least size."""
    return _reduced(np.array(split(words), np.float64))


def _reduced(numbers: Floats) -> Floats:
    """Integers below 2^53, of both moduli along the first dimension, in place: residues of the least size."""
    moduli = _MODULI.reshape(2, *(1,) * (numbers.ndim - 1))
    multiples = numbers / moduli
    np.rint(multiples, out=multiples)
    multiples *= moduli
    numbers -= multiples
    return numbers


def _digits(numbers: Floats, count: int) -> list[Floats]:
    """Numbers of the least size in so many digits, from the lowest."""
    radix, found = base(count), []
    for _ in range(count - 1):
        rest = numbers * (1 / radix)
        np.rint(rest, out=rest)
        found.append(numbers - rest * radix)
        numbers = rest
    return [*found, numbers]


def _carried(sums: Iterable[Floats], digits: int) -> Words:
    """What the sums of products with each digit, from the highest, make together."""
    radix = base(digits)
    first, *others = sums
    total = _reduced(first)
    for one in others:
        total *= radix
        total += one
        _reduced(total)
    p, q = total
    return join(_positive(p, P), _positive(q, Q))


def _positive(numbers: Floats, modulus: int) -> Words:
    """Residues of the least size as those from 0 on."""
    signed = numbers.astype(np.int64)
    signed += (signed < 0) * np.int64(modulus)
    return signed.view(np.uint64)
