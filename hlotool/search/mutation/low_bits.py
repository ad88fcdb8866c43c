"""The low bits of integers: what a narrower type keeps depends on nothing above it.

Sums, differences, products and logic of integers, modulo a power of two, are made of their operands modulo
the same power. A number that was wrapped to more bits than are left of it in the end was not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlotool.analysis.machine_range import of_type
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.search.mutation.hashing import Symbols, combined, key_of, of_values, unordered
from hlotool.search.mutation.terms import Term, Word

_COMMUTATIVE: Final = frozenset({"add", "multiply", "and", "or", "xor"})
_MADE_OF_LOW_BITS: Final = _COMMUTATIVE | {"convert", "negate", "not", "select", "subtract"}
#: Operations within operations that are looked through.
_DEEPEST: Final = 24


def remembered(instruction: Instruction, operands: Sequence[Term], term: Term) -> Word | None:
    """How an integer was computed, as far as its low bits tell; None of other values.

    Args:
        instruction: the operation.
        operands: of it.
        term: its result.
    """
    shape = instruction.shape
    is_handed_on = any(np.array_equal(term.symbols, operand.symbols) for operand in operands)
    if term.known is not None or is_handed_on or term.word is not None:
        return term.word
    if instruction.opcode not in _MADE_OF_LOW_BITS or not isinstance(shape, ArrayShape):
        return None
    source = instruction.operands[-1].element_type
    is_whole = shape.element_type.is_integer and source.is_integer
    fits = all(operand.symbols.shape == shape.dims for operand in operands)
    return Word(instruction.opcode, tuple(operands), source.bits) if is_whole and fits else None


def narrowed(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """A conversion of an integer to a type of as many bits, or of fewer."""
    if instruction.opcode != "convert":
        return None
    source, target = instruction.operands[0].element_type, instruction.element_type
    if not (source.is_integer and target.is_integer) or target.bits > source.bits:
        return None
    symbols = combined(key_of("narrowed", target.value), low_bits(operands[0], target.bits))
    return Term(symbols, of_type(target))


def low_bits(term: Term, bits: int, depth: int = 0) -> Symbols:
    """Symbols of what an integer is modulo a power of two.

    Args:
        term: an integer of at least so many bits.
        bits: the exponent of the power.
        depth: operations that were looked through on the way here.
    """
    if (known := _known(term, bits)) is not None:
        return of_values(known)
    if depth < _DEEPEST:
        if term.sum_of is not None:
            base, number = term.sum_of
            below = low_bits(base, bits, depth + 1)
            number %= 1 << bits
            return combined(key_of("low sum", bits, number), below) if number else below
        if term.word is not None:
            found = _of_word(term.word, bits, depth)
            if found is not None:
                return found
    return combined(key_of("low bits", bits), term.symbols)


def _of_word(word: Word, bits: int, depth: int) -> Symbols | None:
    if word.opcode == "convert":
        return low_bits(word.operands[0], bits, depth + 1) if word.bits >= bits else None
    if word.opcode in ("and", "or", "xor"):
        for one, other in (word.operands, word.operands[::-1]):
            number = _number(other, bits)
            if number == 0 and word.opcode == "and":
                return of_values(np.zeros(one.symbols.shape, np.int64))
            if number == (((1 << bits) - 1) if word.opcode == "and" else 0):
                return low_bits(one, bits, depth + 1)
    key = key_of("low", word.opcode, bits)
    if word.opcode == "select":
        mask, *sides = word.operands
        chosen, otherwise = (low_bits(side, bits, depth + 1) for side in sides)
        return np.where(chosen == otherwise, otherwise, combined(key, mask.symbols, chosen, otherwise))
    parts = [low_bits(operand, bits, depth + 1) for operand in word.operands]
    if word.opcode in ("or", "xor"):
        zeros = of_values(np.zeros(parts[0].shape, np.int64))
        for part, rest in (parts, parts[::-1]):
            if np.array_equal(rest, zeros):
                return part
    return unordered(key, *parts) if word.opcode in _COMMUTATIVE else combined(key, *parts)


def _known(term: Term, bits: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
    if term.known is None or term.known.dtype.kind == "f":
        return None
    return np.asarray(term.known).astype(np.int64) & np.int64((1 << bits) - 1 if bits < 64 else -1)


def _number(term: Term, bits: int) -> int | None:
    """What all elements are modulo a power of two, where that is one number."""
    known = _known(term, bits)
    if known is None or not known.size or (known != known.flat[0]).any():
        return None
    return int(known.flat[0])
