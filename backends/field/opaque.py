"""Functions that the field knows nothing of: the result is a hash of the operands, the same in both programs.

What is equal modulo P is the same operand; so a rewrite of the operands is seen through. One of the
function is not, but for the laws that stand here: odd and even functions, and values at 0.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from hlotool.backends.field.blockwise import in_blocks
from hlotool.backends.field.hashing import Words, key, splitmix
from hlotool.backends.field.words import P, negate, word_of_hash

_HALF: Final = np.uint64(32)
#: Of a pair {x, -x} of residues modulo P one is up to this.
_MIDDLE: Final = np.uint64(P // 2)


def opaque(name: str, seed: int, *operands: Words) -> Words:
    """A function of which nothing is known.

    Args:
        name: which function; equal names are the same function.
        seed: of the trial.
        operands: its arguments, which broadcast against each other.
    """
    return _hashed(*operands, np.array(_salt(name, seed), np.uint64))


@in_blocks(np.uint64)
def _hashed(*operands: Words) -> Words:
    """Words that depend on the residues modulo P of all operands but the last, the salt."""
    *arguments, hashes = operands
    for argument in arguments:
        hashes = splitmix(np.asarray((argument >> _HALF) ^ hashes))
    return word_of_hash(hashes)


@lru_cache(256)
def _salt(name: str, seed: int) -> int:
    return key(name, seed)


def odd(name: str, seed: int, operand: Words) -> Words:
    """A function with f(-x) = -f(x), and so f(0) = 0."""
    p = operand >> _HALF
    is_other = p > _MIDDLE
    result = opaque(name, seed, np.where(is_other, negate(operand), operand))
    return np.where(p == 0, np.uint64(0), np.where(is_other, negate(result), result))


def even(name: str, seed: int, operand: Words, at_zero: Words | None = None) -> Words:
    """A function with f(-x) = f(x).

    Args:
        name: which function.
        seed: of the trial.
        operand: x.
        at_zero: f(0), where it is known.
    """
    p = operand >> _HALF
    result = opaque(name, seed, np.where(p > _MIDDLE, negate(operand), operand))
    return result if at_zero is None else np.where(p == 0, at_zero, result)
