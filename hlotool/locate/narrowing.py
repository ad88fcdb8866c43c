"""The first of many operations that goes wrong, found by putting right values in its place.

Hundreds of passes apart, names do not tell which value of one program is which of the other, and
operations were rewritten. But where a value of the wrong program is replaced by the one of the right program
that belongs there, what is computed from it gets right; and with any other value it hardly does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from hlotool.locate.cone import cone_size, is_constant
from hlotool.locate.evaluation import Evaluator, Way, fitted
from hlotool.locate.frames import FORMS, Node, iteration_of, same_place
from hlotool.locate.pairing import Pairing
from hlotool.locate.store import Sample
from hlotool.locate.telling import is_uniform

#: Values that are tried in all.
_MOST_TRIALS = 2_000

#: Where values that both programs have stand in the order of trials.
_OUTSIDE = 2


class Narrowing:
    """Tries values of the right program in places of the wrong one.

    Args:
        pairing: of the two executions.
        evaluator: computes parts of the wrong program again.
        end: time after which nothing new is tried (`time.monotonic`).
    """

    def __init__(self, pairing: Pairing, evaluator: Evaluator, end: float) -> None:
        self._pairing = pairing
        self.evaluator = evaluator
        self._end = end
        self._left = _MOST_TRIALS

    def earliest(
        self,
        one: Node,
        other: Node,
        members: Sequence[Node],
        boundary: Iterable[Node],
        candidates: Sequence[Node],
    ) -> tuple[Node, Node] | None:
        """What goes wrong first on the way to a value, and what it should be.

        Args:
            one: the value as it should be.
            other: the value as it is.
            members: nodes that it is made of, up to values that the right program has, too.
            boundary: those values; a fault can make a value equal to another one of the right program.
            candidates: nodes of the right program that their values may be found among.
        """
        inside = set(members)
        by_size: dict[int, list[Node]] = {}
        for candidate in candidates:
            if isinstance(kept := candidate.kept, Sample):
                by_size.setdefault(prod(kept.dims), []).append(candidate)
        if is_uniform(one.value):
            return None
        order = [
            (int(self._pairing.is_known(m)), cone_size(m, inside), m)
            for m in members
            if m != other and not is_constant(m) and not self._pairing.is_right(m)
        ]
        order += [(_OUTSIDE, 0, m) for m in boundary if self._is_worth_it(m)]
        for _, _, node in sorted(order, key=lambda item: item[:2]):
            found = self._right_value(one, other, node, inside, by_size)
            if found is not None:
                return found, node
        return None

    def _is_worth_it(self, node: Node) -> bool:
        return (
            node.instruction.opcode != "parameter"
            and not is_constant(node)
            and self._pairing.is_telling(node)
            and not self._pairing.is_right(node)
        )

    def _right_value(
        self, one: Node, other: Node, node: Node, inside: set[Node], by_size: Mapping[int, Sequence[Node]]
    ) -> Node | None:
        kept = node.kept
        if not isinstance(kept, Sample):
            return None
        tried = {kept.digest}
        is_form = other.instruction.opcode in FORMS
        if node not in inside and not is_form and isinstance(one.kept, Sample):
            # What rounds, clamps or selects gives a right result of the right result itself.
            tried.add(one.kept.digest)
        way: Way | None = None
        for candidate in by_size.get(prod(kept.dims), ()):
            if candidate.kept.digest in tried:
                continue
            tried.add(candidate.kept.digest)
            if self._left <= 0 or time.monotonic() > self._end:
                return None
            value = fitted(candidate.value, node)
            if value is None:
                continue
            way = way or self.evaluator.way(other, node, inside)
            if way is None:
                return None
            self._left -= 1
            result = way.value(value)
            is_right = result is not None and self._pairing.is_near(result, one)
            if is_right and self._holds_elsewhere(one, other, node, candidate, inside):
                return candidate
        return None

    def _holds_elsewhere(
        self, one: Node, other: Node, node: Node, candidate: Node, inside: set[Node]
    ) -> bool:
        """Whether the same change makes the value right in other places, as far as that is known.

        Those are the program on other arguments, and earlier iterations of the loop around it.
        """
        pairing = self._pairing
        depth = len(iteration_of(other.frame)) - 1
        places: list[tuple[Pairing, int]] = [(elsewhere, 0) for elsewhere in pairing.others]
        places += [(pairing, -back) for back in (1, 2) if depth >= 0]
        for there, shift in places:
            right = [same_place(there.before, n, depth, shift) for n in (one, candidate)]
            wrong = [same_place(there.after, n, depth, shift) for n in (other, node)]
            (expected, source), (actual, target) = right, wrong
            if expected is None or source is None or actual is None or target is None:
                continue
            moved = {m for n in inside if (m := same_place(there.after, n, depth, shift)) is not None}
            value = fitted(source.value, target)
            if value is None:
                continue
            result = self.evaluator.changed(actual, target, value, moved)
            if result is None or not there.is_near(result, expected):
                return False
        return True
