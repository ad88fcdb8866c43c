"""Points at which numbers meet: arguments of few different words, the programs' constants among them.

A random word is no other one and no constant. Where the order of equal numbers decides, or what lies between
two constants that are next to each other, arguments have to be equal, or to be such numbers. Simple ones stay
themselves in sums and products (`fractions_of`), so that what is computed of them meets, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.backends.field import words as w
from hlotool.backends.field.blockwise import key, splitmix
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.values import pair
from hlotool.backends.field.words import Words, word_of_hash
from hlotool.ir.arrays import Array, dtype_of, flatten, unflatten
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, array_shapes

#: Constants that are looked at: so many that are nearest to 1.
_CONSTANTS: Final = 24
#: Halves are what roundings differ at, whole numbers what floors do.
_PLAIN: Final = (0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -1.5, 2.0, -2.0)
#: Next to a constant, in f32.
_BESIDE: Final = 2.0**-22
#: Words that are drawn; halves of simple numbers.
_DRAWN: Final = 3
_SIMPLE: Final = 15


@dataclass(frozen=True, slots=True)
class Numbers:
    """What arguments are made of, what tells most first: arrays of one dimension.

    Attributes:
        words: each once.
        values: that they have.
    """

    words: Words
    values: npt.NDArray[np.float64]

    def within(self, kind: ElementType) -> Words:
        """The words of those that a float type holds."""
        largest = float(ml_dtypes.finfo(dtype_of(kind.real_part)).max)  # type: ignore[no-untyped-call]
        return self.words[np.abs(self.values) <= largest]


def meeting_numbers(constants: Constants) -> Numbers:
    """Constants, of what lies between and beside them, and of simple numbers, each once.

    Their sizes become known to the order of the trial.
    """
    sizes = {abs(float(v)) for v in constants.values if v}
    nearest = sorted(sizes, key=lambda v: (abs(np.log2(v)), v))[:_CONSTANTS]
    signed = sorted({s * v for v in nearest for s in (1.0, -1.0)} | {0.0})
    between = [(a + b) / 2 for a, b in pairwise(signed)]
    beside = [v * (1 + d) for v in signed if v for d in (_BESIDE, -_BESIDE)]
    numbers = [0.0, *(v for v in signed if v), *between, *_PLAIN, *beside]
    found: dict[int, float] = {}
    for value in numbers:
        found.setdefault(int(constants.note(value)), value)
    return Numbers(np.array(list(found), np.uint64), np.array(list(found.values())))


def with_meeting_floats(
    module: Module, values: Sequence[Any], seed: int, number: int, numbers: Numbers, specials: bool = False
) -> tuple[Any, ...]:
    """Arguments of a program with few different words in place of their floats.

    Args:
        module: the program.
        values: one per entry parameter, as `with_drawn_floats` takes them.
        seed: of the trial.
        number: of the point among its kind: even ones have the numbers in turn, 1 and 3 have the same few
            words everywhere, other odd ones have arrays of any kind.
        numbers: of `meeting_numbers`.
        specials: half of the elements of one array are NaN or infinity: a second array would hide them.
    """
    arguments = []
    turn, count = 0, max(1, _count(module))
    for parameter, value in zip(module.entry.parameters, values):
        parts = []
        for index, shape, part in flatten(parameter.shape, value):
            if isinstance(shape, ArrayShape) and shape.element_type.is_inexact:
                own = key("meeting", seed, parameter.parameter_number or 0, index)
                kind = _kind(number, key("kind", parameter.parameter_number or 0, index))
                dims, few = np.shape(part), numbers.within(shape.element_type)
                place = number // 2 + turn
                real = _elements(dims, own, kind, seed, place, few)
                if specials and turn == number % count:
                    real = _with_specials(real, number // count)
                imaginary = _elements(dims, own + 1, kind, seed, place + 1, few)
                parts.append(pair(real, imaginary) if shape.element_type.is_complex else real)
                turn += 1
            else:
                parts.append(part)
        arguments.append(unflatten(parameter.shape, parts))
    return tuple(arguments)


def _count(module: Module) -> int:
    """Arrays of floats among the arguments."""
    shapes = [shape for p in module.entry.parameters for shape in array_shapes(p.shape)]
    return sum(shape.element_type.is_inexact for shape in shapes)


#: What an array holds: nothing but 0, the numbers in turn, a few words that all arrays share, ones on a
#: diagonal, ones, words of its own. Not all of them are 0: that would hide what they decide.
_ZERO, _TURN, _SHARED, _UNIT, _ONES, _OWN = range(6)
_MIXED: Final = (_ZERO, _TURN, _SHARED, _UNIT, _TURN, _OWN, _ONES, _TURN)


def _kind(number: int, own: int) -> int:
    if number % 2 == 0:
        return _TURN
    if number <= 3:
        return _SHARED
    # Every array goes through all of them, in steps of its own.
    step, first = 1 + 2 * (own % 4), own // 4
    return _MIXED[(number // 2 * step + first) % len(_MIXED)]


def _elements(dims: Sequence[int], own: int, kind: int, seed: int, turn: int, numbers: Words) -> Array:
    size = prod(dims)
    places = np.arange(size, dtype=np.uint64)
    hashes = splitmix(places ^ np.uint64(own & (1 << 64) - 1))
    if kind == _ZERO:
        flat = np.zeros(size, np.uint64)
    elif kind == _ONES:
        flat = np.full(size, w.ONE)
    elif kind == _UNIT:
        flat = np.zeros(dims, np.uint64)
        if len(dims) > 1:
            flat[..., np.arange(min(dims[-2:])), np.arange(min(dims[-2:]))] = w.ONE
        else:
            flat[...] = w.ONE
    elif kind == _TURN:
        flat = numbers[(places + np.uint64(turn * max(1, size))) % np.uint64(numbers.size)]
    elif kind == _SHARED:
        words = word_of_hash(splitmix(np.arange(_DRAWN, dtype=np.uint64) ^ np.uint64(key("shared", seed))))
        flat = words[np.repeat(hashes, 2)[:size] % np.uint64(_DRAWN)]  # neighbours meet in any case
    else:
        flat = word_of_hash(hashes)
    return flat.reshape(dims)


def _with_specials(words: Words, turn: int) -> Words:
    """Every second element is NaN or infinity, in turn."""
    places = np.arange(words.size).reshape(words.shape)
    chosen = np.array([w.NAN, w.INF, w.NEG_INF], np.uint64)[(places // 2 + turn) % 3]
    return np.where(places % 2 == 0, chosen, words)


def with_simple_floats(module: Module, values: Sequence[Any], seed: int) -> tuple[Any, ...]:
    """Arguments of a program with halves of small whole numbers in place of their floats, none of them 0.

    What arithmetic makes of them has the sizes that it has of numbers, as long as that is simple.
    """
    arguments = []
    for parameter, value in zip(module.entry.parameters, values):
        parts = []
        for index, shape, part in flatten(parameter.shape, value):
            if isinstance(shape, ArrayShape) and shape.element_type.is_inexact:
                own = key("simple", seed, parameter.parameter_number or 0, index)
                hashes = splitmix(np.arange(np.size(part), dtype=np.uint64) ^ np.uint64(own))
                sizes = (hashes % np.uint64(_SIMPLE)).astype(np.int64) + 1
                signs = 1 - 2 * (hashes >> np.uint64(32) & np.uint64(1)).astype(np.int64)
                real = w.multiply(w.integers(sizes * signs), w.rational(1, 2)).reshape(np.shape(part))
                parts.append(pair(real, w.ZERO) if shape.element_type.is_complex else real)
            else:
                parts.append(part)
        arguments.append(unflatten(parameter.shape, parts))
    return tuple(arguments)


def turns(module: Module, values: Sequence[Any], numbers: Numbers) -> int:
    """Points of numbers in turn until the largest array had them all."""
    sizes = [
        np.size(part)
        for p, v in zip(module.entry.parameters, values)
        for _, s, part in flatten(p.shape, v)
        if isinstance(s, ArrayShape) and s.element_type.is_inexact
    ]
    return -(-numbers.words.size // max([1, *sizes])) if sizes else 0
