"""Whether results get right when an operation does what it should.

The accused operation is replaced in the program that was executed: by that of the right program, or by the
value that it should have; and the whole program is run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.field.marked import compared, is_marked
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, strip_layouts
from hlotool.locate.blame import Blame
from hlotool.locate.embedded import embedded_difference, holds_computation, same_operation
from hlotool.locate.evaluation import fitted
from hlotool.locate.execution import Execution
from hlotool.locate.frames import Node, frames_of, made
from hlotool.locate.pairing import Pairing
from hlotool.locate.store import Sample
from hlotool.numerics import thresholds
from hlotool.numerics.patterns import typical_magnitude
from hlotool.values.flatten import flatten

#: Words for a repair that shows that an operation or something before it is wrong, but not which.
EXPECTED_VALUE = "the expected value"

#: A repaired program that takes so much longer than the program did does not end, or might as well not.
_LONGER, _LEAST_SECONDS = 4.0, 1.0


class Errors:
    """The errors of some outputs of a tested program.

    Args:
        shape: of the results.
        expected: the right result.
        actual: the wrong one.
        outputs: indices of the arrays that count.
    """

    def __init__(self, shape: Shape, expected: Value, actual: Value, outputs: Sequence[ShapeIndex]) -> None:
        self._shape = shape
        self._expected = _arrays(shape, expected)
        self._outputs = [index for index in outputs if index in self._expected]
        self._before = self._errors(actual)

    def __len__(self) -> int:
        return len(self._outputs)

    def repaired(self, result: Value) -> int:
        """How many outputs are right, or nearly, in another result of the tested program."""
        after = self._errors(result)
        return sum(
            error <= thresholds.ERROR_LEFT.value * before for before, error in zip(self._before, after)
        )

    def _errors(self, result: Value) -> list[float]:
        found = _arrays(self._shape, result)
        return [_error(self._expected[index], found.get(index)) for index in self._outputs]


def _arrays(shape: Shape, value: Value) -> dict[ShapeIndex, Array]:
    return {
        index: np.asarray(part)
        for index, _, part in flatten(shape, value)
        if isinstance(part, np.ndarray | np.generic)
    }


def _error(expected: Array, actual: Array | None) -> float:
    """Root mean square of the differences; infinite where one side only is infinite or NaN.

    Exact words are right, all of them, or not.
    """
    if actual is None or actual.shape != expected.shape:
        return float("inf")
    if is_marked(expected):
        return float(not is_marked(actual) or not np.array_equal(compared(expected), compared(actual)))
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        e, a = expected.astype(wide), actual.astype(wide)
        same = (e == a) | (np.isnan(e) & np.isnan(a))
        differences = np.where(same, 0, e - a)
    # A count of what is not finite, far above all finite errors, so that fewer of them are an improvement.
    special = int((~np.isfinite(differences)).sum())
    return min(typical_magnitude(differences), 1e190) + 1e200 * special


def best_repair(pairing: Pairing, tested: Execution, blame: Blame, errors: Errors) -> tuple[str, int]:
    """What makes most outputs right in the place of the accused operation, in words, and how many.

    Args:
        pairing: of the two executions.
        tested: the wrong program.
        blame: the accused operation.
        errors: of the outputs that differ.
    """
    node = blame.after.instruction
    if blame.wiring is not None or node.opcode == "parameter" or blame.after.index:
        return "", 0
    for words, changes in _changes(pairing, blame):
        if count := _repaired(tested, node, changes, errors):
            return words, count
    return "", 0


def _changes(pairing: Pairing, blame: Blame) -> Iterator[tuple[str, dict[str, Any]]]:
    """What could stand in the place of an operation: the expected operation, or the expected value."""
    one, node = blame.before.instruction, blame.after.instruction
    for operands in _operands_like(pairing, blame.before, blame.after):
        changes = {"opcode": one.opcode, "operands": operands, "attributes": dict(one.attributes)}
        yield f"the reference's {one.opcode}", {**changes, "literal": one.literal}
    if one.opcode == node.opcode and embedded_difference(one, node) is not None:
        called = {name: value for name, value in one.attributes.items() if holds_computation(value)}
        yield f"the reference's {', '.join(called)}", {"attributes": {**node.attributes, **called}}
    places = (
        replace(blame.before, frame=f) for f in frames_of(pairing.before, blame.before.frame.computation)
    )
    kept = {n.kept.digest for n in places if isinstance(n.kept, Sample)}
    value, shape = fitted(blame.before.value, blame.after), node.shape
    if len(kept) == 1 and value is not None and isinstance(shape, ArrayShape):
        literal = Literal(shape, value)
        yield (
            EXPECTED_VALUE,
            {"opcode": "constant", "operands": (), "attributes": {}, "literal": literal},
        )


def _operands_like(pairing: Pairing, one: Node, node: Node) -> Iterator[tuple[Instruction, ...]]:
    """The operands in the places that the right operation has its own; then as they are."""
    right, wrong = one.instruction, node.instruction
    if (
        not wrong.operands
        or right.opcode == "parameter"
        or strip_layouts(right.shape) != strip_layouts(wrong.shape)
    ):
        return
    ones, others = ([Node(n.frame, o) for o in n.instruction.operands] for n in (one, node))
    found = [next((b for b in others if pairing.agree(made(a), made(b))), None) for a in ones]
    chosen = tuple(use.instruction for use in found if use is not None)
    if len(chosen) == len(found) and _suits(chosen, right):
        yield chosen
    if chosen != wrong.operands and not same_operation(right, wrong) and _suits(wrong.operands, right):
        yield wrong.operands


def _suits(operands: Sequence[Instruction], one: Instruction) -> bool:
    """Whether `one` could take these operands."""
    return len(operands) == len(one.operands) and all(
        strip_layouts(a.shape) == strip_layouts(b.shape) for a, b in zip(operands, one.operands)
    )


def _repaired(tested: Execution, node: Instruction, changes: dict[str, Any], errors: Errors) -> int:
    """How many outputs are right with the changed instruction; none when it cannot be run."""
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
