"""Points at which numbers meet: arguments of few different words, those of the programs' constants among them.

A random word is no other one and no constant. Where the order of equal numbers decides, or what lies between
two constants that are next to each other, arguments have to be equal, or to be such numbers. Simple ones stay
themselves in sums and products (`fractions_of`), so that what is computed of them meets, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.hashing import key, splitmix, splitmix_of
from hlotool.backends.field.held import pair
from hlotool.backends.field.words import Words, word_of_hash
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.values.flatten import flatten, unflatten

#: Constants that are looked at: so many that are nearest to 1.
_CONSTANTS: Final = 24
#: Halves are what roundings differ at, whole numbers what floors do.
_PLAIN: Final = (0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -1.5, 2.0, -2.0)
#: Next to a constant, in f32.
_BESIDE: Final = 2.0**-22
#: Words that are drawn, and the first kinds of points.
_DRAWN: Final = 3


def meeting_numbers(constants: Constants) -> Words:
    """The words of constants, of what lies between and beside them, and of simple numbers, each once.

    Their sizes become known to the order of the trial. What tells most comes first.
    """
    values = _sorted({abs(float(v)) for v in constants.values if v})
    nearest = sorted(values, key=lambda v: abs(np.log2(v)))[:_CONSTANTS]
    signed = _sorted({s * v for v in nearest for s in (1.0, -1.0)} | {0.0})
    numbers = dict.fromkeys([0.0, *(v for v in signed if v)])
    found: dict[int, None] = {int(constants.note(v)): None for v in numbers}
    between = [(a + b) / 2 for a, b in pairwise(signed)]
    beside = [v * (1 + d) for v in signed if v for d in (_BESIDE, -_BESIDE)]
    found |= {int(constants.note(v)): None for v in (*between, *_PLAIN, *beside)}
    return np.array(list(found), np.uint64)


def _sorted(values: set[float]) -> list[float]:
    return sorted(values)


def with_meeting_floats(
    module: Module, values: Sequence[Any], seed: int, number: int, numbers: Words, specials: bool = False
) -> tuple[Any, ...]:
    """Arguments of a program with few different words in place of their floats.

    Args:
        module: the program.
        values: one per entry parameter, as `with_drawn_floats` takes them.
        seed: of the trial.
        number: of the point among its kind: 0 has nothing but zeros, 1 the same few words everywhere; even
            ones have the numbers in turn, odd ones arrays of any of these kinds.
        numbers: of `meeting_numbers`.
        specials: half of the elements are NaN or infinity.
    """
    arguments = []
    turn = 0
    for parameter, value in zip(module.entry.parameters, values):
        parts = []
        for index, shape, part in flatten(parameter.shape, value):
            if isinstance(shape, ArrayShape) and shape.element_type.is_inexact:
                own = key("meeting", seed, parameter.parameter_number or 0, index)
                kind = _kind(number, own)
                dims = np.shape(part)
                place = max(0, number // 2 - 1) + turn
                real = _elements(dims, own, kind, seed, place, numbers)
                if specials:
                    real = _with_specials(real, number + turn)
                imaginary = _elements(dims, own + 1, kind, seed, place + 1, numbers)
                parts.append(pair(real, imaginary) if shape.element_type.is_complex else real)
                turn += 1
            else:
                parts.append(part)
        arguments.append(unflatten(parameter.shape, parts))
    return tuple(arguments)


#: What an array holds: nothing but 0, the numbers in turn, a few words that all arrays share, ones on a
#: diagonal, ones, words of its own.
_ZERO, _TURN, _SHARED, _UNIT, _ONES, _OWN = range(6)
_MIXED: Final = (_TURN, _TURN, _TURN, _SHARED, _ZERO, _UNIT, _ONES, _OWN)


def _kind(number: int, own: int) -> int:
    if number < 2:
        return (_ZERO, _SHARED)[number]
    if number % 2 == 0:
        return _TURN
    return _MIXED[splitmix_of(own & (1 << 64) - 1) % len(_MIXED)]


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
        flat = words[hashes % np.uint64(_DRAWN)]
    else:
        flat = word_of_hash(hashes)
    return flat.reshape(dims)


def _with_specials(words: Words, turn: int) -> Words:
    """Every second element is NaN or infinity, in turn."""
    places = (np.arange(words.size) + turn).reshape(words.shape)
    chosen = np.array([w.NAN, w.INF, w.NEG_INF], np.uint64)[places // 2 % 3]
    return np.where(places % 2 == 0, chosen, words)


def turns(module: Module, values: Sequence[Any], numbers: Words) -> int:
    """Points of numbers in turn until the largest array had them all."""
    sizes = [np.size(part) for p, v in zip(module.entry.parameters, values) for _, s, part in flatten(p.shape, v) if isinstance(s, ArrayShape) and s.element_type.is_inexact]
    return -(-numbers.size // max([1, *sizes])) if sizes else 0
