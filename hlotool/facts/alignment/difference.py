"""The difference of two programs, computation by computation, in the order of their texts."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hlotool.facts.alignment.align import Alignment, Change, changes
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.printer import header_parts

#: Of the header: what says nothing of the program.
_UNSEEN_HEADER = frozenset({"is_scheduled", "frontend_attributes"})


class Status(enum.Enum):
    """What became of an instruction."""

    #: It is in both programs and the same, whatever it is called.
    SAME = "same"
    #: It is in both, in computations that are not partners.
    MOVED = "moved"
    #: It is in both, and something of it differs.
    CHANGED = "changed"
    #: It is in the left program only.
    ONLY_LEFT = "only left"
    #: It is in the right program only.
    ONLY_RIGHT = "only right"


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction of one or both programs.

    Attributes:
        status: what became of it.
        left: the instruction there, if any.
        right: the instruction there, if any.
        changes: what differs.
        renamed: the names differ.
        reordered: both programs are scheduled, and it is executed at another time.
    """

    status: Status
    left: Instruction | None
    right: Instruction | None
    changes: tuple[Change, ...] = ()
    renamed: bool = False
    reordered: bool = False


@dataclass(frozen=True, slots=True)
class ComputationDifference:
    """A computation of one or both programs.

    Attributes:
        left: the computation there, if any.
        right: the computation there, if any.
        lines: in the order of the text; what is only on the left stands after what it follows there. An
            instruction that moved stands in its right computation.
    """

    left: Computation | None
    right: Computation | None
    lines: tuple[Line, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but names."""
        return all(line.status is Status.SAME and not line.reordered for line in self.lines)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two programs.

    Attributes:
        computations: in the order of the right text, those of the left only after what they follow there.
        header: attributes of the module that differ.
    """

    computations: tuple[ComputationDifference, ...]
    header: tuple[Change, ...] = ()

    @property
    def lines(self) -> Iterator[Line]:
        """All instructions."""
        return (line for computation in self.computations for line in computation.lines)

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but names."""
        return not self.header and all(computation.is_same for computation in self.computations)


def difference(alignment: Alignment) -> Difference:
    """What differs between two aligned programs."""
    return _Differ(alignment).difference()


class _Differ:
    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment
        self._left_home = alignment.left.graph.home
        self._right_home = alignment.right.graph.home
        self._partners = {one: other for other, one in alignment.computations.items()}
        modules = alignment.left.graph.module, alignment.right.graph.module
        self._scheduled = all(module.is_scheduled for module in modules)

    def difference(self) -> Difference:
        found = []
        lefts, rights = (side.graph.computations for side in (self._alignment.left, self._alignment.right))
        for left, right in _merged(lefts, rights, self._partners):
            found.append(ComputationDifference(left, right, tuple(self._lines(left, right))))
        return Difference(tuple(found), tuple(self._header()))

    def _lines(self, left: Computation | None, right: Computation | None) -> Iterator[Line]:
        ones = [i for i in left.instructions if not self._went_elsewhere(i, right)] if left else []
        others = list(right.instructions) if right else []
        late = self._out_of_order(left, right) if self._scheduled and left and right else frozenset()
        partners = {
            one: other for one in ones if (other := self._alignment.matching.right_of.get(one)) is not None
        }
        for one, other in _merged(ones, others, partners):
            yield self._line(one, other, late)

    def _went_elsewhere(self, one: Instruction, right: Computation | None) -> bool:
        """Whether it has a partner in another computation, where it is shown."""
        other = self._alignment.matching.right_of.get(one)
        return other is not None and self._right_home[other] is not right

    def _line(self, one: Instruction | None, other: Instruction | None, late: frozenset[Instruction]) -> Line:
        if other is None:
            return Line(Status.ONLY_LEFT, one, None)
        one = self._alignment.matching.left_of.get(other)
        if one is None:
            return Line(Status.ONLY_RIGHT, None, other)
        found = tuple(changes(self._alignment, one, other))
        moved = self._alignment.computations.get(self._right_home[other]) is not self._left_home[one]
        status = Status.CHANGED if found else Status.MOVED if moved else Status.SAME
        return Line(status, one, other, found, one.name != other.name, other in late)

    def _out_of_order(self, left: Computation, right: Computation) -> frozenset[Instruction]:
        """Instructions that are executed at another time: all but a longest run that keeps its order."""
        place = {one: number for number, one in enumerate(left.instructions)}
        common = [
            (place[one], other)
            for other in right.instructions
            if (one := self._alignment.matching.left_of.get(other)) in place and one is not None
        ]
        kept = _longest_increasing([number for number, _ in common])
        return frozenset(other for i, (_, other) in enumerate(common) if i not in kept)

    def _header(self) -> Iterator[Change]:
        left, right = (
            _header_texts(side.graph.module) for side in (self._alignment.left, self._alignment.right)
        )
        for name in sorted({*left, *right}):
            if left.get(name) != right.get(name):
                yield Change(name, left.get(name, ""), right.get(name, ""))


def _header_texts(module: Module) -> dict[str, str]:
    """What the header line says of the program, by name."""
    parts = (part.partition("=") for part in header_parts(module.attributes))
    return {name: text for name, _, text in parts if name not in _UNSEEN_HEADER}


_T = TypeVar("_T", Instruction, Computation)


def _merged(
    ones: Sequence[_T], others: Sequence[_T], partners: Mapping[_T, _T]
) -> Iterator[tuple[_T | None, _T | None]]:
    """Pairs of one and other: all others in order, each `one` without a partner after what it follows."""
    following: dict[_T | None, list[_T]] = {}
    last: _T | None = None
    for one in ones:
        if one in partners:
            last = partners[one]
        else:
            following.setdefault(last, []).append(one)
    back = {other: one for one, other in partners.items()}
    yield from ((one, None) for one in following.get(None, ()))
    for other in others:
        yield back.get(other), other
        yield from ((one, None) for one in following.get(other, ()))


def _longest_increasing(numbers: Sequence[int]) -> set[int]:
    """Positions of a longest increasing subsequence of different numbers."""
    tails: list[int] = []
    positions: list[int] = []
    previous: dict[int, int] = {}
    for i, number in enumerate(numbers):
        slot = bisect_left(tails, number)
        if slot:
            previous[i] = positions[slot - 1]
        tails[slot : slot + 1] = [number]
        positions[slot : slot + 1] = [i]
    kept: set[int] = set()
    current = positions[-1] if positions else None
    while current is not None:
        kept.add(current)
        current = previous.get(current)
    return kept


def count_by_opcode(lines: Sequence[Line]) -> dict[str, Counter[Status]]:
    """How many instructions of each opcode have each status; of changed opcodes the right one counts."""
    counts: dict[str, Counter[Status]] = {}
    for line in lines:
        instruction = line.right or line.left
        assert instruction is not None
        counts.setdefault(instruction.opcode, Counter())[line.status] += 1
    return counts
