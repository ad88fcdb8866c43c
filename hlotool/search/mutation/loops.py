"""What stays true of the state of a loop, however often its body runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers
from hlotool.analysis.trip_counts import ceilings, counter_limits
from hlotool.errors import Unsupported
from hlotool.ir.module import Instruction
from hlotool.ir.types import leaves
from hlotool.search.mutation.terms import Term

#: Iterations that are looked at: what still changes then is not known.
_ROUNDS: Final = 8
#: Instructions of a program whose loops are followed: each takes about 0.15 ms, so that a proof takes about a
#: second. A loop over 20 numbers with some hundred instructions in its body is a quarter of that.
_MOST_READ: Final = 8_000
_ANYTHING: Final = MachineRange()

#: What an iteration makes of the arrays of the state.
Step: TypeAlias = Callable[[Sequence[Term]], Sequence[Term]]
#: Makes an array of a place in the state of which nothing is known but its type.
Fresh: TypeAlias = Callable[[int], Term]


@dataclass(slots=True)
class Iterations:
    """Loops followed one iteration after the other, as long as it is known that there is another one.

    Attributes:
        read: instructions that were read so far, in all iterations of all loops and outside of them.
    """

    read: int = 0

    def followed(self, state: Sequence[Term], condition: Step, body: Step) -> tuple[list[Term], bool]:
        """The state where nothing more is known of the condition, and whether the loop ends there.

        Args:
            state: before the first iteration.
            condition: gives the pred that says whether there is another one.
            body: gives the state after an iteration.

        Raises:
            Unsupported: there are too many iterations, perhaps without an end.
        """
        arrays = list(state)
        while True:
            [goes_on] = condition(arrays)
            if goes_on.known is None or not goes_on.known:
                return arrays, goes_on.known is not None
            if self.read > _MOST_READ:
                raise Unsupported(f"loops of which more than {_MOST_READ} instructions would be read")
            before, arrays = arrays, list(body(arrays))
            if all(np.array_equal(one.symbols, other.symbols) for one, other in zip(before, arrays)):
                raise Unsupported("a loop that goes on without an end")


@dataclass(frozen=True, slots=True)
class Invariant:
    """What holds of the arrays of a loop's state before each iteration and after the last one.

    Attributes:
        before: as the condition sees them, and as they are returned.
        after: what the body makes of them where the condition held.
        stays: whether an array is what it was before the loop.
        like: an earlier array with the same elements, or the array itself.
    """

    before: Sequence[Term]
    after: Sequence[Term]
    stays: Sequence[bool]
    like: Sequence[int]


@dataclass(slots=True)
class _Guess:
    """What is taken to hold until an iteration refutes it.

    Attributes:
        bounds: of each array.
        widened: how often they were given up for wider ones.
        stays: whether an array is what it was before the loop.
        like: an earlier array with the same elements, or the array itself.
    """

    bounds: list[MachineRange]
    widened: list[int]
    stays: list[bool]
    like: list[int]


def invariant(loop: Instruction, start: Sequence[Term], fresh: Fresh, step: Step) -> Invariant:
    """What each iteration of a `while` keeps.

    What the body hands on unchanged is what it was before; what starts alike and is changed alike stays
    alike.

    Args:
        loop: the instruction.
        start: the arrays of its state before the first iteration.
        fresh: gives unknown arrays; the same one for the same place.
        step: of the body.
    """
    limits = _Limits(loop, start)
    guess = _Guess(
        [limits.fixed.get(n, limits.before(n, term.bounds)) for n, term in enumerate(start)],
        [0] * len(start),
        [True] * len(start),
        [_first_like(start, n) for n in range(len(start))],
    )
    for _ in range(_ROUNDS):
        state = _state(start, fresh, guess)
        after = step(limits.entered(state))
        if not _refute(guess, state, after, limits):
            return Invariant(state, after, guess.stays, guess.like)
    nothing = [replace(fresh(n), bounds=limits.fixed.get(n, fresh(n).bounds)) for n in range(len(start))]
    return Invariant(nothing, step(limits.entered(nothing)), [False] * len(start), list(range(len(start))))


def _first_like(start: Sequence[Term], number: int) -> int:
    return next(n for n, one in enumerate(start) if np.array_equal(one.symbols, start[number].symbols))


def _state(start: Sequence[Term], fresh: Fresh, guess: _Guess) -> list[Term]:
    found: list[Term] = []
    for n, term in enumerate(start):
        if guess.stays[n]:
            found.append(term)
            continue
        one = fresh(guess.like[n])
        found.append(replace(one, bounds=one.bounds.intersection(guess.bounds[n])))
    return found


def _refute(guess: _Guess, state: Sequence[Term], after: Sequence[Term], limits: _Limits) -> bool:
    """Give up what an iteration does not keep; whether there was anything."""
    before = replace(guess, bounds=list(guess.bounds), stays=list(guess.stays), like=list(guess.like))
    for n, (old, new) in enumerate(zip(state, after)):
        guess.stays[n] &= np.array_equal(old.symbols, new.symbols)
        if n not in limits.fixed and not guess.bounds[n].covers(new.bounds):
            guess.bounds[n] = guess.bounds[n].union(new.bounds) if not guess.widened[n] else _ANYTHING
            guess.widened[n] += 1
    for n, one in enumerate(before.like):
        alike = (m for m in range(n + 1) if before.like[m] == one and guess.stays[m] == guess.stays[n])
        guess.like[n] = next(m for m in alike if np.array_equal(after[m].symbols, after[n].symbols))
    return (before.bounds, before.stays, before.like) != (guess.bounds, guess.stays, guess.like)


class _Limits:
    """Bounds of integers in the state that follow from how the loop counts.

    Attributes:
        fixed: of counters, by place.
    """

    def __init__(self, loop: Instruction, start: Sequence[Term]) -> None:
        places = [index for index, _ in leaves(loop.shape)]
        starts = {at: int(term.bounds.low) for at, term in zip(places, start) if _is_integer(term)}
        counters, most = counter_limits(loop, starts), ceilings(loop, starts)
        inside = counter_limits(loop, starts, in_body=True)
        self.fixed = {n: of_integers(*counters[at]) for n, at in enumerate(places) if at in counters}
        self._inside = {n: of_integers(*inside[at]) for n, at in enumerate(places) if at in inside}
        self._most = {n: most[at] for n, at in enumerate(places) if at in most}

    def before(self, number: int, bounds: MachineRange) -> MachineRange:
        """Of the state: up to the number that ends the loop."""
        if number not in self._most:
            return bounds
        return bounds.union(of_integers(bounds.low, self._most[number]))

    def entered(self, state: Sequence[Term]) -> list[Term]:
        """As an iteration sees it: below that number, and at no later count."""
        below = {n: of_integers(-math.inf, most - 1) for n, most in self._most.items()}

        def within(n: int, term: Term) -> Term:
            for limits in (below.get(n), self._inside.get(n)):
                if limits is not None:
                    term = replace(term, bounds=term.bounds.intersection(limits))
            return term

        return [within(n, term) for n, term in enumerate(state)]


def _is_integer(term: Term) -> bool:
    known = term.known
    return known is not None and known.size == 1 and np.asarray(known).dtype.kind in "iu"
