"""Suspected instructions put to the test: on expected operands, and replaced by what is expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, strip_layouts
from hlotool.ir.walk import reachable
from hlotool.numerics.metrics import Metrics, measure
from hlotool.replay.agreement import one_operation
from hlotool.replay.divergence import Comparison, Divergence
from hlotool.replay.repair import Errors

#: What cannot be taken out of its program and run alone.
_NOT_ALONE = frozenset({"while", "conditional", "call", "fusion", "parameter", "rng", "infeed", "recv"})

#: A repaired program that takes so much longer than the program did does not end, or might as well not.
_LONGER, _LEAST_SECONDS = 4.0, 1.0


@dataclass(frozen=True, slots=True)
class Trial:
    """A divergence and what tests say of it.

    Attributes:
        divergence: what was tested.
        accumulated: its value in the tested execution against the expected one.
        local: its value on expected operands against the expected one; None where that cannot be computed.
        repaired: how many outputs agree once it does what is expected; None where that could not be tried.
        repair: what was put in its place, in words.
    """

    divergence: Divergence
    accumulated: Metrics | None
    local: Metrics | None
    repaired: int | None = None
    repair: str = ""

    @property
    def is_locally_wrong(self) -> bool | None:
        """Whether it computes something else from the same operands; None when that is not known."""
        if self.divergence.instruction.opcode == "constant":
            return True
        return None if self.local is None else self.local.mismatched > 0


def examine(comparison: Comparison, divergence: Divergence, errors: Errors, backend: str) -> Trial:
    """Test one suspect.

    Args:
        comparison: of the two executions.
        divergence: the suspect.
        errors: of the outputs that differ.
        backend: that runs the tested program.
    """
    node, one, at = divergence.instruction, divergence.counterpart, divergence.iteration
    expected = comparison.reference.recording.value(one, comparison.expected_at(node, at))
    actual = comparison.tested_value(node, at, expected)
    local = _local(comparison, divergence, expected, backend)
    repaired = None
    for words, changes in _repairs(comparison, divergence, expected):
        repaired = _repaired(comparison, node, changes, errors)
        if repaired:
            return Trial(divergence, _measure(node, expected, actual), local, repaired, words)
    return Trial(divergence, _measure(node, expected, actual), local, repaired)


def _measure(node: Instruction, expected: Array | None, actual: Array | None) -> Metrics | None:
    """The difference of two values as far as they can be compared element by element."""
    shape = node.shape
    if expected is None or actual is None or not isinstance(shape, ArrayShape):
        return None
    if _squeezed(expected.shape) != _squeezed(actual.shape):
        return None
    dtype = dtype_of(shape.element_type)
    e, a = expected.astype(dtype).reshape(actual.shape), actual.astype(dtype)
    return measure(e, a, shape.element_type, one_operation(shape.element_type, e, a))


def _local(
    comparison: Comparison, divergence: Divergence, expected: Array | None, backend: str
) -> Metrics | None:
    """The suspect's value on the operands that the reference had."""
    node = divergence.instruction
    operands = comparison.alignment.right.graph.operands[node]
    if node.opcode in _NOT_ALONE or not operands or not isinstance(node.shape, ArrayShape):
        return None
    values = [_golden(comparison, operand, divergence.iteration) for operand in operands]
    arguments = [value for value in values if value is not None]
    if expected is None or len(arguments) < len(values):
        return None
    try:
        value = get_backend(backend).compile(_alone(node, operands)).run(arguments)
    except HlotoolError:
        return None
    return _measure(node, expected, np.asarray(value))


