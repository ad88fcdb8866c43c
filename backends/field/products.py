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

from hlotool.backends.field.hashing import Words
from hlotool.backends.field.residues import MODULO_P, MODULO_Q, P, Q
from hlotool.backends.field.words import join, multiply, split
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
    operands = []
    for x, y, modulus in zip(split(a), split(b), (P, Q)):
        digits = _digits(_centred(y, modulus), 2)
        operands.append((_centred(x, modulus), np.concatenate(digits, axis=-1), modulus))
    result = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns), np.uint64)
    for part in spans(rows, -(-result.size // _TILE)):
        halves = []
        for left, right, modulus in operands:
            low, high = np.split(_product(left[..., part, :], right, modulus), 2, axis=-1)
            halves.append(_carried([high, low], 2, modulus))
        result[..., part, :] = join(*halves)
    return result


def _product(left: Floats, right: Floats, modulus: int) -> Floats:
    """Of numbers of the least size and digits of others; sums of many terms are reduced."""
    product: Floats = np.matmul(left[..., :_TERMS], right[..., :_TERMS, :])
    for start in range(_TERMS, left.shape[-1], _TERMS):
        part = slice(start, start + _TERMS)
        product = _reduced(product, modulus)
        product += np.matmul(left[..., part], right[..., part, :])
    return product


def bilinear(function: Callable[[Floats, Floats], npt.NDArray[Any]], a: Words, b: Words, terms: int) -> Words:
    """`function`, which is linear in both arguments, for words: a dot of any dimensions, a convolution.

    Args:
        function: of two f64 arrays; every element of its result is a sum of products of an element of each,
            without other factors.
        a: first argument, of the dimensions that `function` takes.
        b: second argument.
        terms: the longest sum has no more; at most MOST_TERMS.
    """
    digits = next(n for n in range(2, MOST_DIGITS + 1) if terms <= most_terms(n))
    halves = []
    for x, y, modulus in zip(split(a), split(b), (P, Q)):
        left = _centred(x, modulus)
        sums = (
            np.asarray(function(left, digit)) for digit in reversed(_digits(_centred(y, modulus), digits))
        )
        halves.append(_carried(sums, digits, modulus))
    return join(*halves)


def _centred(residues: Words, modulus: int) -> Floats:
    """Residues, or as large again, as numbers of the least size."""
    return _reduced(residues.astype(np.float64), modulus)


def _reduced(numbers: Floats, modulus: int) -> Floats:
    """Integers below 2^53 as residues of the least size; in place."""
    multiples = numbers * (1 / modulus)
    np.rint(multiples, out=multiples)
    multiples *= modulus
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


def _carried(sums: Iterable[Floats], digits: int, modulus: int) -> Words:
    """What the sums of products with each digit, from the highest, make together."""
    radix = base(digits)
    first, *others = sums
    total = _reduced(first, modulus)
    for one in others:
        total *= radix
        total += one
        _reduced(total, modulus)
    total += (total < 0) * float(modulus)
    return total.astype(np.uint64)
