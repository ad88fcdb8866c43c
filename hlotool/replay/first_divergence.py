"""The report on the first instruction at which a tested program parts from the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec

from hlotool.alignment.graph import Graph
from hlotool.alignment.ports import Ports
from hlotool.backends.base import Value
from hlotool.errors import HlotoolError
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.ir.types import ShapeIndex, strip_layouts
from hlotool.locate.records import DivergenceRecord, NonFiniteRecord, OperandRecord
from hlotool.replay.divergence import Comparison, Divergence
from hlotool.replay.divergence_words import calls_around, deviation_record, source_in, text_in
from hlotool.replay.execution import Execution, execute
from hlotool.replay.nonfinite import Birth, births
from hlotool.replay.recording import Budget
from hlotool.replay.repair import Errors
from hlotool.replay.suspect_search import best_trial
from hlotool.replay.suspects import Trial

#: Runs both programs and shows their values.
_BACKEND = "numpy"
#: Instructions without a counterpart that are named.
_NAMED = 8


class NotFound(HlotoolError):
    """The programs differ, but none of their instructions can be shown to."""


def first_divergence(
    reference: Module,
    tested: Module,
    arguments: Sequence[Value],
    outputs: Sequence[ShapeIndex],
    budget: Budget,
    is_wide: bool = False,
) -> DivergenceRecord:
    """Find where two programs part, on the numpy reference.

    Args:
        reference: the program as it should be, for one device.
        tested: the same program at another stage.
        arguments: that both are run on.
        outputs: shape indices of results that differ.
        budget: how much may be kept, and how many seconds each of the three parts of the search may take.
        is_wide: compute in f64, for differences that show there, too: they stand out from all rounding.

    Raises:
        NotFound: no instruction is known to differ.
        OutOfTime: recording an execution takes too long.
        Unsupported: the calls of a program cannot be flattened, or it cannot be executed.
    """
    with (
        closing(execute(reference, arguments, _BACKEND, budget, is_wide)) as left,
        closing(execute(tested, arguments, _BACKEND, budget, is_wide)) as right,
    ):
        return divergence_of(Comparison(left, right), outputs, budget)


def divergence_of(comparison: Comparison, outputs: Sequence[ShapeIndex], budget: Budget) -> DivergenceRecord:
    """Where two recorded executions part; see `first_divergence`."""
    left, right = comparison.reference, comparison.tested
    errors = Errors(left.module.entry.root.shape, left.result, right.result, outputs)
    trial = best_trial(comparison, outputs, errors, _BACKEND, budget.seconds)
    if trial is None:
        raise NotFound("; ".join(["no instruction is known to differ", *_notes(comparison)]))
    return _record(comparison, trial, outputs, len(errors))


def _record(
    comparison: Comparison, trial: Trial, outputs: Sequence[ShapeIndex], differing: int
) -> DivergenceRecord:
    record = _Writer(comparison, trial).record(differing)
    tested = comparison.tested
    graph = comparison.alignment.right.graph
    made = [_birth_record(tested, graph, birth) for birth in births(tested, graph, outputs)]
    return msgspec.structs.replace(record, not_finite=made, notes=list(_notes(comparison)))


def _notes(comparison: Comparison) -> Iterator[str]:
    if comparison.tested.is_wide:
        yield "looked for in f64, where nothing is rounded"
    for side, execution in (("reference", comparison.reference), ("tested", comparison.tested)):
        recording = execution.recording
        if recording.incomplete:
            yield f"{side}: only the first {recording.count} values were looked at"
        if recording.store.dropped:
            yield f"{side}: {recording.store.dropped} values found no room and were compared by hash only"


class _Writer:
    """Puts a trial into words."""

    def __init__(self, comparison: Comparison, trial: Trial) -> None:
        self._comparison = comparison
        self._trial = trial
        self._left = comparison.alignment.left.graph
        self._right = comparison.alignment.right.graph
        self._node = _shown(trial.divergence.instruction, self._right)
        self._expected = _shown(trial.divergence.counterpart, self._left)

    def record(self, outputs: int) -> DivergenceRecord:
        """The record, but for what made NaNs."""
        trial, divergence = self._trial, self._trial.divergence
        inside = next(_changed_inside(self._expected, self._node), None)
        is_wide = self._comparison.tested.is_wide
        return DivergenceRecord(
            finding=_finding(trial),
            source=source_in(self._comparison.tested, self._right, self._node),
            text=text_in(self._comparison.tested, self._node),
            expected_source=source_in(self._comparison.reference, self._left, self._expected),
            expected_text=text_in(self._comparison.reference, self._expected),
            around=calls_around(self._comparison.tested, self._right, self._node, divergence.iteration),
            inside=print_instruction(inside[1], SHORT) if inside else "",
            inside_expected=print_instruction(inside[0], SHORT) if inside else "",
            operands=[self._operand(divergence, o) for o in self._right.operands.get(self._node, ())],
            accumulated=deviation_record(trial.accumulated, is_wide),
            local=deviation_record(trial.local, is_wide),
            repair=trial.repair,
            repaired=trial.repaired or 0,
            outputs=outputs,
            unaligned=self._names(divergence.unknown),
        )

    def _names(self, between: Sequence[Instruction]) -> list[str]:
        """In the order of the text, constants last."""
        place = self._right.position
        ordered = sorted(
            between, key=lambda instruction: (instruction.opcode == "constant", place[instruction])
        )
        names = [f"{i.opcode} %{self._comparison.tested.originals[i].name}" for i in ordered[:_NAMED]]
        more = len(ordered) - len(names)
        return [*names, f"{more} more"] if more > 0 else names

    def _operand(self, divergence: Divergence, operand: Instruction) -> OperandRecord:
        original = self._comparison.tested.originals[operand]
        return OperandRecord(
            instruction=original.name,
            shape=str(strip_layouts(original.shape)),
            state=self._comparison.state_of(operand, divergence),
        )


def _finding(trial: Trial) -> str:
    if trial.is_locally_wrong is False:
        return "suspected" if trial.divergence.unknown else "amplifies"
    return "wrong" if trial.repaired or trial.is_locally_wrong else "suspected"


def _shown(instruction: Instruction, graph: Graph) -> Instruction:
    """What to name in place of an element that is taken out of a result: what made the result."""
    maker, _ = Ports(graph).of(instruction)
    is_state = maker.opcode in ("while", "conditional", "parameter")
    return instruction if is_state or instruction.opcode != "get-tuple-element" else maker


def _changed_inside(one: Instruction, other: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
    """Pairs of instructions that differ in the scalar computations of two equal operations."""
    if one.opcode != other.opcode or other.opcode in ("while", "conditional"):
        return
    for expected, actual in zip(one.called, other.called):
        yield from _changed_pairs(expected, actual)


def _changed_pairs(one: Computation, other: Computation) -> Iterator[tuple[Instruction, Instruction]]:
    pending, seen = [(one.root, other.root)], set()
    while pending:
        expected, actual = pending.pop()
        if (expected, actual) in seen:
            continue
        seen.add((expected, actual))
        if expected.opcode != actual.opcode or expected.attributes.get("direction") != actual.attributes.get(
            "direction"
        ):
            yield expected, actual
        else:
            pending += zip(expected.operands, actual.operands)


def _birth_record(execution: Execution, graph: Graph, birth: Birth) -> NonFiniteRecord:
    node = _shown(birth.instruction, graph)
    return NonFiniteRecord(
        kind=birth.kind,
        source=source_in(execution, graph, node),
        text=text_in(execution, node),
        around=calls_around(execution, graph, node, birth.iteration),
        index=None if birth.index is None else list(birth.index),
        operands=[
            OperandRecord(
                instruction=execution.originals[o].name,
                shape=str(strip_layouts(execution.originals[o].shape)),
                value=text,
            )
            for o, text in birth.operands
        ],
    )
