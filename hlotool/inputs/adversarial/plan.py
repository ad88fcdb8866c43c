"""All sets of a program, those that show most first; at the end a random search guided by coverage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Final, TypeVar

import numpy as np

from hlotool.backends.base import Value
from hlotool.errors import HlotoolError
from hlotool.inputs.adversarial import corners
from hlotool.inputs.adversarial.families import (
    LAST,
    early_sets,
    mixed_sets,
    odd_sets,
    ordinary_sets,
    quick_sets,
)
from hlotool.inputs.adversarial.integer_extents import counts, long_loops
from hlotool.inputs.adversarial.sets import Chooser, InputSet, Leaf, Range, leaves_of, with_chosen
from hlotool.inputs.adversarial.solved import TIES_OF_PLAIN, TIES_OF_WHOLE, solved_sets
from hlotool.inputs.coverage.observer import Coverage, Instrumented
from hlotool.inputs.generate import InputGenerator
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module

#: Mixed sets that come before the first that is solved for, which may take most of a default budget.
_BEFORE_SOLVED: Final = 5
#: Sets for what only the tested program decides that no others come between.
_OF_TESTED: Final = 12

T = TypeVar("T")


def directed_sets(
    module: Module,
    plain: Sequence[Value],
    seed: int,
    within: Range = None,
    tested: Module | None = None,
) -> Iterator[InputSet]:
    """Every set but the plain one, made when it is asked for; equal seeds give equal sets.

    After those that show most, the limits of loops among them, a few mixed ones and what is solved for
    decisions that the tested program alone has, sets of mixed values, odd and ordinary ones, take turns with
    those of one kind of value; once several of each were made, those that inverse arithmetic makes for a
    decision take their turn, too, for they take longer: first those that start from the plain arguments, then
    ties that start from small whole numbers, then ties alone that start from the plain arguments. Then come
    those that a random search finds for outcomes that none of them has, then what else is odd. More mixed
    values follow; long loops, which are most work, are last.

    Args:
        module: a program for one device.
        plain: its plain arguments.
        seed: of what is drawn.
        within: bounds of floats that no use bounds; no set has NaN, infinity or extreme numbers then.
        tested: the program that `module` is compared with, which takes the same arguments: what only it
            decides is asked about, too.
    """
    if not plain:
        return

    solving = _Solving(module, plain, seed, within, tested)
    generator = InputGenerator(module, within)
    cheap = _in_turn(
        mixed_sets(module, generator, seed, odd=True, within=within),
        mixed_sets(module, generator, seed, odd=False, within=within),
        ordinary_sets(module, plain, seed, generator, within),
    )
    of_tested = (s for s in solving.of_tested() if not s.odd)
    own = (s for s in chain(solving.sets(), solving.own_ties()) if not s.odd)
    odd = (s for s in chain(solving.of_tested(), solving.sets()) if s.odd)
    known: list[InputSet] = []
    for one in chain(
        quick_sets(module, plain, seed, within),
        counts(module, plain),
        early_sets(module, plain, seed, within),
        islice(cheap, _BEFORE_SOLVED),
        islice(of_tested, _OF_TESTED),
        _in_turn(cheap, chain(of_tested, own), odd),
    ):
        known += [] if one.odd else [one]
        yield one
    yield from searched_sets(module, plain, known, seed, within)
    yield from _in_turn(odd_sets(module, plain, seed, within), (s for s in solving.own_ties() if s.odd))
    yield from _in_turn(
        mixed_sets(module, generator, seed, odd=True, within=within, numbers=LAST),
        mixed_sets(module, generator, seed, odd=False, within=within, numbers=LAST),
    )
    yield from long_loops(module, plain)


class _Solving:
    """The sets that inverse arithmetic makes, as far as they are asked for; see `directed_sets`."""

    def __init__(
        self, module: Module, plain: Sequence[Value], seed: int, within: Range, tested: Module | None
    ) -> None:
        self._module, self._plain, self._seed = module, plain, seed
        self._within, self._tested = within, tested
        self._known: dict[tuple[str, bool], _Kept] = {}

    def sets(self, ties: str = "", of_tested: bool = False) -> Iterator[InputSet]:
        """Those of one kind; none where the program cannot be run on what they start from."""
        kept = self._known.get((ties, of_tested))
        if kept is None:
            kept = self._known[ties, of_tested] = _Kept(self._made(ties, of_tested))
        return iter(kept)

    def of_tested(self) -> Iterator[InputSet]:
        """For the decisions that only the tested program has."""
        yield from self.sets(of_tested=True)
        yield from self.ties(TIES_OF_WHOLE, of_tested=True)

    def own_ties(self) -> Iterator[InputSet]:
        """Ties alone of the decisions of the program itself."""
        yield from self.ties(TIES_OF_WHOLE)
        yield from self.ties(TIES_OF_PLAIN)

    def ties(self, ties: str, of_tested: bool = False) -> Iterator[InputSet]:
        """Ties alone; where nothing came of plain numbers, another search would only take as long again."""
        if next(self.sets(of_tested=of_tested), None) is not None:
            yield from self.sets(ties, of_tested)

    def _made(self, ties: str, of_tested: bool) -> Iterator[InputSet]:
        if of_tested and self._tested is None:
            return
        start = self._whole() if ties == TIES_OF_WHOLE else self._plain
        options = self._seed, ties, self._within, self._tested, of_tested
        with suppress(HlotoolError):
            yield from solved_sets(self._module, start, *options)

    def _whole(self) -> Sequence[Value]:
        """Arguments from which inverse arithmetic is mostly exact, so that a tie is one to the last bit."""
        choose = corners.coincident(np.random.default_rng([self._seed, 7]))
        leaves = leaves_of(self._module, self._plain, self._within)
        return with_chosen(self._module, self._plain, leaves, choose)[0]


class _Kept:
    """Sets that are made once, however often they are gone through."""

    def __init__(self, source: Iterator[InputSet]) -> None:
        self._source = source
        self._made: list[InputSet] = []

    def __iter__(self) -> Iterator[InputSet]:
        number = 0
        while True:
            if number == len(self._made):
                one = next(self._source, None)
                if one is None:
                    return
                self._made.append(one)
            yield self._made[number]
            number += 1


def _in_turn(*sources: Iterator[T]) -> Iterator[T]:
    """One of each, until all are at their end; nothing is asked for before it is its turn."""
    waiting = list(sources)
    while waiting:
        for source in list(waiting):
            try:
                yield next(source)
            except StopIteration:
                waiting.remove(source)


# A random search for outcomes that no other set has, guided by coverage.

#: Draws, and draws without anything new after which the search is given up.
_MOST_DRAWS: Final = 60
_PATIENCE: Final = 20


def searched_sets(
    module: Module, plain: Sequence[Value], known: Sequence[InputSet], seed: int, within: Range = None
) -> Iterator[InputSet]:
    """Sets that have outcomes which neither the plain one nor `known` ones have; equal seeds give equal sets.

    Every draw changes some arrays of a set that was worth keeping.

    Args:
        module: a program for one device.
        plain: its plain arguments.
        known: sets of ordinary values.
        seed: of what is drawn.
        within: bounds of floats that no use bounds.
    """
    search = _Search(module, seed)
    for values in (plain, *(one.values for one in known)):
        search.gain(values)
        if not search.is_open:
            return
    leaves = [leaf for leaf in leaves_of(module, plain, within) if leaf.is_free]
    kept: list[Sequence[Value]] = [plain]
    found = idle = 0
    for _ in range(_MOST_DRAWS):
        if not leaves or not search.is_open or idle >= _PATIENCE:
            return
        base = kept[int(search.rng.integers(len(kept)))]
        values, changed = with_chosen(module, base, leaves_of(module, base, within), search.chooser(leaves))
        gained = search.gain(values) if changed else ()
        idle = 0 if gained else idle + 1
        if gained:
            found += 1
            kept.append(values)
            yield InputSet(f"found {found}", values, aims=gained)


class _Search:
    def __init__(self, module: Module, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 4])
        self._instrumented = Instrumented(module)
        self._coverage: Coverage | None = None

    @property
    def is_open(self) -> bool:
        """Some outcome is still missing, as far as is known."""
        return self._coverage is None or any(True for _ in self._coverage.never())

    def gain(self, values: Sequence[Value]) -> tuple[str, ...]:
        """The outcomes that arguments show for the first time."""
        try:
            seen = self._instrumented.run(values, self._coverage)
        except HlotoolError:
            return ()
        before = dict(self._coverage.never()) if self._coverage is not None else {}
        self._coverage = seen
        after = dict(self._coverage.never())
        return tuple(
            f"{outcome} at {decision.instruction.opcode} %{decision.instruction.name}"
            for decision, missing in before.items()
            for outcome in missing
            if outcome not in after.get(decision, ())
        )

    def chooser(self, leaves: Sequence[Leaf]) -> Chooser:
        """Other values for one or some arrays, each of another kind."""
        share = self.rng.choice([1 / len(leaves), 0.5, 1.0])
        places = {(leaf.parameter, leaf.index) for leaf in leaves if self.rng.random() < share}
        kinds = (
            corners.ties(self.rng),
            corners.whole(self.rng),
            corners.signed(self.rng),
            corners.wide(self.rng),
            corners.one_sided(self.rng, 1),
            corners.one_sided(self.rng, -1),
            corners.constant(float(self.rng.integers(-2, 3))),
            corners.peak(int(self.rng.integers(16))),
        )

        def choose(leaf: Leaf) -> Array | None:
            if (leaf.parameter, leaf.index) not in places:
                return None
            return kinds[int(self.rng.integers(len(kinds)))](leaf)

        return choose
