"""For every instruction of the right program the one of the left that computes the same: not one-to-one.

Compilers copy: one constant before optimisation is ten in ten fusions after it. An alignment pairs one of the
ten; this gives the other nine the same counterpart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hlotool.alignment import points
from hlotool.alignment.align import Alignment
from hlotool.alignment.matching import COMMUTATIVE
from hlotool.alignment.similarity import Side, likeness
from hlotool.ir.module import Instruction

Counterparts = dict[Instruction, Instruction]

#: Candidates of one name path that are looked at: an unrolled loop has hundreds with the same, and all alike.
_MOST = 64


def counterparts(alignment: Alignment) -> Counterparts:
    """From nodes of the right program to nodes of the left; the pairs of the alignment first."""
    finder = _Finder(alignment)
    finder.find()
    return finder.found


class _Finder:
    def __init__(self, alignment: Alignment) -> None:
        self._left: Side = alignment.left
        self._right: Side = alignment.right
        nodes = self._right.graph.operands
        self.found: Counterparts = {i: o for i, o in alignment.matching.left_of.items() if i in nodes}
        self._by_value: dict[int, Instruction] = {}
        for one in self._left.graph.nodes:
            self._by_value.setdefault(self._left.prints.values[one], one)
        self._by_path: dict[tuple[str, str], list[Instruction]] = defaultdict(list)
        for one in self._left.graph.nodes:
            if tail := self._left.traits[one].tail:
                self._by_path[tail, one.opcode].append(one)

    def find(self) -> None:
        """Users before operands, then operands before users, as each may know what the other does not."""
        free = [i for i in self._right.graph.nodes if i not in self.found]
        for other in free:
            same = self._by_value.get(self._right.prints.values[other])
            if same is not None:
                self.found[other] = same
        for order in (reversed(free), iter(free)):
            for other in order:
                if other not in self.found:
                    self._choose(other)

    def _choose(self, other: Instruction) -> None:
        best, most = None, points.ENOUGH
        for one, support in self._candidates(other):
            found = likeness(self._left, self._right, one, other) + support
            if found >= most:
                best, most = one, found
        if best is not None:
            self.found[other] = best

    def _candidates(self, other: Instruction) -> Iterator[tuple[Instruction, float]]:
        """What could be its counterpart, with what its neighbours say for that."""
        for use in self._right.graph.users[other]:
            user = self.found.get(use.user)
            if user is None or use.position < 0:
                continue
            operands = self._left.graph.operands.get(user, ())
            if use.user.opcode in COMMUTATIVE:
                yield from ((one, points.MATCHED_NEIGHBOURS / 2) for one in operands)
            elif use.position < len(operands):
                yield operands[use.position], points.MATCHED_NEIGHBOURS
        tail = self._right.traits[other].tail
        for one in self._by_path.get((tail, other.opcode), ())[:_MOST]:
            yield one, self._operand_support(one, other)

    def _operand_support(self, one: Instruction, other: Instruction) -> float:
        ones, others = self._left.graph.operands[one], self._right.graph.operands[other]
        if not ones or len(ones) != len(others):
            return 0.0
        good = sum(self.found.get(b) is a for a, b in zip(ones, others))
        return points.MATCHED_NEIGHBOURS * good / len(ones)
