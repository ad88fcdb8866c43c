"""Random values: words drawn for parameters, and results of what is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.field.hashing import key, splitmix
from hlotool.backends.field.held import pair
from hlotool.backends.field.words import word_of_hash
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, leaves
from hlotool.values.flatten import flatten, unflatten


def drawn(shape: Shape, seed: int) -> Any:
    """A value of `shape` whose floats are hashes of `seed` and of their places; integers and preds are 0."""
    return unflatten(shape, [_drawn_leaf(part, key(seed, index)) for index, part in leaves(shape)])


def _drawn_leaf(shape: Shape, seed: int) -> Any:
    if not isinstance(shape, ArrayShape):
        return TOKEN
    kind = shape.element_type
    return _words(kind, shape.dims, seed) if kind.is_inexact else np.zeros(shape.dims, dtype_of(kind))


def _words(kind: ElementType, dims: Sequence[int], seed: int) -> Array:
    size = int(np.prod(dims))
    numbers = splitmix(np.arange(size, dtype=np.uint64) ^ np.uint64(seed)).reshape(dims)
    real = word_of_hash(numbers)
    return pair(real, word_of_hash(splitmix(~numbers))) if kind.is_complex else real


def with_drawn_floats(module: Module, values: Sequence[Any], seed: int) -> tuple[Any, ...]:
    """Arguments of a program with words in place of their floats, which need not have values at all.

    The words depend on the seed, the number of the parameter and their places alone: both programs of a pair
    get the same.

    Args:
        module: the program.
        values: one per entry parameter: integers, preds and the actual sizes of arrays count.
        seed: of the trial.
    """
    arguments = []
    for parameter, value in zip(module.entry.parameters, values):
        number = parameter.parameter_number or 0
        parts = [
            _words(shape.element_type, np.shape(part), key("argument", seed, number, index))
            if isinstance(shape, ArrayShape) and shape.element_type.is_inexact
            else part
            for index, shape, part in flatten(parameter.shape, value)
        ]
        arguments.append(unflatten(parameter.shape, parts))
    return tuple(arguments)
