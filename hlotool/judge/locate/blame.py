"""What is to blame for a difference of two programs, and how it is said to the user.

A value that differs is made of others, up to those that both programs have: all between is to blame, and
what the right program has in its place. Where every value is right, it is what hands on the wrong one: a
tuple, a loop that ends at another iteration, a conditional that takes another branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from hlotool.facts.dataflow import source_of
from hlotool.inputs.frames import (
    FORMS,
    Node,
    Parts,
    calls_around,
    made,
    operand_nodes,
    operand_uses,
)
from hlotool.inputs.recorded_values import Sample
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.ir.types import ArrayShape, subshape
from hlotool.judge.locate.likeness import rounding_of_one
from hlotool.judge.locate.origins import backwards, is_constant, is_parameter, operands_first
from hlotool.judge.locate.pairing import Pairing, assembled
from hlotool.judge.locate.recording import Execution
from hlotool.judge.metrics import Metrics, element_record, measure
from hlotool.judge.records import DeviationRecord, NeighbourRecord
from hlotool.judge.tolerance import Tolerance, derive, leaf_scale
from hlotool.system.records import SourceRecord, finite_or_none


def source_in(execution: Execution, node: Node) -> SourceRecord:
    """Where a node comes from in the user's program, and its place in the HLO text."""
    calls = [execution.originals[call] for _, call in calls_around(node.frame)]
    return source_of(execution.original, (*calls, execution.originals[node.instruction]))


def text_in(execution: Execution, node: Node) -> str:
    """A node as HLO, on one line."""
    return print_instruction(execution.originals[node.instruction], SHORT)


def around(execution: Execution, node: Node) -> list[str]:
    """`fusion %f`, `while %loop, iteration 3`: the calls around an instruction, innermost first.

    A constant is the same in all iterations.
    """
    texts = []
    frame, is_constant = node.frame, node.instruction.opcode == "constant"
    for outer, call in reversed(calls_around(node.frame)):
        text = f"{call.opcode} %{execution.originals[call].name}"
        if call.opcode == "while" and not is_constant:
            text += f", iteration {frame.iteration + 1}"
        texts.append(text)
        frame = outer
    return texts


def difference(expected: Array | Parts | None, actual: Array | Parts | None, node: Node) -> Metrics | None:
    """How far two values are apart element by element, as far as they can be compared so.

    Args:
        expected: the value as it should be.
        actual: the value as it is.
        node: that it is the value of.
    """
    shape = subshape(node.instruction.shape, node.index)
    if isinstance(expected, Parts) and isinstance(actual, Parts):
        pairs = ((e, a) for e, a in zip(expected, actual) if e.tobytes() != a.tobytes())
        expected, actual = next(pairs, (expected[0], actual[0]))
    if isinstance(actual, Parts) and expected is not None and not isinstance(expected, Parts):
        actual = assembled(actual, expected, ())
    if expected is None or actual is None or not isinstance(shape, ArrayShape):
        return None
    if isinstance(expected, Parts) or isinstance(actual, Parts):
        return None
    if _squeezed(expected.shape) != _squeezed(actual.shape):
        return None
    dtype = dtype_of(shape.element_type)
    with np.errstate(invalid="ignore"):
        e, a = expected.astype(dtype).reshape(actual.shape), actual.astype(dtype)
    tolerance = derive(shape.element_type)
    if unit := rounding_of_one(shape):
        tolerance = Tolerance(unit * leaf_scale(e, a), unit, reason="one operation")
    return measure(e, a, shape.element_type, tolerance)


def _squeezed(dims: tuple[int, ...]) -> list[int]:
    return [size for size in dims if size != 1]


def deviation_record(metrics: Metrics | None, is_wide: bool = False) -> DeviationRecord | None:
    """A difference as a record; ulps of f64 say nothing of a program that was declared in f32."""
    if metrics is None:
        return None
    worst = element_record(metrics.top[0] if metrics.top else metrics.worst_absolute)
    if worst is not None and is_wide:
        worst = msgspec.structs.replace(worst, ulps=None)
    return DeviationRecord(
        total=metrics.total,
        mismatched=metrics.mismatched,
        absolute=finite_or_none(float(metrics.worst_absolute.absolute)) if metrics.worst_absolute else None,
        ulps=None if is_wide else metrics.max_ulp,
        worst=worst,
    )


# Single elements of arrays as records.


#: How far before the accused instruction, in operations.
_BEFORE = 3
#: Readers behind it that are named.
_READERS = 4
#: Characters of a text; a tuple may have thousands of operands.
_LONGEST = 400
#: More is no picture any more.
_MOST = 24


def neighbourhood(
    execution: Execution, place: Node, state: Callable[[Node], str] = lambda node: ""
) -> list[NeighbourRecord]:
    """The instruction at `place`, what it is made of, and what reads it, nearest first.

    Args:
        execution: that `place` is of.
        place: the accused instruction.
        state: what is known of an operand that is read: `agrees`, `differs`, `unknown` or nothing.
    """
    distances, states = {place: 0}, {place: ""}
    todo = [place]
    for node in todo:
        if distances[node] == _BEFORE or node.instruction.opcode == "constant":
            continue
        for use in operand_uses(node):
            source = made(use)
            if source not in distances and len(todo) < _MOST:
                distances[source] = distances[node] + 1
                states[source] = state(use)
                todo.append(source)
    for reader in _readers(place)[:_READERS]:
        distances.setdefault(reader, -1)
    found = []
    for node, distance in distances.items():
        read = [_name(execution, source) for source in operand_nodes(node) if source in distances]
        found.append(
            NeighbourRecord(
                instruction=_name(execution, node),
                opcode=execution.originals[node.instruction].opcode,
                text=text_in(execution, node)[:_LONGEST],
                operands=list(dict.fromkeys(read)),
                distance=distance,
                state=states.get(node, ""),
            )
        )
    return found


def _readers(place: Node) -> list[Node]:
    """Instructions that read the result, or that of the call whose result it is."""
    frame, read = place.frame, place.instruction
    while read is frame.computation.root and frame.caller is not None:
        frame, read = frame.caller
    return [
        Node(frame, instruction)
        for instruction in frame.computation.instructions
        if read in instruction.operands
    ]


def _name(execution: Execution, node: Node) -> str:
    return execution.originals[node.instruction].name


#: Operations of the right program that are kept to show what a pass was given, even where it kept a value.
OWN_WAY = 24

#: Values that both programs have, and what each is in the right one; None where only its bits are there.
Matches: TypeAlias = dict[Node, Node | None]


class Blame(Struct, frozen=True):
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
