"""The first instruction at which two executions of one program part.

Both programs run under a recorder on the same inputs, their instructions are aligned, and from each result
that differs the differences are followed backwards, through calls, fusions and iterations, to instructions
whose operands agree. What is found is put to the test (`suspects`): does it go wrong on the expected
operands, too, and are the results right when it does what is expected?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from hlotool.alignment.align import align
from hlotool.alignment.counterparts import counterparts
from hlotool.alignment.matching import COMMUTATIVE
from hlotool.alignment.ports import Port, Ports
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.numerics.dataflow import leaf_facts
from hlotool.numerics.facts import NOTHING, Facts
from hlotool.replay.agreement import Relation, related
from hlotool.replay.execution import Execution
from hlotool.replay.recording import Iteration
from hlotool.replay.trail import GOOD, UNKNOWN, Judgement, Origin, bad_ports, origins

#: Their value is their operand's: they cannot be wrong by themselves.
PASSING = frozenset({"copy", "copy-start", "copy-done", "tuple", "add-dependency"})
#: They change the place of elements, or nothing at all.
_MOVES = frozenset({"bitcast", "reshape", "transpose", "copy"})

#: Iterations of one instruction that are compared.
_MOST_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Divergence:
    """An instruction whose value differs, while all that it is computed from agrees as far as it is known.

    Attributes:
        instruction: of the tested program's flattened copy.
        counterpart: of the reference's flattened copy.
        iteration: the first in which it differs, one number per loop around it.
        order: of the value in the tested execution.
        unknown: instructions between it and the values that agree, which have no counterpart.
        tight: it shows only when no more than one operation's rounding is allowed.
    """

    instruction: Instruction
    counterpart: Instruction
    iteration: Iteration
    order: float
    unknown: tuple[Instruction, ...]
    tight: bool = False


class Comparison:
    """Two executions side by side.

    Args:
        reference: gives the expected values.
        tested: is compared with it.
    """

    def __init__(self, reference: Execution, tested: Execution) -> None:
        self.reference = reference
        self.tested = tested
        bits = reference.recording.bits, tested.recording.bits
        self.alignment = align(reference.module, tested.module, *bits)
        self.counterparts = counterparts(self.alignment)
        self.ports = Ports(self.alignment.right.graph)
        self._corrected: set[Instruction] = set()
        self._outputs: set[Instruction] = set()
        self._pair_outputs()
        facts = (*leaf_facts(reference.original), *leaf_facts(tested.original))
        self._facts = None if tested.is_wide else reduce(Facts.join, facts, NOTHING)

    def divergences(self, outputs: Sequence[ShapeIndex], tight: bool = False) -> list[Divergence]:
        """Where the outputs at `outputs` begin to differ, the earliest first.

        Args:
            outputs: shape indices of results that differ.
            tight: call everything a difference that one operation's rounding does not explain.
        """
        root = self.tested.module.entry.root
        starts = [self.ports.of(root, index) for index in outputs]
        found = origins(self.ports, starts, lambda port: self._judge(port, tight))
        return [self._divergence(origin, tight) for origin in found]

    def differing(self, outputs: Sequence[ShapeIndex]) -> list[Divergence]:
        """All that differs on the way to the outputs, the earliest first, whatever it is computed from."""
        root = self.tested.module.entry.root
        starts = [self.ports.of(root, index) for index in outputs]
        found = bad_ports(self.ports, starts, lambda port: self._judge(port, False))
        return [self._divergence(origin, False) for origin in found]

    def state_of(self, operand: Instruction, divergence: Divergence) -> str:
        """`agrees`, `differs` or `unknown`: an operand of a divergence, up to the time of the divergence."""
        judged = self._judge(self.ports.of(operand), divergence.tight)
        if judged.bad is None:
            return "unknown"
        return "differs" if judged.bad and judged.order <= divergence.order else "agrees"

    def has_bits(self, node: Instruction, iteration: Iteration, digest: bytes) -> bool:
        """Whether a value of the tested program has these bits."""
        return self.tested.recording.samples[node][iteration].digest == digest

    def tested_value(self, node: Instruction, iteration: Iteration, expected: Array | None) -> Array | None:
        """A value of the tested program; None when it was not kept, or cannot be compared with `expected`."""
        return self.tested.recording.value(node, iteration)

    def discard(self, instruction: Instruction) -> None:
        """Forget the counterpart of an instruction: it turned out to be another quantity."""
        self.counterparts.pop(instruction, None)

    def correct(self, divergence: Divergence) -> bool:
        """Whether an operand got another counterpart, because the same operation reads another value there.

        Equal names, or values that are equal by chance, can pair an operand of the suspect with something
        else than its counterpart reads. Where both do the same, the operands must be the same quantities.
        """
        node, one = divergence.instruction, divergence.counterpart
        left, right = self.alignment.left, self.alignment.right
        ones, others = left.graph.operands[one], right.graph.operands[node]
        alike = left.prints.labels[one] == right.prints.labels[node] or {one.opcode, node.opcode} <= _MOVES
        if not alike or len(ones) != len(others):
            return False
        if node.opcode in COMMUTATIVE and self.counterparts.get(others[0]) is ones[-1]:
            others = tuple(reversed(others))
        if {self.counterparts.get(other) for other in others} == set(ones):
            return False
        strange = [(a, b) for a, b in zip(ones, others) if self._is_doubtful(a, b)]
        for expected, operand in strange:
            self._corrected.add(operand)
            self.counterparts[operand] = expected
        return bool(strange)

    def _pair_outputs(self) -> None:
        """What the two programs return in the same place is the same quantity, whatever it looks like."""
        theirs = Ports(self.alignment.left.graph)
        for index, _ in leaves(self.tested.module.entry.root.shape):
            node = self.ports.node(self.ports.of(self.tested.module.entry.root, index))
            one = theirs.node(theirs.of(self.reference.module.entry.root, index))
            if node is not None and one is not None and node.opcode not in ("parameter", "constant"):
                self.counterparts[node] = one
                self._outputs.add(node)

    def _is_doubtful(self, expected: Instruction, operand: Instruction) -> bool:
        """Whether `expected` may be the counterpart of an operand rather than what is taken for it."""
        if operand in self._corrected or operand.opcode == "parameter" or operand.opcode != expected.opcode:
            return False
        one = self.counterparts.get(operand)
        if one is None:
            return True
        return one is not expected and self.alignment.matching.right_of.get(one) is not operand

    def expected_at(self, instruction: Instruction, iteration: Iteration) -> Iteration:
        """The iteration of the counterpart that belongs to one of an instruction."""
        samples = self.reference.recording.samples.get(self.counterparts[instruction], {})
        return iteration if iteration in samples or len(samples) != 1 else next(iter(samples))

    def _judge(self, port: Port, tight: bool) -> Judgement:
        node = self.ports.node(port)
        if node is None:
            return UNKNOWN
        if node in self.tested.module.entry.parameters:
            return GOOD
        if node not in self.counterparts or (node.opcode in PASSING and node not in self._outputs):
            return UNKNOWN
        return self._compare(node, tight)[0]

    def _compare(self, node: Instruction, tight: bool) -> tuple[Judgement, Iteration]:
        """The first iteration in which a node differs from its counterpart."""
        one = self.counterparts[node]
        if not isinstance(node.shape, ArrayShape) or not isinstance(one.shape, ArrayShape):
            return UNKNOWN, ()
        samples = self.tested.recording.samples.get(node, {})
        expected = self.reference.recording.samples.get(one, {})
        known = False
        for iteration in list(samples)[:_MOST_ITERATIONS]:
            sample = samples[iteration]
            place = self.expected_at(node, iteration)
            if place not in expected:
                continue
            if self.has_bits(node, iteration, expected[place].digest):
                known = True
                continue
            left = self.reference.recording.value(one, place)
            right = self.tested_value(node, iteration, left)
            if left is None or right is None:
                continue
            relation = related(left, one.shape, right, node.shape, self._facts, tight)
            if relation is Relation.DIFFER:
                return Judgement(True, sample.order), iteration
            known |= relation is Relation.AGREE
        return (GOOD if known else UNKNOWN), ()

    def _divergence(self, origin: Origin, tight: bool) -> Divergence:
        node = self.ports.node(origin.port)
        assert node is not None
        between = [
            n for p in origin.unknown if (n := self.ports.node(p)) is not None and n.opcode not in PASSING
        ]
        _, iteration = self._compare(node, tight)
        return Divergence(
            node, self.counterparts[node], iteration, origin.order, tuple(dict.fromkeys(between)), tight
        )
