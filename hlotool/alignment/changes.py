"""What differs between two instructions that are partners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from hlotool.alignment.align import Alignment
from hlotool.ir.attributes import AttributeValue, EmbeddedLiteral
from hlotool.ir.module import Instruction, computations_in
from hlotool.ir.printing.attributes import value_text
from hlotool.ir.types import strip_layouts

#: Attributes whose changes are not shown: where an instruction comes from, and what it is annotated with for
#: debugging. Everything else says what is computed, or how.
UNSEEN = frozenset({"metadata", "origin", "statistics"})


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs.

    Attributes:
        what: `opcode`, `shape`, `layout`, `operands`, `value`, `parameter number`, or an attribute's name.
        left: as text.
        right: as text.
    """

    what: str
    left: str
    right: str


def changes(alignment: Alignment, one: Instruction, other: Instruction) -> list[Change]:
    """Everything that differs between partners, names and metadata apart."""
    found = list(_own_changes(one, other))
    found += _operand_changes(alignment, one, other)
    return found + list(_attribute_changes(alignment, one, other))


def _own_changes(one: Instruction, other: Instruction) -> Iterator[Change]:
    if one.opcode != other.opcode:
        yield Change("opcode", one.opcode, other.opcode)
    if one.shape != other.shape:
        logical = strip_layouts(one.shape), strip_layouts(other.shape)
        if logical[0] != logical[1]:
            yield Change("shape", str(logical[0]), str(logical[1]))
        elif _said(str(one.shape), str(logical[0])) and _said(str(other.shape), str(logical[1])):
            yield Change("layout", str(one.shape), str(other.shape))
    if one.parameter_number != other.parameter_number:
        yield Change("parameter number", _text(one.parameter_number), _text(other.parameter_number))
    if one.literal is None or other.literal is None:
        return
    if one.literal.key != other.literal.key:
        yield Change("value", _literal_text(one), _literal_text(other))


def _said(text: str, logical: str) -> bool:
    """Whether a text says anything of layouts; before layout assignment programs do not."""
    return text != logical


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _literal_text(instruction: Instruction) -> str:
    from hlotool.ir.printing.literals import literal_text

    assert instruction.literal is not None
    return literal_text(instruction.literal, False)


def _operand_changes(alignment: Alignment, one: Instruction, other: Instruction) -> Iterator[Change]:
    """Operands that are not partners, seen as written and through calls."""
    left, right = alignment.left.graph, alignment.right.graph
    partners = alignment.matching
    for number, (a, b) in enumerate(zip_longest(one.operands, other.operands)):
        both = a is not None and b is not None
        if both and (partners.is_pair(a, b) or partners.is_pair(left.resolve(a), right.resolve(b))):
            continue
        yield Change(f"operand {number}", f"%{a.name}" if a else "", f"%{b.name}" if b else "")


def _attribute_changes(alignment: Alignment, one: Instruction, other: Instruction) -> Iterator[Change]:
    for name in sorted({*one.attributes, *other.attributes} - UNSEEN):
        a, b = one.attributes.get(name), other.attributes.get(name)
        if not _equal(alignment, a, b):
            yield Change(name, _value(one, name), _value(other, name))


def _equal(alignment: Alignment, a: AttributeValue | None, b: AttributeValue | None) -> bool:
    ones, others = computations_in(a), computations_in(b)
    if ones and others:
        partners = tuple(alignment.computations.get(other) for other in others)
        return ones == partners
    if isinstance(a, EmbeddedLiteral) and isinstance(b, EmbeddedLiteral):
        return a.literal.key == b.literal.key
    return a == b


def _value(instruction: Instruction, name: str) -> str:
    value = instruction.attributes.get(name)
    if value is None:
        return ""
    if called := computations_in(value):
        return ", ".join(f"%{c.name}" for c in called)
    return value_text(instruction.opcode, name, value)
