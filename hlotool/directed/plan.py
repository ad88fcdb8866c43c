"""All sets of a program, those that show most first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Final, TypeVar

import numpy as np

from hlotool.backends.base import Value
from hlotool.directed import corners
from hlotool.directed.families import odd_sets, ordinary_sets, quick_sets
from hlotool.directed.leaves import Range, leaves_of, with_chosen
from hlotool.directed.long_loops import long_loops
from hlotool.directed.mixed import LAST, mixed_sets
from hlotool.directed.searched import searched_sets
from hlotool.directed.sets import InputSet
from hlotool.directed.solved import TIES_OF_PLAIN, TIES_OF_WHOLE, solved_sets
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.values.generate import InputGenerator

#: Sets that cost little and come before the first that is solved for, by which time most of a default budget
#: is spent.
_BEFORE_SOLVED: Final = 15

T = TypeVar("T")


def directed_sets(
    module: Module, plain: Sequence[Value], seed: int, within: Range = None
) -> Iterator[InputSet]:
    """Every set but the plain one, made when it is asked for; equal seeds give equal sets.

    After the few that show most, sets of mixed values, odd and ordinary ones, take turns with those of one
    kind of value; once several of each were made, those that inverse arithmetic makes for a decision take
    their turn, too: they take longer; first those that start from the plain arguments, then ties that start
    from small whole numbers, then ties alone that start from the plain arguments. Then come those that a
    random search finds for outcomes that none of them has, then what else is odd. More mixed values follow;
    long loops, which are most work, are last.

    Args:
        module: a program for one device.
        plain: its plain arguments.
        seed: of what is drawn.
        within: bounds of floats that no use bounds; no set has NaN, infinity or extreme numbers then.
    """
    if not plain:
        return

    @cache
    def solved() -> Sequence[InputSet]:
        return _solved(module, plain, seed, within)

    @cache
    def ties() -> Sequence[InputSet]:
        # Where nothing came of plain numbers, another search would only take as long again.
        whole = _whole(module, plain, seed, within)
        return _solved(module, whole, seed, within, TIES_OF_WHOLE) if solved() else ()

    @cache
    def plain_ties() -> Sequence[InputSet]:
        return _solved(module, plain, seed, within, TIES_OF_PLAIN) if solved() else ()

    generator = InputGenerator(module, within)
    cheap = _in_turn(
        mixed_sets(module, generator, seed, odd=True, within=within),
        mixed_sets(module, generator, seed, odd=False, within=within),
        ordinary_sets(module, plain, seed, generator, within),
    )
    known: list[InputSet] = []
    for one in chain(
        quick_sets(module, plain, seed, within),
        islice(cheap, _BEFORE_SOLVED),
        _in_turn(cheap, (s for s in _later(solved, ties, plain_ties) if not s.odd)),
    ):
        known += [] if one.odd else [one]
        yield one
    yield from searched_sets(module, plain, known, seed, within)
    yield from _in_turn(
        odd_sets(module, plain, seed, within), (s for s in _later(solved, ties, plain_ties) if s.odd)
    )
    yield from _in_turn(
        mixed_sets(module, generator, seed, odd=True, within=within, numbers=LAST),
        mixed_sets(module, generator, seed, odd=False, within=within, numbers=LAST),
    )
    yield from long_loops(module, plain)


def _solved(
    module: Module, start: Sequence[Value], seed: int, within: Range, ties: str = ""
) -> Sequence[InputSet]:
    """None where the program cannot be run on the arguments to start from: the replay will say why."""
    try:
        return list(solved_sets(module, start, seed, ties, within))
    except HlotoolError:
        return []


def _whole(module: Module, plain: Sequence[Value], seed: int, within: Range) -> Sequence[Value]:
    """Arguments from which inverse arithmetic is mostly exact, so that a tie is one to the last bit."""
    choose = corners.coincident(np.random.default_rng([seed, 7]))
    return with_chosen(module, plain, leaves_of(module, plain, within), choose)[0]


def _later(*makers: Callable[[], Sequence[InputSet]]) -> Iterator[InputSet]:
    """The sets of each in turn, which are made when its first is asked for."""
    for make in makers:
        yield from make()


def _in_turn(*sources: Iterator[T]) -> Iterator[T]:
    """One of each, until all are at their end; nothing is asked for before it is its turn."""
    waiting = list(sources)
    while waiting:
        for source in list(waiting):
            try:
                yield next(source)
            except StopIteration:
                waiting.remove(source)
