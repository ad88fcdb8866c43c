"""How often a fusion computes what it holds: once for each index at which something reads it.

What is read through slices, pads or concatenations is read at other indices than the result's, and is written
into the kernel once for each; through several of them in a row, that multiplies. XLA:
fusion_node_indexing_evaluation.cc.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.passes.fusion_facts import is_elementwise
from hlotool.passes.fusion_legality import Part

#: More often no instruction is written. XLA: kAllowedCodeDuplication.
MOST_EMISSIONS: Final = 15

#: Reads a transposed index, which is as good as the same.
_SAME_INDEX = opcodes_with(Trait.REGROUPS) - {"broadcast"}


class Emissions:
    """Counts for a fusion that grows from its results to what they need.

    Args:
        roots: what the fusion returns; all of them are computed at the index of the loop.
    """

    def __init__(self, roots: Iterable[Instruction]) -> None:
        self._readers: dict[Instruction, set[Hashable]] = {}
        self._counts: dict[Hashable, int] = {None: 1}
        for root in roots:
            self._readers[root] = {None}

    def of(self, instruction: Instruction) -> int:
        """How often an instruction is computed, of which all that reads it has been added."""
        return sum(self._counts[reader] for reader in self._readers.get(instruction, ()))

    def add(self, member: Instruction) -> None:
        """Take in an instruction; everything in the fusion that reads it has to be there already."""
        self._counts[member] = self.of(member)
        is_same = is_elementwise(member) or member.opcode in _SAME_INDEX
        for operand in member.operands:
            readers = self._readers.setdefault(operand, set())
            readers |= self._readers[member] if is_same else {member}


def emissions_of(part: Part) -> Emissions:
    """The counts of one side of a fusion, with what it reads."""
    found = Emissions(part.roots)
    for member in reversed(part.members):
        found.add(member)
    return found


def is_multiplied(producer: Part, consumer: Part, outputs: Iterable[Instruction]) -> bool:
    """Whether a consumer would have something of its producer computed too often.

    Args:
        producer: what is to be computed inside the consumer.
        consumer: what reads it.
        outputs: the producer's results, as the consumer reads them.
    """
    reading, read = emissions_of(consumer), set(outputs)
    inside = {inner for inner, outer in consumer.arguments.items() if outer in read} | read
    times = max((reading.of(instruction) for instruction in inside), default=0)
    own = emissions_of(producer)
    return times > 1 and times * max(map(own.of, producer.members), default=1) > MOST_EMISSIONS
