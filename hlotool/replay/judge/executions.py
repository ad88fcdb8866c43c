"""The executions that one judgement draws, each when it is asked for."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any

from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.numerics import thresholds
from hlotool.numerics.dataflow import leaf_facts
from hlotool.numerics.retyping import precisions
from hlotool.replay.judge.amplifier import amplifying_instruction
from hlotool.replay.judge.cancellations import Cancellations
from hlotool.replay.judge.contracted import contracted_text
from hlotool.replay.judge.ensemble import KEEPS, Clock, Ensemble, array_leaves
from hlotool.replay.judge.equality import Equality
from hlotool.replay.judge.f64_check import Wide, coarsest
from hlotool.replay.judge.judgement import Judgement, Leaf, Side
from hlotool.replay.judge.lost_width import Widths
from hlotool.replay.judge.semantics import Departures


class Executions:
    """Legal executions of both sides.

    Args:
        judgement: whose programs are executed.

    Attributes:
        judgement: likewise.
        reference: executions of the reference.
        louder: the same with larger errors.
        tested: of the tested program; None where there is none.
        wide: compares both programs in f64; None likewise.
        widths: what only one of both programs rounds.
        cancellations: of the reference: what they explain.
        departures: of the reference under known rules.
        equality: of both programs as functions of real numbers.
    """

    def __init__(self, judgement: Judgement) -> None:
        seed, freedoms = judgement.seed, judgement.freedoms
        clock = Clock(judgement.deadline, judgement.work)
        loudness = thresholds.LOUDER.value
        self.judgement = judgement
        asked = precisions(judgement.reference.module)
        keeps = KEEPS if freedoms.excess_precision else (0.0,)
        drawn: dict[str, Any] = {
            "clock": clock,
            "asked": asked,
            "keeps": keeps,
            "f64_unit": freedoms.f64_unit,
        }
        unit = freedoms.product.unit
        self.reference = Ensemble(judgement.reference, seed, product_unit=unit, **drawn)
        self.louder = Ensemble(judgement.reference, seed + 1, loudness, product_unit=unit, **drawn)
        self.tested = None if judgement.tested is None else Ensemble(judgement.tested, seed, **drawn)
        self.wide = None if self.tested is None else Wide(self.reference, self.tested)
        self.widths = Widths(self.reference, self.tested, freedoms)
        self.cancellations = Cancellations(self.reference)
        self.departures = Departures(judgement.reference)
        self.equality = Equality(judgement, clock)
        self._units: dict[Side, list[float]] = {}

    def members(self, leaf: Leaf, size: int) -> list[Array]:
        """A leaf of the reference's result and of so many other executions of the reference."""
        return [leaf.expected, *(member[leaf.number] for member in self.reference.members(size))]

    def truth(self, leaf: Leaf) -> Array | None:
        """A leaf in f64, nothing perturbed; None where it has another size there."""
        shadow = self.reference.shadow[leaf.number]
        return shadow if shadow.shape == leaf.actual.shape else None

    def contraction(self, leaf: Leaf) -> str:
        """That products contracted into sums make the difference, in words; empty where they do not."""
        if self.tested is not None or not leaf.is_inexact:
            return ""
        with suppress(HlotoolError):
            for other in self.reference.contractions:
                if other[leaf.number].tobytes() == leaf.actual.tobytes():
                    return contracted_text(self.judgement.reference.module)
        return ""

    @cached_property
    def expected(self) -> list[Array]:
        """All leaves of the reference's result."""
        return array_leaves(self.judgement.reference.shape, self.judgement.expected)

    @cached_property
    def amplifier(self) -> Instruction | None:
        """The instruction of the reference that amplifies rounding most; None where it cannot be watched."""
        return amplifying_instruction(self.reference)

    @cached_property
    def rounds_coarser(self) -> bool:
        """Whether the tested program rounds somewhere to less than the reference ever does: no excuse."""
        return self._rounds_coarser_than(0.0)

    @cached_property
    def rounds_coarser_than_target(self) -> bool:
        """The same, where the reference rounds what its products read as the target does."""
        return self._rounds_coarser_than(self.judgement.product_unit)

    def rounds_coarser_at(self, leaf: Leaf) -> bool:
        """Whether the tested program rounds on the way to a leaf to less than the reference does."""
        if self.judgement.tested is None:
            return False
        units = [
            self._units_of(side)[leaf.number] for side in (self.judgement.reference, self.judgement.tested)
        ]
        return units[1] > units[0]

    def _units_of(self, side: Side) -> list[float]:
        """One ulp at 1 of the coarsest rounding on the way to each leaf."""
        if side not in self._units:
            found = (facts.rounding for facts in leaf_facts(side.module))
            self._units[side] = [0.0 if rounding is None else rounding.epsilon for rounding in found]
        return self._units[side]

    def _rounds_coarser_than(self, unit: float) -> bool:
        reference, tested = self.judgement.reference, self.judgement.tested
        return tested is not None and coarsest(tested.module) > max(unit, coarsest(reference.module))
