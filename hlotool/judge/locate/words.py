"""Nodes, differences and what stands around an accused instruction, as the user knows them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from hlotool.facts.provenance import source_of
from hlotool.inputs.frames import Node, Parts, calls_around, made, operand_nodes, operand_uses
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.ir.types import ArrayShape, subshape
from hlotool.judge.locate.likeness import rounding_of_one
from hlotool.judge.locate.pairing import assembled
from hlotool.judge.locate.recording import Execution
from hlotool.judge.metrics import Element, Metrics, Scalar, measure
from hlotool.judge.records import DeviationRecord, ElementRecord, NeighbourRecord
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


def element_record(element: Element | None) -> ElementRecord | None:
    """One element of a comparison."""
    if element is None:
        return None
    return ElementRecord(
        index=list(element.index),
        expected=scalar_text(element.expected),
        actual=scalar_text(element.actual),
        absolute=finite_or_none(element.absolute),
        relative=finite_or_none(element.relative),
        ulps=element.ulps,
    )


def scalar_text(value: Scalar) -> str:
    """`true`, `-7`, `0.1`, `nan`, `1+2j`: nine digits tell every f32 apart."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"{value.real:.9g}{value.imag:+.9g}j"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


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
