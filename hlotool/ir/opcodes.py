"""What opcodes are: the rows of the opcode table, and which opcodes a fact is true of.

What is done about an opcode (a kernel, a shape, a law of ranges) is a rule and stands in its room; what the
opcode is stands in `opcode_table.py` alone: `opcodes_with` says which opcodes a fact is true of.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from hlotool.ir.attribute_kinds import ATTRIBUTE_KINDS, COMMON_ATTRIBUTES, SPECIAL_KINDS, Kind
from hlotool.ir.opcode_table import TABLE
from hlotool.ir.types import TypeClass

#: Whatever is known of opcodes elsewhere: a shape rule, what writes a kernel, a cost.
_Rule = TypeVar("_Rule")


class Class(enum.Enum):
    """What an opcode does to its operands."""

    ELEMENTWISE = "elementwise"
    DATA_MOVEMENT = "data movement"
    INDEXING = "indexing"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    CONTROL = "control flow"
    TUPLE = "tuple"
    COLLECTIVE = "collective"
    HOST = "host transfer"
    RANDOM = "random"
    LIBRARY = "library"
    SOURCE = "source"
    DYNAMIC = "dynamic shape"
    ANNOTATION = "annotation"


class Trait(enum.Enum):
    """A fact about an opcode; its value is the word that rows state it by."""

    # How the numbers of the result come about: one of the first five for each elementwise opcode.
    #: Results on floats need no rounding: numbers are chosen, split, or change their sign.
    EXACT = "exact"
    #: Defined for integers only, and exact.
    INTEGER = "integer"
    #: A formula of arithmetic, rounded.
    ROUNDS = "rounds"
    #: What XLA counts as a transcendental operation.
    TRANSCENDENTAL = "transcendental"
    #: Applies a computation to elements.
    APPLIES = "applies"
    #: Nothing is computed: elements go to places that shapes and attributes decide.
    MOVES = "moves"
    #: Of those, with all elements of the operand, in dimensions that are split, joined, permuted or added.
    REGROUPS = "regroups"
    #: Of those, in the same row-major order.
    SAME_ORDER = "same-order"
    #: Elements go where data decides, or to another device or memory.
    PLACES = "places"
    #: Numbers are made of nothing, of a hidden state or of the position in the array.
    MAKES = "makes"
    #: The value is that of the first operand.
    FORWARDS = "forwards"
    #: Holds a computation together; nothing runs.
    STRUCTURE = "structure"
    #: Says what happens before what.
    ORDERS = "orders"
    #: Asks or changes what size a dimension has.
    SIZES = "sizes"

    # Laws.
    #: Operands may change places.
    COMMUTATIVE = "commutative"
    #: Associative, but for rounding, with a neutral element (`OpcodeRow.identity`).
    ASSOCIATIVE = "associative"
    #: Of equal operands the result is that operand.
    IDEMPOTENT = "idempotent"
    #: The larger or the smaller of two.
    EXTREMUM = "extremum"
    #: The result is one of the operands, or decided by comparing them.
    COMPARES = "compares"
    #: Bit by bit.
    BITWISE = "bitwise"
    SHIFTS = "shifts"
    #: To one of the whole numbers beside.
    TO_INTEGER = "to-integer"
    #: The number of the operand, at most rounded.
    CONVERTS = "converts"
    #: f(-x) is -f(x), or f(x).
    ODD = "odd"
    EVEN = "even"
    #: Infinite at zero, at one or at other isolated points.
    SINGULAR = "singular"
    #: As a function of real numbers, continuous nowhere or not everywhere.
    JUMPS = "jumps"
    #: Comes as close to ±1 as its type can hold, and never gets there.
    SATURATES = "saturates"
    #: Made of exponentials.
    EXPONENTIAL = "exponential"
    #: Takes roots.
    ROOT = "root"
    #: Made of several operations by XLA's expanders, for any type.
    EXPANDED = "expanded"

    # Calls.
    #: The operands are the parameters of a computation that runs once; its result is the result.
    INLINED = "inlined"
    #: The computations that are called decide what runs next.
    CONTROL_FLOW = "control-flow"
    #: Combines many elements by a computation.
    COMBINES = "combines"
    ASYNC = "async"
    #: The first half of a pair, and the second.
    STARTS = "starts"
    FINISHES = "finishes"

    #: Beside what is transcendental: an element takes a function of a library or a walk through indices.
    COSTLY = "costly"

    # What is outside of the program.
    #: Made by passes: StableHLO has no word for it.
    LATE = "late"
    #: Acts on something outside, or draws from a hidden state.
    SIDE_EFFECT = "side-effect"
    #: The operands do not determine the result, or it is not known how.
    UNDETERMINED = "undetermined"
    #: Text must state its shape. XLA: CanInferShape.
    STATES_SHAPE = "states-shape"


#: How the numbers of an elementwise result come about: one of these; and how any result does: one at least.
ARITHMETIC = frozenset({Trait.EXACT, Trait.INTEGER, Trait.ROUNDS, Trait.TRANSCENDENTAL, Trait.APPLIES})
_ORIGINS = ARITHMETIC | {
    *(Trait.MOVES, Trait.PLACES, Trait.MAKES, Trait.FORWARDS, Trait.STRUCTURE, Trait.ORDERS, Trait.SIZES),
    *(Trait.INLINED, Trait.CONTROL_FLOW, Trait.ASYNC, Trait.UNDETERMINED),
}


class Identity(enum.Enum):
    """The neutral element of an associative operation."""

    ZERO = "0"
    ONE = "1"
    LOWEST = "the lowest value"
    HIGHEST = "the highest value"
    ALL_BITS = "all bits set"


@dataclass(frozen=True, slots=True)
class OpcodeRow:
    """What every part of hlotool needs to know of one opcode.

    Attributes:
        name: in HLO text.
        min_operands: fewest operands.
        max_operands: most operands, None for any number.
        opcode_class: what it does.
        traits: the facts that are true of it.
        required: attributes that must be there.
        optional: attributes that may be there, besides the common ones.
        anchor: section of XLA's operation_semantics.md, or the header that defines it.
        identity: the neutral element of what is associative.
        carries: first and end of the operands whose elements are elements of the result, at most rounded.
        families: of the types that the first operand of an elementwise opcode may have; empty means any.

    Raises:
        ValueError: nothing is stated of it, or not what its class or another trait asks for.
    """

    name: str
    min_operands: int
    max_operands: int | None
    opcode_class: Class
    traits: frozenset[Trait]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    anchor: str = ""
    identity: Identity | None = None
    carries: tuple[int | None, int | None] = (0, 0)
    families: frozenset[TypeClass] = frozenset()

    def __post_init__(self) -> None:
        if not self.traits & _ORIGINS:
            raise ValueError(f"{self.name}: no trait in the opcode table says how its result comes about")
        if self.opcode_class is Class.ELEMENTWISE and len(self.traits & ARITHMETIC) != 1:
            words = ", ".join(sorted(trait.value for trait in ARITHMETIC))
            raise ValueError(f"{self.name}: an elementwise opcode has one of the traits {words}")
        if (Trait.ASSOCIATIVE in self.traits) is (self.identity is None):
            raise ValueError(f"{self.name}: what is associative has a neutral element, and nothing else")

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes of its own."""
        return self.required + self.optional

    def carried(self, count: int) -> range:
        """Which of `count` operands have elements that are elements of the result, at most rounded."""
        return range(count)[slice(*self.carries)]


