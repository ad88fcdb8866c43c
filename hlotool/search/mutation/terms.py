"""What is known of the arrays of a program that is read as terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers, of_value
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType
from hlotool.search.mutation import predicates
from hlotool.search.mutation.hashing import Symbols, combined, key_of, of_values, unordered
from hlotool.search.mutation.predicates import Predicate

_COMMUTATIVE: Final = opcodes_with(Trait.COMMUTATIVE)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An array as the program computes it.

    Attributes:
        symbols: of its elements.
        bounds: what holds for all its elements.
        known: the elements, where they depend on constants alone.
        divisor: of a remainder, where that is one number everywhere, and not 0.
        divided_by: of a remainder: the symbols of its divisor.
        rest_of: of a remainder: what was divided.
        zero_like: another array that is 0 at the same places, where one is.
        predicate: what a pred says, where more is known than its symbols.
        negated: symbols of what an integer is the negative of.
        cases: what it is where a mask holds, and where not, by the symbol of the mask.
        finite: of an `is-finite`: symbols of what it asks about.
        nan_of: symbols of an array outside of whose infinities and NaNs no element is NaN.
        clamped: what an integer was before it was clamped, and the bounds.
        limited: of a float: what it was before constants limited it, the least and the most that they allow.
        sum_of: of an integer sum, up to a multiple of what its type holds: a term and a constant.
        truncated: of a product with a constant: what was divided by it before.
        at_most: symbols of an array that no element exceeds.
        gathered: of a gather: what it reads, and where.
        word: how an integer was computed, where its low bits depend on the low bits of something only.
    """

    symbols: Symbols
    bounds: MachineRange
    known: Array | None = None
    divisor: int | None = None
    divided_by: Symbols | None = None
    rest_of: Term | None = None
    zero_like: Term | None = None
    predicate: Predicate | None = None
    negated: Symbols | None = None
    cases: Mapping[int, Case] = field(default_factory=dict)
    finite: Symbols | None = None
    nan_of: Symbols | None = None
    clamped: tuple[Term, int, int] | None = None
    limited: tuple[Term, float, float] | None = None
    sum_of: tuple[Term, int] | None = None
    truncated: Truncated | None = None
    at_most: Symbols | None = None
    gathered: Gathered | None = None
    word: Word | None = None

    @property
    def side(self) -> predicates.Side:
        """As it is compared."""
        return predicates.Side(self.symbols, self.bounds, self.at_most)

    @property
    def as_predicate(self) -> Predicate:
        """What a pred says."""
        if self.predicate is not None:
            return self.predicate
        return predicates.mask(self.symbols, self.bounds)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What a term is where a mask holds, and where it does not.

    Attributes:
        mask: the predicate.
        holds: the term where it is true …
        fails: … and where it is false.
        is_asked: whether a proof goes by these two cases: they are kept, however many there are.
    """

    mask: Predicate
    holds: Term
    fails: Term
    is_asked: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """An operation on integers whose low bits are made of low bits.

    Attributes:
        opcode: of the operation.
        operands: of it.
        bits: of the type that the operands have; what is converted may have other ones than the result.
    """

    opcode: str
    operands: Sequence[Term]
    bits: int


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """A gather at one component of start indices.

    Attributes:
        index: its start indices.
        kind: their type.
        limit: the last of them in range.
        rows: puts symbols of indices to the elements of the result that are read there.
        at: gives the term of the gather for other indices.
    """

    index: Term
    kind: ElementType
    limit: int
    rows: Callable[[Symbols], Symbols]
    at: Callable[[Term], Term]


@dataclass(frozen=True, slots=True, eq=False)
class Truncated:
    """An integer that was divided, and perhaps multiplied by the divisor again.

    Attributes:
        value: what was divided.
        divisor: a constant, not 0.
        is_multiple: whether it was multiplied again.
    """

    value: Term
    divisor: int
    is_multiple: bool


#: A term per array shape, a tuple per tuple shape.
Terms: TypeAlias = "Term | tuple[Terms, ...]"
#: The term of an instruction where a law applies to it.
Law: TypeAlias = Callable[[Instruction, Sequence[Term]], "Term | None"]


def elementwise(
    opcode: str, element_type: ElementType, said: Sequence[object], operands: Sequence[Symbols]
) -> Symbols:
    """The symbols of an operation on elements.

    Args:
        opcode: of the operation.
        element_type: of its result.
        said: its attributes, names with values.
        operands: symbols of what it reads.
    """
    key = key_of(opcode, element_type.value, *said)
    return unordered(key, *operands) if opcode in _COMMUTATIVE else combined(key, *operands)


def constant(value: Array) -> Term:
    """The term of a known array."""
    value = np.asarray(value)
    return Term(of_values(value), of_value(value), value)


def of_predicate(predicate: Predicate, dims: tuple[int, ...]) -> Term:
    """The term of a pred.

    Args:
        predicate: what it says.
        dims: of the array.
    """
    if predicate.constant is not None:
        return constant(np.full(dims, predicate.constant))
    return Term(predicate.symbols(dims), of_integers(0, 1), predicate=predicate)


def flat(terms: Terms) -> list[Term]:
    """The terms of all arrays in a tuple."""
    return [terms] if isinstance(terms, Term) else [one for part in terms for one in flat(part)]
