"""What is to blame for a difference of two programs: operations, choices of a path, wrong wiring.

A value that differs is made of others, up to those that both programs have: all between is to blame, and
what the right program has in its place. Where every value is right, it is what hands on the wrong one: a
tuple, a loop that ends at another iteration, a conditional that takes another branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.inputs.frames import FORMS, Node, operand_nodes
from hlotool.inputs.recorded_values import Sample
from hlotool.judge.locate.origins import backwards, is_constant, is_parameter, operands_first
from hlotool.judge.locate.pairing import Pairing

#: Operations of the right program that are kept to show what a pass was given, even where it kept a value.
OWN_WAY = 24

#: Values that both programs have, and what each is in the right one; None where only its bits are there.
Matches: TypeAlias = dict[Node, Node | None]


@dataclass(frozen=True, slots=True)
class Blame:
    """The spot where two programs part.

    Attributes:
        before: the value in the one program.
        after: what stands for it in the other one, and differs.
        members_before: the operations that make `before` of the inputs, operands first; `before` is the last.
        members_after: likewise for `after`.
        inputs: values that both programs have: in the one, in the other, or both.
        wiring: what hands on the wrong one of right values; None when a value is wrong.
        amplified: a later pair that differs because a difference as small as rounding grows in it.
        reader: what reads `after`, where that may be right, but not what should be read.
    """

    before: Node
    after: Node
    members_before: tuple[Node, ...]
    members_after: tuple[Node, ...]
    inputs: tuple[tuple[Node | None, Node | None], ...]
    wiring: Node | None = None
    amplified: tuple[Node, Node] | None = None
    reader: Node | None = None


def handing(one: Node, alike: Node | None, other: Node, place: Node) -> Blame:
    """The blame of what hands on `other`, which the right program has as `alike`, instead of `one`."""
    return Blame(one, other, (), (), ((one, None), (alike, other)), place)


def is_done(pairing: Pairing, one: Node, operand: Node) -> bool:
    """Whether an operand is already what should come out, made in the same way."""
    is_alike = operand.instruction.opcode == one.instruction.opcode and not is_constant(one)
    return is_alike and pairing.agree(one, operand) and pairing.agree_elsewhere(one, operand)


def members_of(pairing: Pairing, one: Node, other: Node) -> tuple[list[Node], Matches]:
    """What `other` is made of, up to values that both programs have, breadth first; and these."""
    is_wrong = pairing.differ(one, other)
    done = (node for node in operand_nodes(other) if is_wrong and is_done(pairing, one, node))
    matches: Matches = dict.fromkeys(done, one)
    members: list[Node] = []
    for node in backwards(other, matches):
        if node in matches:
            continue
        if node is not other and node.instruction.opcode != "constant":
            twin = pairing.twin_before(node)
            if twin is None or twin == one or not pairing.agree(twin, node):
                twin = pairing.equal_value(node, one)
            if twin is not None:
                matches[node] = twin
                continue
            if pairing.has_bits(node, one):
                matches[node] = None
                continue
        members.append(node)
    return members, matches


def blame_of(pairing: Pairing, one: Node, other: Node, members: Sequence[Node], matches: Matches) -> Blame:
    """The blame of a region, completed on the side of the right program."""
    ends = {twin: node for node, twin in reversed(matches.items()) if twin is not None}
    # Several values of the one side may be the same value of the other.
    pairs: list[tuple[Node | None, Node | None]] = [
        (twin if twin is not None and ends[twin] == node else None, node) for node, twin in matches.items()
    ]
    known = len(ends)
    inside = _own_way(one, ends)
    if inside is None:
        inside = _until_agreement(pairing, one, ends)
    pairs += list(ends.items())[known:]
    pairs += [(node, None) for node in inside if is_parameter(node)]
    pairs += [(None, node) for node in members if is_parameter(node)]
    return Blame(
        one,
        other,
        operands_first(one, [n for n in inside if not is_parameter(n)]),
        operands_first(other, [n for n in members if not is_parameter(n)]),
        tuple(dict.fromkeys(pairs)),
    )


def _until_agreement(pairing: Pairing, one: Node, ends: dict[Node, Node]) -> list[Node]:
    """What makes `one` of values that both programs have; these are added to `ends`."""
    inside: list[Node] = []
    for node in backwards(one, ends):
        if node in ends:
            continue
        twin = pairing.twin_after(node) if node.instruction.opcode != "constant" else None
        if node is not one and twin is not None and pairing.agree(node, twin):
            ends[node] = twin
            continue
        inside.append(node)
    return inside


def is_mere_form(node: Node) -> bool:
    """Whether an operation gives a value other dimensions and leaves all of its bits as they are."""
    kept = [n.kept for n in (node, *operand_nodes(node))]
    digests = {each.digest for each in kept if isinstance(each, Sample)}
    return node.instruction.opcode in FORMS and len(kept) == 2 and len(digests) == 1


def _own_way(one: Node, known: dict[Node, Node]) -> list[Node] | None:
    """All that makes `one` of known values: the pattern that the pass found; None when it is long."""
    inside: list[Node] = []
    for node in backwards(one, known):
        if node not in known:
            inside.append(node)
        if len(inside) > OWN_WAY:
            return None
    return inside
