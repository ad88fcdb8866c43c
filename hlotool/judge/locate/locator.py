"""Where a tested program parts from the reference: the one search behind `run` and `bisect`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from math import inf

from hlotool.errors import HlotoolError
from hlotool.inputs.frames import Node, Parts, chain, made, operand_uses, same_place
from hlotool.inputs.recorded_values import Budget, OutOfTime
from hlotool.ir.arrays import Array
from hlotool.ir.types import ShapeIndex, TupleShape, subshape
from hlotool.judge.locate.blame import Blame
from hlotool.judge.locate.likely import Likely
from hlotool.judge.locate.likeness import is_uniform, rounding_of_one
from hlotool.judge.locate.origins import is_constant
from hlotool.judge.locate.pairing import Pairing
from hlotool.judge.locate.recording import Execution, Subject, execute
from hlotool.judge.locate.repair import EXPECTED_VALUE, Errors, Narrowing, best_repair
from hlotool.judge.locate.walk import find_blame

#: Outputs that are followed back, until one explains the others.
_MOST_OUTPUTS = 6
#: Seeds of the other arguments on which both programs are compared.
_SEEDS = (1, 2)


class NotFound(HlotoolError):
    """The programs differ, but none of their instructions can be shown to."""


@dataclass(frozen=True, slots=True)
class Found:
    """The operations to blame, and what tests say of them.

    Attributes:
        reference: the execution of the program as it should be.
        tested: that of the program in question.
        pairing: of the two.
        blame: where they part.
        repair: what was put in the place of the accused operation, in words; empty where nothing helped.
        repaired: how many outputs became right by that.
        outputs: how many outputs differ.
        numbers: both programs executed on numbers, where the search was in exact words.
    """

    reference: Execution
    tested: Execution
    pairing: Pairing
    blame: Blame
    repair: str
    repaired: int
    outputs: int
    numbers: tuple[Execution, Execution] | None = None

    def in_numbers(self, node: Node) -> Node | None:
        """What `node` is where the program computes with numbers; None where it takes another way there."""
        if self.numbers is None:
            return node
        is_tested = node.frame.trace is self.tested.entry.trace
        return same_place(self.numbers[is_tested].entry, node)

    def value(self, node: Node) -> Array | Parts | None:
        """A value in numbers; None where it was not seen or not kept, or not computed on numbers."""
        there = self.in_numbers(node)
        return None if there is None else there.value

    @property
    def on_numbers(self) -> tuple[Execution, Execution]:
        """The executions of the reference and of the tested program whose values are numbers."""
        return self.numbers or (self.reference, self.tested)

    @property
    def place(self) -> Node:
        """The one operation that is named first."""
        blame = self.blame
        if blame.wiring is not None:
            return blame.wiring
        return blame.amplified[1] if self.is_amplified and blame.amplified else blame.after

    @property
    def suspects(self) -> tuple[Node, ...]:
        """The operations that are named, operands first: those to blame that nothing clears.

        The right operation in the place of the first one makes results right: then no other is. And what
        gives a value that the right program has, too, whatever its arguments, computes nothing wrong.
        """
        blame, place = self.blame, self.place
        if self.repair not in ("", EXPECTED_VALUE):
            return (place,)
        found = [node for node in blame.members_after if node == place or not self._is_cleared(node)]
        found = list(dict.fromkeys(each for node in found for each in (*self._tuples(node), node)))
        found += [blame.reader] if blame.reader is not None else []
        return (*found, place) if place not in found else tuple(found)

    def _tuples(self, node: Node) -> Iterator[Node]:
        """New tuples that hand one member on to another; they may hand on the wrong one."""
        for step in (step for use in operand_uses(node) for step in chain(use)):
            is_beside = step.instruction.opcode == "tuple" and step.frame == node.frame
            if is_beside and self.pairing.is_new(step) and made(step) in self.blame.members_after:
                yield Node(step.frame, step.instruction)

    def _is_cleared(self, node: Node) -> bool:
        # A wrong literal, or one value everywhere, is found somewhere else by chance.
        is_chance = node.instruction.opcode == "constant" or (
            is_uniform(node.value) and not is_constant(node)
        )
        return not is_chance and self.pairing.has_same_bits(node, self.blame.before)

    @property
    def is_amplified(self) -> bool:
        """Whether nothing is wrong but rounding that grows in an operation that does what it should."""
        blame = self.blame
        return blame.amplified is not None and not self.pairing.differ(blame.before, blame.after)

    @property
    def device(self) -> int | None:
        """The first device on which the value is wrong; None in a program for one device."""
        expected, actual = self.blame.before.value, self.blame.after.value
        if not isinstance(actual, Parts):
            return None
        return self.pairing.first_device(expected, actual)


def find_all(
    reference: Execution,
    tested: Execution,
    outputs: Sequence[ShapeIndex],
    pairing: Pairing,
    narrowing: Narrowing,
) -> Iterator[Found]:
    """What each of some outputs comes from; operations that several of them come from only once.

    Args:
        reference: gives the expected values.
        tested: is compared with it.
        outputs: shape indices of results that differ, in the order in which they are followed back.
        pairing: of the two executions.
        narrowing: puts values to the test.
    """
    errors = _errors(reference, tested, outputs)
    known: set[Node] = set()
    for output in outputs[:_MOST_OUTPUTS]:
        # However late it is, one output is explained.
        if known and time.monotonic() > narrowing.end:
            return
        blame = find_blame(pairing, output, narrowing)
        if blame.after in known or not _is_known_to_differ(pairing, blame, output):
            continue
        known.add(blame.after)
        repair, repaired = best_repair(pairing, tested, blame, errors)
        yield Found(reference, tested, pairing, blame, repair, repaired, len(errors))
        if repaired == len(errors):
            return


def _errors(reference: Execution, tested: Execution, outputs: Sequence[ShapeIndex]) -> Errors:
    """The errors of outputs; where each device returns a result of its own, those of all devices."""
    shape, count = reference.module.entry.root.shape, reference.copies
    if count > 1:
        shape = TupleShape((shape,) * count)
        outputs = [(device, *output) for device in range(count) for output in outputs]
    return Errors(shape, reference.result, tested.result, outputs)


def _is_known_to_differ(pairing: Pairing, blame: Blame, output: ShapeIndex) -> bool:
    shape = subshape(pairing.after.computation.root.shape, output)
    if pairing.seen <= rounding_of_one(shape) and not pairing.is_far_off(blame.before, blame.after):
        return False
    if blame.wiring is not None or blame.amplified is not None:
        return True
    return pairing.differ(blame.before, blame.after)


class Search:
    """Two programs on the same arguments, open for questions; close it in the end.

    Args:
        reference: the program as it should be.
        tested: the same program at another stage.
        budget: how much may be kept, and how many seconds each part of the search may take.
        is_wide: compute in f64, for differences that show there, too: they stand out from all rounding.
        numbers: both programs on numbers, where `reference` and `tested` compute with exact words: the values
            of what is found.

    Raises:
        OutOfTime: recording an execution takes too long.
        Unsupported: the calls of a program cannot be flattened, or it cannot be executed.
    """

    def __init__(
        self,
        reference: Subject,
        tested: Subject,
        budget: Budget,
        is_wide: bool = False,
        numbers: tuple[Subject, Subject] | None = None,
    ) -> None:
        self._budget = budget
        self._numbers = numbers
        self._narrowing: Narrowing | None = None
        self._open = ExitStack()
        try:
            self.reference = self._open.enter_context(closing(execute(reference, budget, is_wide)))
            self.tested = self._open.enter_context(closing(execute(tested, budget, is_wide)))
        except BaseException:
            self._open.close()
            raise
        self.pairing = Pairing(
            self.reference.entry, self.tested.entry, inf, is_wide, tested.meshes, elsewhere=self._elsewhere
        )

    def close(self) -> None:
        """Give back what was stored outside of memory."""
        self._open.close()

    def first(self, outputs: Sequence[ShapeIndex]) -> Found:
        """What explains most of the outputs that differ, the first such.

        Args:
            outputs: shape indices of results that differ.

        Raises:
            NotFound: no instruction is known to differ.
        """
        likely = Likely(self.pairing, outputs)
        self._narrowing = narrowing = Narrowing(self.pairing, likely, self._budget)
        ordered = likely.outputs() if self.pairing.is_far else outputs
        found = list(find_all(self.reference, self.tested, ordered, self.pairing, narrowing))
        if not found:
            raise NotFound("; ".join(["no instruction is known to differ", *self.notes()]))
        # Of operations whose repair mends as much, the first: the others read what it spoils.
        best = max(found, key=lambda each: (each.repaired, -each.place.order))
        return replace(best, numbers=self._on_numbers())

    def _on_numbers(self) -> tuple[Execution, Execution] | None:
        if self._numbers is None:
            return None
        one, other = self._numbers
        return (
            self._open.enter_context(closing(execute(one, self._budget, like=self.reference))),
            self._open.enter_context(closing(execute(other, self._budget, like=self.tested))),
        )

    def notes(self) -> Iterator[str]:
        """What was not looked at, and how the rest was."""
        if self.tested.is_wide:
            yield "located in double precision"
        if self._numbers is not None:
            yield "located in exact arithmetic"
        if self._narrowing is not None and self._narrowing.is_cut:
            yield f"stopped after {self._narrowing.trials} trials of right values in wrong places"
        for side, execution in (("reference", self.reference), ("tested", self.tested)):
            trace = execution.entry.trace
            if trace.incomplete:
                yield f"{side}: only the first {trace.count} values were looked at"
            if trace.dropped:
                yield f"{side}: {trace.dropped} values found no room and were compared by hash only"

    def _elsewhere(self) -> tuple[Pairing, ...]:
        """Both programs on other arguments, as far as they can be run on them."""
        left, right = self.reference.elsewhere, self.tested.elsewhere
        if left is None or right is None:
            return ()
        found = []
        for seed in _SEEDS:
            try:
                before, after = left(seed), right(seed)
            except (HlotoolError, OutOfTime):
                continue
            self._open.callback(before.trace.close)
            self._open.callback(after.trace.close)
            found.append(Pairing(before, after, inf, self.tested.is_wide, self.pairing.meshes))
        return tuple(found)
