"""Points solved for: numbers that are compared become equal, or lie beside and between the constants there.

What is compared is mostly a linear function of each argument: a secant through two points of the field has no
error, and gives the argument at which it is any number that is wanted. It starts from simple numbers, whose
products and quotients have the sizes that numbers have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.meeting import Numbers, with_simple_floats
from hlotool.backends.field.words import Words
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.replay.exact.arguments import Meeting, Options
from hlotool.replay.exact.result import LeafResult
from hlotool.replay.exact.sides import Asked, Watched
from hlotool.values.flatten import flatten, unflatten

#: Arguments that are moved, and comparisons that are solved for, of each program; the first ones.
_LEAVES: Final = 4
_COMPARED: Final = 6
#: Numbers beside what is compared with a constant: just beside it, and halfway to the next ones.
_BESIDE: Final = 4


@dataclass(frozen=True, slots=True)
class Start:
    """An ordinary point to start from.

    Attributes:
        module: the program that says what arguments there are.
        options: of that point.
        arguments: words, one value per parameter of one device.
        numbers: of which some are wanted (`meeting_numbers`).
    """

    module: Module
    options: Options
    arguments: Sequence[Any]
    numbers: Numbers


def solved_points(
    at: Callable[[Options], Sequence[LeafResult]], watched: Sequence[Watched], start: Start
) -> Iterator[Meeting]:
    """Points at which what is compared is what it is wanted to be, for every question about ties.

    Args:
        at: evaluates both programs at a point.
        watched: both programs.
        start: where secants begin.
    """
    before = _asked(at, watched, start, start.arguments)
    others = with_simple_floats(start.module, start.arguments, start.options.seed + 1)
    for place in _places(start.module, start.arguments)[:_LEAVES]:
        moved = _with(start, place, _leaf(start, others, place))
        after = _asked(at, watched, start, moved)
        for one, other in zip(before, after):
            if one is None or other is None or one.value.shape != other.value.shape:
                continue
            for wanted in _wanted(one, start.numbers):
                ends = (_leaf(start, arguments, place) for arguments in (start.arguments, moved))
                x = _secant(one, other, wanted, *ends)
                if x is not None:
                    yield Meeting(0, words=_with(start, place, x))


def _asked(
    at: Callable[[Options], Sequence[LeafResult]],
    watched: Sequence[Watched],
    start: Start,
    words: Sequence[Any],
) -> list[Asked | None]:
    for program in watched:
        program.record(_COMPARED)
    at(replace(start.options, meeting=Meeting(0, words=words)))
    return [one for program in watched for one in program.recorded()]


def _wanted(asked: Asked, numbers: Numbers) -> list[Words]:
    """What is compared with, and numbers beside it, where it is one of the numbers."""
    first = asked.bound.reshape(-1)[:1]
    is_one = bool(first.size) and bool((asked.bound == first).all())
    found = np.flatnonzero(numbers.words == first) if is_one else np.zeros(0, np.intp)
    if not found.size:
        return [asked.bound]
    value = numbers.values[found[0]]
    order = np.argsort(np.abs(numbers.values - value), kind="stable")
    return [asked.bound, *(numbers.words[at].reshape(()) for at in order[1 : 1 + _BESIDE])]


def _secant(one: Asked, other: Asked, wanted: Words, x: Words, y: Words) -> Words | None:
    """The argument at which the value is what is wanted, on a line through x and y; None if it is fixed."""
    slope = w.subtract(other.value, one.value)
    missing = w.subtract(np.broadcast_to(wanted, one.value.shape), one.value)
    moves = slope != w.ZERO
    if not moves.any():
        return None
    share = np.where(moves, w.multiply(missing, w.inverse(np.where(moves, slope, w.ONE))), w.ZERO)
    if share.size == x.size:
        share = share.reshape(x.shape)
    else:
        share = np.broadcast_to(share[moves].reshape(-1)[0], x.shape)
    return np.asarray(w.add(x, w.multiply(share, w.subtract(y, x))))


def _places(module: Module, arguments: Sequence[Any]) -> list[tuple[int, int]]:
    """The arrays of real floats among the arguments: the parameter, and the number of the leaf."""
    return [
        (number, leaf)
        for number, (parameter, value) in enumerate(zip(module.entry.parameters, arguments))
        for leaf, (_, shape, _) in enumerate(flatten(parameter.shape, value))
        if isinstance(shape, ArrayShape) and shape.element_type.is_floating and shape.size
    ]


def _leaf(start: Start, arguments: Sequence[Any], place: tuple[int, int]) -> Words:
    number, leaf = place
    parameter = start.module.entry.parameters[number]
    return np.asarray([part for _, _, part in flatten(parameter.shape, arguments[number])][leaf])


def _with(start: Start, place: tuple[int, int], words: Words) -> list[Any]:
    """The arguments to start from with one array in place of another."""
    number, leaf = place
    shape = start.module.entry.parameters[number].shape
    parts = [part for _, _, part in flatten(shape, start.arguments[number])]
    parts[leaf] = words
    return [*start.arguments[:number], unflatten(shape, parts), *start.arguments[number + 1 :]]
