"""All sets of a program, those that show most first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Final, TypeVar

from hlotool.backends.base import Value
from hlotool.directed.families import odd_sets, ordinary_sets, quick_sets
from hlotool.directed.mixed import mixed_sets
from hlotool.directed.searched import searched_sets
from hlotool.directed.sets import InputSet
from hlotool.directed.solved import solved_sets
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.values.generate import InputGenerator

#: Sets that cost little and come before the first that is solved for, by which time most of a default budget
#: is spent.
_BEFORE_SOLVED: Final = 15

T = TypeVar("T")


def directed_sets(module: Module, plain: Sequence[Value], seed: int) -> Iterator[InputSet]:
    """Every set but the plain one, made when it is asked for; equal seeds give equal sets.

    After the few that show most, sets of mixed values, odd and ordinary ones, take turns with those of one
    kind of value; once several of each were made, those that inverse arithmetic makes for a decision take
    their turn, too: they take longer. Then come those that a random search finds for outcomes that none of
    them has. What else is odd is last.

    Args:
        module: a program for one device.
        plain: its plain arguments.
        seed: of what is drawn.
    """
    if not plain:
        return

    @cache
    def solved() -> Sequence[InputSet]:
        return _solved(module, plain, seed)

    generator = InputGenerator(module)
    cheap = _in_turn(
        mixed_sets(module, generator, seed, odd=True),
        mixed_sets(module, generator, seed, odd=False),
        ordinary_sets(module, plain, seed, generator),
    )
    known: list[InputSet] = []
    for one in chain(
        quick_sets(module, plain, seed),
        islice(cheap, _BEFORE_SOLVED),
        _in_turn(cheap, (s for s in _later(solved) if not s.odd)),
    ):
        known += [] if one.odd else [one]
        yield one
    yield from searched_sets(module, plain, known, seed)
    yield from _in_turn(odd_sets(module, plain, seed), (s for s in _later(solved) if s.odd))


def _solved(module: Module, plain: Sequence[Value], seed: int) -> Sequence[InputSet]:
    """None where the program cannot be run on the plain arguments: the replay will say why."""
    try:
        return list(solved_sets(module, plain, seed))
    except HlotoolError:
        return []


def _later(make: Callable[[], Sequence[InputSet]]) -> Iterator[InputSet]:
    """The sets, which are made when the first is asked for."""
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
