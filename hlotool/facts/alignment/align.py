"""Which instruction of one program stands for which of another, and what differs between the two.

Works for one program before and after a pass, before and after all of them, and for two programs that were
written apart. Evidence: what an instruction computes and what is computed from it (exact, through calls and
fusions), the frontend's names and source lines, shapes, opcodes and names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from itertools import zip_longest

from msgspec import Struct

from hlotool.facts.alignment.matching import Grower, Matching, Pair
from hlotool.facts.alignment.similarity import Side, Table, side_of
from hlotool.ir.attributes import AttributeValue, EmbeddedLiteral
from hlotool.ir.module import Computation, Instruction, Module, computations_in
from hlotool.ir.printed_attributes import value_text
from hlotool.ir.types import strip_layouts


class Alignment(Struct, frozen=True):
    """Two programs and what belongs together.

    Attributes:
        left: one program.
        right: the other.
        matching: pairs of instructions.
        computations: the partner of each computation of the right program, where it has one.
    """

    left: Side
    right: Side
    matching: Matching
    computations: Mapping[Computation, Computation]

    @property
    def pairs(self) -> list[Pair]:
        """All pairs, in the textual order of the right program."""
        order = self.right.graph.position
        found = ((one, other) for other, one in self.matching.left_of.items())
        return sorted(found, key=lambda pair: order[pair[1]])

    @property
    def only_left(self) -> list[Instruction]:
        """Instructions of the left program without a partner, in textual order."""
        return [i for i in self.left.graph.home if i not in self.matching.right_of]

    @property
    def only_right(self) -> list[Instruction]:
        """Instructions of the right program without a partner, in textual order."""
        return [i for i in self.right.graph.home if i not in self.matching.left_of]


def align(left: Module, right: Module) -> Alignment:
    """Match the instructions of two programs, each with one of the other at most.

    Args:
        left: one program, such as the one before a pass.
        right: the other.

    Raises:
        ValueError: a computation calls itself.
    """
    table = Table()
    one, other = side_of(left, table), side_of(right, table)
    matching = Matching()
    _match_nodes(one, other, matching)
    _match_as_written(one, other, matching)
    return Alignment(one, other, matching, _match_computations(one, other, matching))


def _match_nodes(left: Side, right: Side, matching: Matching) -> None:
    """Match what computes something, through calls, fusions and tuples."""
    views = left.graph.through_calls, right.graph.through_calls
    grower = Grower(left, right, matching, views)
    _match_ends(left, right, grower)
    grower.certain(_value_and_context)
    grower.certain(_value)
    grower.certain(_context)
    grower.grow()
    for key in (_value_and_context, _value, _context, _path_and_label, _path_and_opcode, _name_and_opcode):
        grower.sweep(key)


def _match_ends(left: Side, right: Side, grower: Grower) -> None:
    """Entry parameters by number (all, or those whose shapes agree), and the results."""
    ones, others = left.graph.module.entry.parameters, right.graph.module.entry.parameters
    for one, other in zip(ones, others):
        if len(ones) == len(others) or left.prints.labels[one] == right.prints.labels[other]:
            grower.accept(one, other)
    roots = left.graph.module.entry.root, right.graph.module.entry.root
    grower.propose(left.graph.resolve(roots[0]), right.graph.resolve(roots[1]))


def _match_as_written(left: Side, right: Side, matching: Matching) -> None:
    """Match the rest: calls, fusions, their parameters, elements of tuples."""
    views = left.graph.as_written, right.graph.as_written
    grower = Grower(left, right, matching, views)

    def meaning(side: Side, instruction: Instruction) -> Hashable | None:
        """What the instruction stands for: the pair that its value comes from."""
        node = side.graph.resolve(instruction)
        node = node if side is left else matching.left_of.get(node, instruction)
        return None if node is instruction else (node, side.prints.labels[instruction])

    grower.certain(meaning)
    for one, other in list(matching.right_of.items()):
        grower.spread(one, other)
    grower.accept(left.graph.module.entry.root, right.graph.module.entry.root)
    grower.grow()
    for key in (_value, _path_and_opcode, _name_and_opcode):
        grower.sweep(key)


def _value_and_context(side: Side, instruction: Instruction) -> Hashable | None:
    context = side.prints.contexts.get(instruction)
    return None if context is None else (side.prints.values[instruction], context)


def _value(side: Side, instruction: Instruction) -> Hashable | None:
    return side.prints.values[instruction]


def _context(side: Side, instruction: Instruction) -> Hashable | None:
    return side.prints.contexts.get(instruction)


def _path_and_label(side: Side, instruction: Instruction) -> Hashable | None:
    path = side.traits[instruction].path
    return (path, side.prints.labels[instruction]) if path else None


def _path_and_opcode(side: Side, instruction: Instruction) -> Hashable | None:
    tail = side.traits[instruction].tail
    return (tail, instruction.opcode) if tail else None


def _name_and_opcode(side: Side, instruction: Instruction) -> Hashable | None:
    return instruction.name, instruction.opcode


def _match_computations(left: Side, right: Side, matching: Matching) -> dict[Computation, Computation]:
    """Computations whose callers are partners, or else that share most instructions."""
    partners = {right.graph.module.entry: left.graph.module.entry}
    for other, one in matching.left_of.items():
        for callee, other_callee in zip(one.called, other.called):
            _pair(partners, callee, other_callee)
    votes: Counter[tuple[Computation, Computation]] = Counter()
    for other, one in matching.left_of.items():
        votes[left.graph.home[one], right.graph.home[other]] += 1
    for (one_home, other_home), _ in votes.most_common():
        _pair(partners, one_home, other_home)
    return partners


def _pair(partners: dict[Computation, Computation], one: Computation, other: Computation) -> None:
    if other not in partners and one not in partners.values():
        partners[other] = one


#: Attributes whose changes are not shown: where an instruction comes from, and what it is annotated with for
#: debugging. Everything else says what is computed, or how.
UNSEEN = frozenset({"metadata", "origin", "statistics"})


class Change(Struct, frozen=True):
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
    from hlotool.ir.printed_literals import literal_text

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
            yield Change(name, _shown_value(one, name), _shown_value(other, name))


def _equal(alignment: Alignment, a: AttributeValue | None, b: AttributeValue | None) -> bool:
    ones, others = computations_in(a), computations_in(b)
    if ones and others:
        partners = tuple(alignment.computations.get(other) for other in others)
        return ones == partners
    if isinstance(a, EmbeddedLiteral) and isinstance(b, EmbeddedLiteral):
        return a.literal.key == b.literal.key
    return a == b


def _shown_value(instruction: Instruction, name: str) -> str:
    value = instruction.attributes.get(name)
    if value is None:
        return ""
    if called := computations_in(value):
        return ", ".join(f"%{c.name}" for c in called)
    return value_text(instruction.opcode, name, value)
