"""Producers into consumers: one kernel for a result and what only it needs, computed once for each index."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Final

from hlotool.ir.edit import Editor, Names, copied
from hlotool.ir.edit_calls import outline
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.fusion_facts import (
    TRIVIAL,
    is_always_duplicable,
    is_elementwise,
    is_fusible,
    is_loop_fusible,
    is_reduction,
    is_scalar_constant,
    loop_shape,
)
from hlotool.rewrite.passes.fusion_legality import Part, Setting, may_fuse

#: More often no instruction is written. XLA: kAllowedCodeDuplication.
MOST_EMISSIONS: Final = 15

#: Reads a transposed index, which is as good as the same.
_SAME_INDEX = opcodes_with(Trait.REGROUPS) - {"broadcast"}


# What is read through slices, pads or concatenations is read at other indices than the result's, and is
# written into the kernel once for each; through several of them in a row, that multiplies. XLA:
# fusion_node_indexing_evaluation.cc.


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


#: Operations on less than what the loop runs over, that it does again for every element: a few are nothing
#: beside a read of memory, the key of a random generator, which takes hundreds, is another kernel's work.
_MOST_SMALLER = 32


@dataclass(slots=True)
class Group:
    """What is to become a fusion.

    Attributes:
        members: the root first, then producers, users before what they use.
        copies: members that stay for others, too; the fusion gets copies.
    """

    members: list[Instruction]
    copies: set[Instruction] = field(default_factory=set)

    def part(self) -> Part:
        """The group as the rules of fusion see it: one producer or consumer with the root as its result."""
        return Part.planned(self.members[::-1], self.members[:1])


def _is_smaller(producer: Instruction, root: Instruction) -> bool:
    """Whether a loop that ends in `root` computes each element of the producer many times."""
    if producer.opcode in TRIVIAL or producer.opcode in ("constant", "iota"):
        return False
    return prod(loop_shape(producer)) < prod(loop_shape(root))


def _is_worthwhile(group: Group) -> bool:
    """Whether it holds two operations that compute, or one and a broadcast that is then never written."""
    counts = Counter(m.opcode for m in group.members)
    computing = sum(n for opcode, n in counts.items() if opcode not in ("constant", *TRIVIAL))
    return computing > 1 or (computing == 1 and bool(counts["broadcast"]))


@dataclass(slots=True)
class LoopFusion:
    """Forms the fusions of one computation, last consumers first.

    Attributes:
        module: that the computation is part of.
        edit: of the computation.
        names: of the module's computations.
        context: of the pass.
        target: `gpu` or `cpu`.
        max_instructions: no fusion becomes larger.
    """

    module: Module
    edit: Editor
    names: Names
    context: Context
    target: str
    max_instructions: int
    _positions: dict[Instruction, int] = field(default_factory=dict, init=False)

    def form(self, roots: Collection[str]) -> None:
        """Fuse what ends in a root of one of these kinds, `loop` or `input`."""
        self._positions = {i: n for n, i in enumerate(self.edit)}
        for root in reversed(list(self._positions)):
            kind = self._kind(root) if root in self.edit else None
            if kind in roots:
                group = self._grow(root)
                if _is_worthwhile(group) and self.context.spend(str(kind)):
                    self._make(group, str(kind))

    def _kind(self, root: Instruction) -> str | None:
        """What a fusion that ends in `root` would be; None for what has no readers."""
        if (
            not self.edit.is_read(root)
            or root.control_predecessors
            or not is_fusible(root)
            or root.opcode == "fusion"
        ):
            return None
        if root.opcode == "scatter" or is_reduction(root):
            return "input" if self.target == "gpu" else "loop"
        return "loop" if is_loop_fusible(root) else None

    def _grow(self, root: Instruction) -> Group:
        """Take in producers, nearest to the root first, as long as the rules allow."""
        edit, group = self.edit, Group([root])
        setting = Setting(edit.users, edit.computation.root, edit.successors)
        inside = {root}
        smaller = 0
        emissions = Emissions([root])
        emissions.add(root)
        for producer in self._producers(group):
            copy = any(u not in inside or u in group.copies for u in edit.users(producer))
            if copy and not is_always_duplicable(producer):
                continue
            if emissions.of(producer) > MOST_EMISSIONS and producer.opcode not in ("broadcast", "constant"):
                continue
            is_smaller = _is_smaller(producer, root)
            if is_smaller and smaller >= _MOST_SMALLER:
                continue
            if self._refuses(producer) or not may_fuse(Part.of(producer), group.part(), setting):
                continue
            group.members.append(producer)
            inside.add(producer)
            emissions.add(producer)
            smaller += is_smaller
            if copy:
                group.copies.add(producer)
            if len(group.members) >= self.max_instructions:
                break
        return group

    def _producers(self, group: Group) -> Iterator[Instruction]:
        """Operands of members, each after all of its users; members may be added meanwhile."""
        heap: list[tuple[int, Instruction]] = []
        seen: set[Instruction] = set()
        taken = 0
        while taken < len(group.members) or heap:
            for member in group.members[taken:]:
                for operand in dict.fromkeys(member.operands):
                    if operand in self._positions and operand not in seen:
                        seen.add(operand)
                        heapq.heappush(heap, (-self._positions[operand], operand))
            taken = len(group.members)
            if heap:
                yield heapq.heappop(heap)[1]

    def _refuses(self, producer: Instruction) -> bool:
        """Large constants and fusions stay outside; on a GPU reductions get kernels of their own."""
        if producer.opcode == "constant":
            return not is_scalar_constant(producer)
        return producer.opcode == "fusion" or (is_reduction(producer) and self.target == "gpu")

    def _make(self, group: Group, kind: str) -> None:
        members = self._with_copies(group)
        root = members[0].opcode.replace("-", "_")
        hlo_kind = "kInput" if kind == "input" else "kLoop"
        outline(
            self.module,
            self.edit,
            members[::-1],
            "fusion",
            {"kind": hlo_kind},
            name=f"{kind}_{root}_fusion",
            body_name=f"fused_{root}",
            names=self.names,
        )
        for original in group.copies:
            self.edit.remove_unused(original)

    def _with_copies(self, group: Group) -> list[Instruction]:
        """The members, with copies of those that others need, too."""
        members: dict[Instruction, None] = {}
        for member in group.members:
            if member not in group.copies:
                members[member] = None
                continue
            copy = self.edit.add(copied(member), before=group.members[0])
            for user in self.edit.users(member):
                if user in members:
                    operands = (copy if o is member else o for o in user.operands)
                    self.edit.set_operands(user, operands)
            members[copy] = None
        return list(members)
