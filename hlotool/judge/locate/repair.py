"""Do results get right when right values or operations are put in place of accused ones?

Hundreds of passes apart, names do not tell which value of one program is which of the other, and operations
were rewritten. But where a value of the wrong program is replaced by the one of the right program that
belongs there, what is computed from it gets right; and with any other value it hardly does. So the first of
many operations that goes wrong is found.

In the end the accused operation is replaced in the program that was executed, by that of the right program
or by the value that it should have, and the whole program is run again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.field.values import compared, is_marked
from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.patterns import typical_magnitude
from hlotool.inputs.evaluation import Evaluator, Way, fitted
from hlotool.inputs.frames import FORMS, Node, frames_of, iteration_of, made, same_place
from hlotool.inputs.recorded_values import Budget, Sample
from hlotool.ir.arrays import Array, Literal, flatten
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, strip_layouts
from hlotool.judge.locate.blame import Blame, Matches
from hlotool.judge.locate.identity import size_of
from hlotool.judge.locate.likely import Likely
from hlotool.judge.locate.likeness import (
    embedded_difference,
    holds_computation,
    is_uniform,
    same_operation,
)
from hlotool.judge.locate.origins import is_constant
from hlotool.judge.locate.pairing import Pairing
from hlotool.judge.locate.recording import Execution
from hlotool.system.resources import work_done

#: Values that are tried in all.
_MOST_TRIALS = 2_000


class Narrowing:
    """Tries values of the right program in places of the wrong one.

    Args:
        pairing: of the two executions.
        likely: what is tried first.
        budget: how long it may take, and how much work it may be.

    Attributes:
        evaluator: computes parts of the wrong program again.
        end: time after which nothing new is tried (`time.monotonic`).
        trials: values that were tried.
        is_cut: whether there were more of them.
    """

    def __init__(self, pairing: Pairing, likely: Likely, budget: Budget) -> None:
        self._pairing = pairing
        self._likely = likely
        self._work_left = budget.work
        self.evaluator = Evaluator()
        self.end = time.monotonic() + budget.seconds
        self.trials = 0
        self.is_cut = False

    def _is_spent(self) -> bool:
        is_over = self._work_left <= 0 or time.monotonic() > self.end
        self.is_cut = self.is_cut or is_over or self.trials >= _MOST_TRIALS
        return self.is_cut

    def earliest(
        self,
        one: Node,
        other: Node,
        members: Sequence[Node],
        matches: Matches,
        candidates: Sequence[Node],
    ) -> tuple[Node, Node] | None:
        """What goes wrong first on the way to a value, and what it should be.

        Args:
            one: the value as it should be.
            other: the value as it is.
            members: nodes that it is made of, up to values that the right program has, too.
            matches: those values; a fault can make a value equal to another one of the right program.
            candidates: nodes of the right program that their values may be found among.
        """
        if is_uniform(one.value):
            return None
        inside = set(members)
        for node, values in self._turns(other, members, matches, candidates):
            found = self._right_value(one, other, node, inside, values)
            if found is not None:
                return found, node
        return None

    def _turns(
        self, other: Node, members: Sequence[Node], matches: Matches, candidates: Sequence[Node]
    ) -> Iterator[tuple[Node, Sequence[Node]]]:
        """Places with values to be tried there: a few likely ones in each, then all."""
        places = self._likely.places(other, members)
        for node in places:
            yield node, self._likely.values(node, matches)
        by_size: dict[int, list[Node]] = {}
        for candidate in candidates:
            if isinstance(candidate.kept, Sample):
                by_size.setdefault(size_of(candidate), []).append(candidate)
        for node in (*places, *filter(self._is_worth_it, matches)):
            yield node, by_size.get(size_of(node), ())

    def _is_worth_it(self, node: Node) -> bool:
        return (
            node.instruction.opcode != "parameter"
            and not is_constant(node)
            and self._pairing.is_telling(node)
            and not self._pairing.is_right(node)
        )

    def _right_value(
        self, one: Node, other: Node, node: Node, inside: set[Node], candidates: Sequence[Node]
    ) -> Node | None:
        kept = node.kept
        if not isinstance(kept, Sample):
            return None
        tried = {kept.digest}
        is_form = other.instruction.opcode in FORMS
        if node not in inside and not is_form and isinstance(one.kept, Sample):
            # What rounds, clamps or selects gives a right result of the right result itself.
            tried.add(one.kept.digest)
        way: Way | None = None
        for candidate in candidates:
            if candidate.kept.digest in tried:
                continue
            tried.add(candidate.kept.digest)
            if self._is_spent():
                return None
            value = fitted(candidate.value, node)
            if value is None:
                continue
            way = way or self.evaluator.way(other, node, self._pairing.flows[1].beyond(node))
            if way is None:
                return None
            self.trials += 1
            before = work_done()
            result = way.value(value)
            self._work_left -= work_done() - before
            is_right = result is not None and self._pairing.is_near(result, one)
            if is_right and self._holds_elsewhere(one, way, candidate):
                return candidate
        return None

    def _holds_elsewhere(self, one: Node, way: Way, candidate: Node) -> bool:
        """Whether the same change makes the value right in other places, as far as that is known.

        Those are the program on other arguments, and earlier iterations of the loop around it.
        """
        pairing, other, node = self._pairing, way.root, way.place
        depth = len(iteration_of(other.frame)) - 1
        places: list[tuple[Pairing, int]] = [(elsewhere, 0) for elsewhere in pairing.others]
        places += [(pairing, -back) for back in (1, 2) if depth >= 0]
        for there, shift in places:
            right = [same_place(there.before, n, depth, shift) for n in (one, candidate)]
            wrong = [same_place(there.after, n, depth, shift) for n in (other, node)]
            (expected, source), (actual, target) = right, wrong
            if expected is None or source is None or actual is None or target is None:
                continue
            moved = {m for s in way.steps if (m := same_place(there.after, s.node, depth, shift)) is not None}
            value = fitted(source.value, target)
            if value is None:
                continue
            result = self.evaluator.changed(actual, target, value, moved)
            if result is None or not there.is_near(result, expected):
                return False
        return True


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
