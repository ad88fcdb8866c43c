"""The executions that one judgement draws, each when it is asked for."""

from __future__ import annotations

from functools import cached_property

from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.numerics import thresholds
from hlotool.replay.judge.amplifier import amplifying_instruction
from hlotool.replay.judge.cancellations import Cancellations
from hlotool.replay.judge.ensemble import Clock, Ensemble, array_leaves
from hlotool.replay.judge.equality import Equality
from hlotool.replay.judge.f64_check import Wide, coarsest
from hlotool.replay.judge.judgement import Judgement, Leaf
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
        cancellations: of the reference: what they explain.
        departures: of the reference under known rules.
        equality: of both programs as functions of real numbers.
    """

    def __init__(self, judgement: Judgement) -> None:
        seed, unit = judgement.seed, judgement.product_unit
        clock = Clock(judgement.deadline, judgement.work)
        loudness = thresholds.LOUDER.value
        self.judgement = judgement
        self.reference = Ensemble(judgement.reference, seed, clock=clock, product_unit=unit)
        self.louder = Ensemble(judgement.reference, seed + 1, loudness, clock, unit)
        self.tested = None if judgement.tested is None else Ensemble(judgement.tested, seed, clock=clock)
        self.wide = None if self.tested is None else Wide(self.reference, self.tested)
        self.cancellations = Cancellations(self.reference)
        self.departures = Departures(judgement.reference)
        self.equality = Equality(judgement, clock)

    def members(self, leaf: Leaf, size: int) -> list[Array]:
        """A leaf of the reference's result and of so many other executions of the reference."""
        return [leaf.expected, *(member[leaf.number] for member in self.reference.members(size))]

    def truth(self, leaf: Leaf) -> Array | None:
        """A leaf in f64, nothing perturbed; None where it has another size there."""
        shadow = self.reference.shadow[leaf.number]
        return shadow if shadow.shape == leaf.actual.shape else None

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

    def _rounds_coarser_than(self, unit: float) -> bool:
        reference, tested = self.judgement.reference, self.judgement.tested
        return tested is not None and coarsest(tested.module) > max(unit, coarsest(reference.module))
