"""What `hlotool prove` found of one pair of programs, as a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.inputs.coverage.records import DecisionRecord
from hlotool.judge.records import DivergenceRecord
from hlotool.rewrite.scale.records import ScaleRecord
from hlotool.system.records import ErrorRecord, Record

if TYPE_CHECKING:
    from hlotool.runs.exact.result import ExactResult, LeafResult, Witness


class WitnessRecord(Record, frozen=True, kw_only=True):
    """An element that shows two programs to be different functions.

    Attributes:
        seed: of the random point, from which all arguments follow.
        index: of the element.
        expected: its value in the first program: an integer or pred, or what floats are modulo P.
        actual: its value in the second one.
    """

    seed: int
    index: list[int]
    expected: str
    actual: str


class ProvedLeafRecord(Record, frozen=True, kw_only=True):
    """One output of both programs.

    Attributes:
        index: where it stands in the result, empty for a single array.
        relation: `equal`, `unequal` or `refused`.
        differing: elements that differ at one of the points, at most.
        total: elements.
        witness: one of them.
        reason: why nothing is known, or what differs if not the values.
    """

    index: list[int]
    relation: str
    differing: int = 0
    total: int = 0
    witness: WitnessRecord | None = None
    reason: str = ""


class ReadingRecord(Record, frozen=True, kw_only=True):
    """A constant that was read as another number than the one in the text.

    Attributes:
        constant: as the text has it.
        number: that it stands for.
        reason: why.
    """

    constant: str
    number: str
    reason: str


class BoxRecord(Record, frozen=True, kw_only=True):
    """An operation that is an unknown function of its operands.

    Attributes:
        name: of the function, with its configuration.
        instruction: that calls it.
        line: in the HLO text, 0 when unknown.
    """

    name: str
    instruction: str
    line: int = 0


class ProvedRecord(Record, frozen=True, kw_only=True):
    """Two programs as functions of real numbers.

    Attributes:
        name: of the pair.
        left: file of the first program.
        right: file of the second one.
        relation: `equal`, `equal where` (on all that was covered: some decision never went one of its ways),
            `unequal` or `refused`.
        reason: why nothing is known, or what differs of their parameters or the structure of their results.
        leaves: one entry per output.
        trials: random points at which both were evaluated.
        error_probability: that one element of an equal output is another rational function all the same,
            if the degree of the difference is `degree`.
        degree: see there.
        laws: what was assumed beyond the laws of a field, of exp, log and roots.
        constants: that were read as other numbers.
        further_sets: of integers and preds at which both were compared besides.
        shown_by: that of them which shows them to be unequal, in words; empty where random points do.
        inputs: file with its arguments, for `--inputs`.
        generated_constants: how many have generated values, for the dump leaves theirs out.
        scaled: that both have smaller sizes than they have in the files, and the relation is one of those.
        left_boxes: unknown functions of the first program.
        right_boxes: unknown functions of the second one.
        left_one_sided: decisions of the first program that never went one of their ways, at any point.
        right_one_sided: likewise of the second one.
        around: binary logarithm of the sizes that numbers have at the points that show the programs to be
            unequal, up to a factor of 2^8.
        divergence: where programs that are unequal part: the first is taken for the one that is right.
        divergence_missing: why that was not found.
        error: of a program that could not be read or evaluated.
        seconds: wall time.
    """

    name: str
    left: str
    right: str
    relation: str
    reason: str = ""
    leaves: list[ProvedLeafRecord] = []
    trials: int = 0
    error_probability: float | None = None
    degree: int = 0
    laws: list[str] = []
    constants: list[ReadingRecord] = []
    further_sets: int = 0
    shown_by: str = ""
    inputs: str = ""
    generated_constants: int = 0
    scaled: ScaleRecord | None = None
    left_boxes: list[BoxRecord] = []
    right_boxes: list[BoxRecord] = []
    left_one_sided: list[DecisionRecord] = []
    right_one_sided: list[DecisionRecord] = []
    around: float = 0.0
    divergence: DivergenceRecord | None = None
    divergence_missing: str = ""
    error: ErrorRecord | None = None
    seconds: float = 0.0


def proved_record(name: str, left: str, right: str, result: ExactResult, generated: int = 0) -> ProvedRecord:
    """The record of a comparison of two files, with `generated` constants."""
    boxes = [
        [BoxRecord(name=box.name, instruction=box.instruction, line=box.line) for box in side]
        for side in result.boxes
    ]
    one_sided = result.not_covered if result.is_equal else ()
    return ProvedRecord(
        name=name,
        left=left,
        right=right,
        relation=result.relation.value,
        reason=result.refused or result.structural,
        leaves=[_leaf(leaf) for leaf in result.leaves],
        trials=result.trials,
        error_probability=result.error_probability if result.trials else None,
        degree=result.degree,
        laws=list(result.laws),
        constants=[ReadingRecord(constant=c, number=n, reason=why) for c, n, why in result.constants],
        generated_constants=generated,
        left_boxes=boxes[0],
        right_boxes=boxes[1],
        left_one_sided=[side.record for side in one_sided if side.of_reference],
        right_one_sided=[side.record for side in one_sided if not side.of_reference],
        around=0.0 if result.is_equal else result.around,
        seconds=result.seconds,
    )


def _leaf(leaf: LeafResult) -> ProvedLeafRecord:
    return ProvedLeafRecord(
        index=list(leaf.index),
        relation=leaf.relation.value,
        differing=leaf.differing,
        total=leaf.total,
        witness=None if leaf.witness is None else _witness(leaf.witness),
        reason=leaf.reason,
    )


def _witness(witness: Witness) -> WitnessRecord:
    return WitnessRecord(
        seed=witness.seed, index=list(witness.index), expected=witness.expected, actual=witness.actual
    )
