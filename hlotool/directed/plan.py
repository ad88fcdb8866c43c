"""All sets of a program, those that show most first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from hlotool.backends.base import Value
from hlotool.directed.families import odd_sets, ordinary_sets
from hlotool.directed.sets import InputSet
from hlotool.directed.solved import solved_sets
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module


def directed_sets(module: Module, plain: Sequence[Value], seed: int) -> Iterator[InputSet]:
    """Every set but the plain one, made when it is asked for; equal seeds give equal sets.

    Sets that inverse arithmetic makes for a decision take turns with those of corner values; what is odd
    comes last.

    Args:
        module: a program for one device.
        plain: its plain arguments.
        seed: of what is drawn.
    """
    if not plain:
        return
    solved = _solved(module, plain, seed)
    for pair in zip_longest(ordinary_sets(module, plain, seed), (s for s in solved if not s.odd)):
        yield from (one for one in pair if one is not None)
    for pair in zip_longest(odd_sets(module, plain, seed), (s for s in solved if s.odd)):
        yield from (one for one in pair if one is not None)


def _solved(module: Module, plain: Sequence[Value], seed: int) -> list[InputSet]:
    """None where the program cannot be run on the plain arguments: the replay will say why."""
    try:
        return list(solved_sets(module, plain, seed))
    except HlotoolError:
        return []
