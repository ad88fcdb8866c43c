"""The low bits of integers: what a narrower type or a mask keeps depends on nothing above it.

Sums, differences, products and logic of integers, modulo a power of two, are made of their operands modulo
the same power. A number that was wrapped to more bits than are left of it in the end was not changed. And a
number that is not negative and has no more bits than are looked at is its low bits: so remainders by powers
of two are one number in all the ways in which they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlotool.analysis.machine_range import of_integers, of_type
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.search.mutation.hashing import Symbols, combined, key_of, of_values, unordered
from hlotool.search.mutation.terms import Term, Word, constant

_COMMUTATIVE: Final = opcodes_with(Trait.ASSOCIATIVE) - opcodes_with(Trait.EXTREMUM)
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


def masked(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """`x & m` of a constant m: the bits that may be 1, and none of those that are 0 in any case."""
    shape = instruction.shape
    if instruction.opcode != "and" or not isinstance(shape, ArrayShape) or not shape.element_type.is_integer:
        return None
    kind = shape.element_type
    for value, mask in (operands, operands[::-1]):
        if not mask.bounds.is_point or value.symbols.shape != shape.dims:
            continue
        bits = int(value.bounds.high).bit_length() if value.bounds.low >= 0 else kind.bits
        possible = ((1 << bits) - 1) & -(1 << zeros_below(value))
        kept = int(mask.bounds.low) & possible
        if kept == possible:
            return value
        word = Word("and", (value, mask), kind.bits)
        return _kept(kind, low_bits(value, kept.bit_length()), kept, shape.dims, word)
    return None


def either_way(instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """A choice between numbers that differ in high bits, of which nothing is left where each is chosen."""
    shape = instruction.shape
    if instruction.opcode != "select" or not isinstance(shape, ArrayShape):
        return None
    _, chosen, otherwise = operands
    kind, bounds = shape.element_type, chosen.bounds.union(otherwise.bounds)
    if not kind.is_integer or bounds.low < 0 or any(o.symbols.shape != shape.dims for o in operands[1:]):
        return None
    bits = int(bounds.high).bit_length()
    if bits >= kind.bits:
        return None
    below = low_bits(chosen, bits)
    if not np.array_equal(below, low_bits(otherwise, bits)):
        return None
    kept = (1 << bits) - 1
    # What is said of the symbols is true wherever they are read, and not only where the bounds hold.
    word = Word("and", (otherwise, constant(np.full(shape.dims, kept))), kind.bits)
    found = _kept(kind, below, kept, shape.dims, word)
    return found if found.known is not None else Term(found.symbols, bounds, word=word)


def _kept(kind: ElementType, below: Symbols, kept: int, dims: tuple[int, ...], word: Word) -> Term:
    """A number that has some of the bits that `below` stands for, and no others."""
    if kept == 0:
        zero = np.zeros(dims, np.int64)
        return Term(of_values(zero), of_integers(0, 0), zero)
    has_sign = kept >> (kind.bits - 1) and kind.is_signed
    # Without the sign bit it is the same number in every type.
    key = key_of("kept", kept, kind.value if has_sign else "")
    return Term(combined(key, below), of_type(kind) if has_sign else of_integers(0, kept), word=word)


def zeros_below(term: Term) -> int:
    """How many low bits of an integer are sure to be 0."""
    return _LowBits(0).zeros(term, 0)


def low_bits(term: Term, bits: int) -> Symbols:
    """Symbols of what an integer is modulo a power of two.

    Args:
        term: an integer of at least so many bits.
        bits: the exponent of the power.
    """
    return _LowBits(bits).symbols(term, 0)


class _LowBits:
    """One question for low bits: what was found of a number is found once.

    Args:
        bits: how many of them.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._all = (1 << bits) - 1
        self._found: dict[int, tuple[bool, Symbols]] = {}
        self._zeros: dict[int, int] = {}

    def symbols(self, term: Term, depth: int) -> Symbols:
        """Of a number; `depth` operations were looked through on the way to it."""
        is_negative, symbols = self._signed(term, depth)
        return combined(key_of("low negative", self._bits), symbols) if is_negative else symbols

    def _signed(self, term: Term, depth: int) -> tuple[bool, Symbols]:
        """Symbols, and whether the number is the negative of what they stand for."""
        if id(term) not in self._found:
            self._found[id(term)] = self._read(term, depth)
        return self._found[id(term)]

    def _read(self, term: Term, depth: int) -> tuple[bool, Symbols]:
        if (known := self._known(term)) is not None:
            return False, of_values(known)
        if depth < _DEEPEST:
            if term.sum_of is not None:
                base, number = term.sum_of
                number &= self._all
                if number == 0:
                    return self._signed(base, depth + 1)
                below = self.symbols(base, depth + 1)
                return False, combined(key_of("low sum", self._bits, number), below)
            if term.word is not None and (found := self._of_word(term.word, depth)) is not None:
                return found
        return False, combined(key_of("low bits", self._bits), term.symbols)

    def _of_word(self, word: Word, depth: int) -> tuple[bool, Symbols] | None:
        match word.opcode:
            case "convert":
                return self._signed(word.operands[0], depth + 1) if word.bits >= self._bits else None
            case "negate":
                is_negative, symbols = self._signed(word.operands[0], depth + 1)
                # Modulo 2 every number is its own negative.
                return not is_negative and self._bits > 1, symbols
            case "and" | "or" | "xor":
                for one, other in (word.operands, word.operands[::-1]):
                    number = self._number(other)
                    if number == 0 and word.opcode == "and":
                        return False, of_values(np.zeros(one.symbols.shape, np.int64))
                    if number == (self._all if word.opcode == "and" else 0):
                        return self._signed(one, depth + 1)
        key = key_of("low", word.opcode, self._bits)
        if word.opcode == "select":
            return self._of_choice(key, word, depth)
        parts = [self.symbols(operand, depth + 1) for operand in word.operands]
        if word.opcode in ("or", "xor"):
            zeros = of_values(np.zeros(parts[0].shape, np.int64))
            for part, rest in (parts, parts[::-1]):
                if np.array_equal(rest, zeros):
                    return False, part
        found = unordered(key, *parts) if word.opcode in _COMMUTATIVE else combined(key, *parts)
        return False, found

    def _of_choice(self, key: np.uint64, word: Word, depth: int) -> tuple[bool, Symbols]:
        mask, *sides = word.operands
        (is_negative, one), (is_other, other) = (self._signed(side, depth + 1) for side in sides)
        if is_negative is is_other and np.array_equal(one, other):
            return is_negative, one
        chosen, otherwise = (self.symbols(side, depth + 1) for side in sides)
        mixture = combined(key, mask.symbols, chosen, otherwise)
        return False, np.where(chosen == otherwise, otherwise, mixture)

    def zeros(self, term: Term, depth: int) -> int:
        """How many low bits of a number are sure to be 0; as many as it has, or more, where all are."""
        if id(term) not in self._zeros:
            self._zeros[id(term)] = self._count_zeros(term, depth)
        return self._zeros[id(term)]

    def _count_zeros(self, term: Term, depth: int) -> int:
        if term.known is not None and term.known.dtype.kind != "f":
            joined = int(np.bitwise_or.reduce(np.asarray(term.known).astype(np.int64), axis=None))
            return (joined & -joined).bit_length() - 1 if joined else 64
        if depth >= _DEEPEST:
            return 0
        if term.sum_of is not None:
            base, number = term.sum_of
            return min(self.zeros(base, depth + 1), (number & -number).bit_length() - 1)
        if term.word is None:
            return 0
        return self._zeros_of_word(term.word, depth + 1)

    def _zeros_of_word(self, word: Word, depth: int) -> int:
        operands = word.operands[1:] if word.opcode == "select" else word.operands
        counts = [self.zeros(operand, depth) for operand in operands]
        match word.opcode:
            case "not":
                return 0
            case "multiply":
                # More than the type has: all that is left is 0, and was known to be.
                return min(sum(counts), word.bits)
            case "and":
                return max(counts)
            case "convert":
                return counts[0] if counts[0] < word.bits else 0
        return min(counts)

    def _known(self, term: Term) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
        if term.known is None or term.known.dtype.kind == "f":
            return None
        return np.asarray(term.known).astype(np.int64) & np.int64(self._all if self._bits < 64 else -1)

    def _number(self, term: Term) -> int | None:
        """What all elements are modulo the power of two, where that is one number."""
        known = self._known(term)
        if known is None or not known.size or (known != known.flat[0]).any():
            return None
        return int(known.flat[0])