def _golden(comparison: Comparison, operand: Instruction, iteration: tuple[int, ...]) -> Array | None:
    """What the reference has for an operand of the tested program, in the operand's type and dimensions."""
    one, shape = comparison.counterparts.get(operand), operand.shape
    if not isinstance(shape, ArrayShape):
        return None
    if operand in comparison.tested.module.entry.parameters or (one is None and operand.opcode == "constant"):
        return comparison.tested.recording.value(operand, ())
    if one is None:
        return None
    samples = comparison.tested.recording.samples.get(operand, {})
    at = iteration[: len(next(iter(samples), ()))]
    value = comparison.reference.recording.value(one, comparison.expected_at(operand, at))
    if value is None or value.size != shape.size:
        return None
    return value.astype(dtype_of(shape.element_type)).reshape(shape.dims)


def _alone(node: Instruction, operands: Sequence[Instruction]) -> Module:
    """A program of one instruction, which takes its operands as parameters."""
    parameters = [
        Instruction(f"p{number}", "parameter", operand.shape, parameter_number=number)
        for number, operand in enumerate(operands)
    ]
    root = Instruction(node.name, node.opcode, node.shape, tuple(parameters), node.attributes)
    entry = Computation("entry", [*parameters, root], root)
    return Module("alone", reachable(entry), entry)


def _repairs(
    comparison: Comparison, divergence: Divergence, expected: Array | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What could stand in the suspect's place: the expected value, or the expected instruction."""
    node, one = divergence.instruction, divergence.counterpart
    for operands in _operands_like(comparison, divergence):
        yield (
            f"the reference's {one.opcode}",
            {
                "opcode": one.opcode,
                "operands": operands,
                "attributes": dict(one.attributes),
                "literal": one.literal,
            },
        )
    samples = comparison.reference.recording.samples.get(one, {})
    shape = node.shape
    if expected is None or not isinstance(shape, ArrayShape):
        return
    if _squeezed(expected.shape) != _squeezed(shape.dims):
        return
    if len({sample.digest for sample in samples.values()}) == 1:
        literal = Literal(shape, _fitted(expected, shape))
        changes = {"opcode": "constant", "operands": (), "attributes": {}, "literal": literal}
        yield "the expected value", changes


def _squeezed(dims: Sequence[int]) -> list[int]:
    return [size for size in dims if size != 1]


def _fitted(value: Array, shape: ArrayShape) -> Array:
    return np.ascontiguousarray(value.astype(dtype_of(shape.element_type))).reshape(shape.dims)


def _operands_like(comparison: Comparison, divergence: Divergence) -> Iterator[tuple[Instruction, ...]]:
    """The suspect's operands in the places that its counterpart has them; then as they are."""
    left, right = comparison.alignment.left, comparison.alignment.right
    node, one = divergence.instruction, divergence.counterpart
    if not node.operands or strip_layouts(node.shape) != strip_layouts(one.shape):
        return
    places = {comparison.counterparts.get(right.graph.resolve(o)): o for o in node.operands}
    found = [places.get(operand) for operand in left.graph.operands[one]]
    chosen = tuple(operand for operand in found if operand is not None)
    if len(chosen) == len(found) and _suits(chosen, one):
        yield chosen
    if left.prints.labels[one] != right.prints.labels[node] and _suits(node.operands, one):
        yield node.operands


def _suits(operands: Sequence[Instruction], one: Instruction) -> bool:
    """Whether `one` could take these operands."""
    return len(operands) == len(one.operands) and all(
        strip_layouts(a.shape) == strip_layouts(b.shape) for a, b in zip(operands, one.operands)
    )


def _repaired(comparison: Comparison, node: Instruction, changes: dict[str, Any], errors: Errors) -> int:
    """How many outputs are right with the changed instruction; none when it cannot be run."""
    tested = comparison.tested
    try:
        with _changed(node, changes):
            return errors.repaired(tested.again(max(_LEAST_SECONDS, _LONGER * tested.seconds)))
    except HlotoolError:
        return 0


@contextmanager
def _changed(node: Instruction, changes: dict[str, Any]) -> Iterator[None]:
    before = {name: getattr(node, name) for name in changes}
    try:
        for name, value in changes.items():
            setattr(node, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(node, name, value)
