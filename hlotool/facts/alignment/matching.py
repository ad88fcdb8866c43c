"""Growing a one-to-one matching from pairs that are certain to pairs that are likely.

Pairs wait in a queue, those with most points first. A pair that is accepted proposes its neighbours: operands
at the same position, users that read it in the same way. So the best evidence decides first, and what it
decides becomes evidence for the rest. Copies, which compute the same, wait until their readers are known.

The idea of seeds, exact matches and greedy growth along both directions of the graph is common to tree and
graph differencing, XLA's hlo_diff among them.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import count, product

from hlotool.facts.alignment import similarity as points
from hlotool.facts.alignment.similarity import Side, Use, View, likeness
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with

#: Pairs of users (or of the members of a bucket) that are looked at one by one; beyond it, in order. So
#: twenty thousand instructions of three kinds still take seconds, as a test demands.
_MOST_PAIRS = 256
#: Operands asked for evidence: the tuple of a training step has a thousand, and the first few suffice.
_MOST_OPERANDS = 32
#: Their operands may change places.
COMMUTATIVE = opcodes_with(Trait.COMMUTATIVE)

Pair = tuple[Instruction, Instruction]


class Matching:
    """Pairs of instructions, each in one pair at most.

    Attributes:
        right_of: the partner of an instruction of the left program.
        left_of: the partner of an instruction of the right program.
    """

    def __init__(self) -> None:
        self.right_of: dict[Instruction, Instruction] = {}
        self.left_of: dict[Instruction, Instruction] = {}

    def add(self, one: Instruction, other: Instruction) -> None:
        """Make a pair of two that have no partner."""
        self.right_of[one] = other
        self.left_of[other] = one

    def is_free(self, one: Instruction, other: Instruction) -> bool:
        """Whether both have no partner."""
        return one not in self.right_of and other not in self.left_of

    def is_pair(self, one: Instruction, other: Instruction) -> bool:
        """Whether they are partners."""
        return self.right_of.get(one) is other


class Grower:
    """Adds pairs to a matching, the likeliest first, as far as there is evidence.

    Args:
        left: one program.
        right: the other.
        matching: what is known already, and gets more.
        views: the neighbours of the instructions of both.
    """

    def __init__(self, left: Side, right: Side, matching: Matching, views: tuple[View, View]) -> None:
        self._left = left
        self._right = right
        self._matching = matching
        self._views = views
        self._queue: list[tuple[bool, float, float, int, Instruction, Instruction]] = []
        self._ticket = count()
        self._likeness: dict[Pair, float] = {}
        self._repeated = _repeated(left) | _repeated(right)
        self._scale = len(right.graph.home) / max(1, len(left.graph.home))

    def accept(self, one: Instruction, other: Instruction) -> None:
        """Make a pair, whatever its points, and let it propose its neighbours."""
        if self._matching.is_free(one, other):
            self._matching.add(one, other)
            self.spread(one, other)

    def propose(self, one: Instruction, other: Instruction, is_read: bool = False) -> None:
        """Put a pair into the queue, if both are free and enough speaks for them.

        Args:
            one: of the left program.
            other: of the right program.
            is_read: partners read the two in the same place.
        """
        if not self._matching.is_free(one, other):
            return
        found = self.points(one, other)
        if found >= points.ENOUGH:
            waits = not is_read and self._is_one_of_many(one, other)
            # The ticket is unlike any other, so that the heap never compares instructions.
            entry = (waits, -found, self._distance(one, other), next(self._ticket), one, other)
            heapq.heappush(self._queue, entry)

    def grow(self) -> None:
        """Accept pairs until the queue is empty."""
        while self._queue:
            *_, one, other = heapq.heappop(self._queue)
            # Since it was proposed, its neighbours may have found partners that speak against it.
            if self._matching.is_free(one, other) and self.points(one, other) >= points.ENOUGH:
                self._matching.add(one, other)
                self.spread(one, other)

    def sweep(self, key: Callable[[Side, Instruction], Hashable | None]) -> None:
        """Propose free instructions with equal keys to each other, and grow; None is no key."""
        for ones, others in self._buckets(key):
            if len(ones) * len(others) <= _MOST_PAIRS:
                for one, other in product(ones, others):
                    self.propose(one, other)
            else:
                # All pairs of so many would take quadratic time; the order of the texts is likely the same.
                for one, other in zip(ones, others):
                    self.propose(one, other)
        self.grow()

    def certain(self, key: Callable[[Side, Instruction], Hashable | None]) -> None:
        """Accept free instructions whose key is unique on their side."""
        for ones, others in self._buckets(key):
            if len(ones) == len(others) == 1:
                self.accept(ones[0], others[0])

    def points(self, one: Instruction, other: Instruction) -> float:
        """What speaks for a pair, its neighbours considered."""
        known = self._likeness.get((one, other))
        if known is None:
            known = self._likeness[one, other] = likeness(self._left, self._right, one, other)
        if known < 0:
            return known
        return known + self._operand_points(one, other) + self._user_points(one, other)

    def spread(self, one: Instruction, other: Instruction) -> None:
        """Propose the neighbours of a pair to each other."""
        for pair in self._read_alike(one, other):
            self.propose(*pair, is_read=True)
        for pair in self._neighbours(one, other):
            self.propose(*pair)

    def _read_alike(self, one: Instruction, other: Instruction) -> Iterator[Pair]:
        """What the two read in the same place: operands, results and parameters of what they call."""
        left, right = self._views
        yield from zip(left.operands.get(one, ()), right.operands.get(other, ()))
        for callee, other_callee in zip(one.called, other.called):
            yield from zip(callee.parameters, other_callee.parameters)
            yield self._resolved(callee.root, other_callee.root)

    def _is_one_of_many(self, one: Instruction, other: Instruction) -> bool:
        """Whether others compute the same: their readers show which is which, once these are matched."""
        value = self._left.prints.values[one]
        if value not in self._repeated or value != self._right.prints.values[other]:
            return False
        context = self._left.prints.contexts.get(one)
        return context is None or context != self._right.prints.contexts.get(other)

    def _neighbours(self, one: Instruction, other: Instruction) -> Iterator[Pair]:
        left, right = self._views
        ones, others = left.operands.get(one, ()), right.operands.get(other, ())
        if one.opcode in COMMUTATIVE or len(ones) != len(others):
            yield from _few(ones, others)
        yield from self._users_alike(left.users.get(one, ()), right.users.get(other, ()))

    def _resolved(self, one: Instruction, other: Instruction) -> Pair:
        if one in self._views[0].operands and other in self._views[1].operands:
            return one, other
        return self._left.graph.resolve(one), self._right.graph.resolve(other)

    def _users_alike(self, ones: Sequence[Use], others: Sequence[Use]) -> Iterator[Pair]:
        """Free users that read in the same way: all pairs of a few, in order where there are many."""
        left = [use for use in ones if use.user not in self._matching.right_of]
        right = [use for use in others if use.user not in self._matching.left_of]
        if len(left) * len(right) <= _MOST_PAIRS:
            for one, other in product(left, right):
                if one.position == other.position or one.user.opcode in COMMUTATIVE:
                    yield one.user, other.user
            return
        groups: dict[tuple[int, int], tuple[list[Use], list[Use]]] = defaultdict(lambda: ([], []))
        for which, uses, labels in (
            (0, left, self._left.prints.labels),
            (1, right, self._right.prints.labels),
        ):
            for use in uses:
                groups[labels[use.user], use.position][which].append(use)
        for group in groups.values():
            yield from ((one.user, other.user) for one, other in _in_order(*group))

    def _operand_points(self, one: Instruction, other: Instruction) -> float:
        left, right = self._views
        ones, others = left.operands.get(one, ()), right.operands.get(other, ())
        if not ones or not others:
            return 0.0
        if one.opcode in COMMUTATIVE and len(ones) == 2 == len(others):
            straight = [self._relation(a, b) for a, b in zip(ones, others)]
            crossed = [self._relation(a, b) for a, b in zip(ones, reversed(others))]
            return max(sum(straight), sum(crossed)) / 2
        most = min(max(len(ones), len(others)), _MOST_OPERANDS)
        return sum(self._relation(a, b) for a, b in zip(ones[:most], others[:most])) / most

    def _user_points(self, one: Instruction, other: Instruction) -> float:
        left, right = self._views
        ones, others = left.users.get(one, ()), right.users.get(other, ())
        if not ones or not others:
            return 0.0
        most = max(len(ones), len(others))
        if most > _MOST_PAIRS:
            return 0.0
        partners = {use.user for use in others}
        matched = [self._matching.right_of.get(use.user) for use in ones]
        good = sum(partner in partners for partner in matched if partner is not None)
        strange = sum(partner is not None for partner in matched) - good
        return (points.MATCHED_NEIGHBOURS * good + points.STRANGE_NEIGHBOURS * strange) / most

    def _relation(self, one: Instruction, other: Instruction) -> float:
        partner = self._matching.right_of.get(one)
        if partner is other:
            return points.MATCHED_NEIGHBOURS
        taken = partner is not None or other in self._matching.left_of
        return points.STRANGE_NEIGHBOURS if taken else 0.0

    def _distance(self, one: Instruction, other: Instruction) -> float:
        """How far apart the two stand in their texts; decides between equals."""
        return abs(self._left.graph.position[one] * self._scale - self._right.graph.position[other])

    def _buckets(
        self, key: Callable[[Side, Instruction], Hashable | None]
    ) -> Iterator[tuple[list[Instruction], list[Instruction]]]:
        """Free instructions of both sides with equal keys, in textual order."""
        buckets: dict[Hashable, tuple[list[Instruction], list[Instruction]]] = {}
        for which, side, partners in (
            (0, self._left, self._matching.right_of),
            (1, self._right, self._matching.left_of),
        ):
            for instruction in self._views[which].operands:
                if instruction not in partners and (found := key(side, instruction)) is not None:
                    buckets.setdefault(found, ([], []))[which].append(instruction)
        yield from [bucket for bucket in buckets.values() if all(bucket)]


def _repeated(side: Side) -> set[int]:
    """Fingerprints of what several nodes compute."""
    counts = Counter(side.prints.values[node] for node in side.graph.nodes)
    return {value for value, count in counts.items() if count > 1}


def _few(ones: Sequence[Instruction], others: Sequence[Instruction]) -> Iterable[Pair]:
    return product(ones, others) if len(ones) * len(others) <= _MOST_PAIRS else ()


def _in_order(ones: list[Use], others: list[Use]) -> Iterator[tuple[Use, Use]]:
    if len(ones) * len(others) <= _MOST_PAIRS:
        return iter(product(ones, others))
    return zip(ones, others)
