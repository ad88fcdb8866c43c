"""What is known of the arrays of a program that is read as terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from hlotool.analysis.machine_range import MachineRange
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType
from hlotool.search.mutation.hashing import Symbols, combined, key_of, unordered, whole

_COMMUTATIVE: Final = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An array as the program computes it.

    Attributes:
        symbols: of its elements.
        bounds: what holds for all its elements.
        known: the elements, where they depend on constants alone.
        divisor: of a remainder, where that is one positive number everywhere.
        zero_like: symbols of an array that is 0 at the same places, where another one is.
        compared: of a comparison with 0: symbols of what is compared, and the direction.
        negated: symbols of what an integer is the negative of.
        cases: by the symbol of a mask: the symbols where it holds, and where it does not.
        finite: of an `is-finite`: symbols of what it asks about.
        nan_of: symbols of an array outside of whose infinities and NaNs no element is NaN.
        clamped: what an integer was before it was clamped, and the bounds.
    """

    symbols: Symbols
    bounds: MachineRange
    known: Array | None = None
    divisor: int | None = None
    zero_like: Symbols | None = None
    compared: tuple[Symbols, str] | None = None
    negated: Symbols | None = None
    cases: Mapping[int, tuple[Symbols, Symbols]] = field(default_factory=dict)
    finite: Symbols | None = None
    nan_of: Symbols | None = None
    clamped: tuple[Term, int, int] | None = None


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


def equality(one: Symbols, other: Symbols) -> int:
    """The symbol of the mask that holds where two arrays of integers are equal, in either order."""
    return int(whole(np.asarray(unordered(key_of("equal"), one, other))))


def flat(terms: Terms) -> list[Term]:
    """The terms of all arrays in a tuple."""
    return [terms] if isinstance(terms, Term) else [one for part in terms for one in flat(part)]