@cache
def opcodes_with(*facts: Trait | Class) -> frozenset[str]:
    """The opcodes that have one of `facts`."""
    return frozenset(
        name for name, row in OPCODES.items() if row.opcode_class in facts or not row.traits.isdisjoint(facts)
    )


@cache
def opcodes_taking(attribute: str) -> frozenset[str]:
    """The opcodes that may have an attribute of that name."""
    return frozenset(name for name, row in OPCODES.items() if attribute in row.attributes)


def by_name(rules: dict[str, _Rule], names: Iterable[str]) -> Callable[[_Rule], _Rule]:
    """Enter what is decorated into `rules` under each of `names`; ValueError where something stands."""

    def register(rule: _Rule) -> _Rule:
        for name in names:
            if name in rules:
                raise ValueError(f"{name!r} has two rules")
            rules[name] = rule
        return rule

    return register


def by_opcode(rules: dict[str, _Rule], opcodes: Iterable[str]) -> Callable[[_Rule], _Rule]:
    """`by_name` for rules of opcodes; ValueError for one that is not in the table."""
    opcodes = tuple(opcodes)
    if unknown := [opcode for opcode in opcodes if opcode not in OPCODES]:
        raise ValueError(f"{unknown[0]!r} is not in the opcode table (hlotool/ir/opcode_table.py)")
    return by_name(rules, opcodes)


def attribute_kind(opcode: str, attribute: str) -> Kind | None:
    """How `attribute` is written on `opcode`, or None when the opcode does not take it."""
    if attribute in COMMON_ATTRIBUTES:
        return COMMON_ATTRIBUTES[attribute]
    row = OPCODES.get(opcode)
    if row is None or attribute not in row.attributes:
        return None
    return SPECIAL_KINDS.get((opcode, attribute), ATTRIBUTE_KINDS[attribute])


_FAMILIES = {family.value[0]: family for family in TypeClass}


def rows(table: str) -> Iterator[OpcodeRow]:
    """The rows of a text like `TABLE`; ValueError or KeyError for a word that is none."""
    opcode_class = Class.ELEMENTWISE
    for line in table.strip().splitlines():
        if line.startswith("["):
            opcode_class = Class(line.strip("[]"))
            continue
        head, facts, required, optional = (part.split() for part in f"{line} | |".split("|")[:4])
        name, operands, anchor = head
        low, _, high = operands.replace("any", "0+").replace("+", "-").partition("-")
        most = int(high) if high else None if operands[-1] in "+y" else int(low)
        stated = dict(word.split("=") for word in facts if "=" in word)
        first, _, end = stated.get("carries", "0:0").partition(":")
        yield OpcodeRow(
            name,
            int(low),
            most,
            opcode_class,
            frozenset(Trait(word) for word in facts if "=" not in word),
            tuple(required),
            tuple(optional),
            anchor,
            Identity[stated["identity"].upper().replace("-", "_")] if "identity" in stated else None,
            (int(first) if first else None, int(end) if end else None),
            frozenset(_FAMILIES[letter] for letter in stated.get("on", "")),
        )


OPCODES: dict[str, OpcodeRow] = {row.name: row for row in rows(TABLE)}
