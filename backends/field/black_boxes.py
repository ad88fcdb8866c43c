"""Operations that the field has no meaning for: unknown functions of everything that they read.

Two programs that call the same box on the same operands get the same result, a hash; what else they do with it
is compared as ever. Nothing follows where only one of them calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.field.held import pair, residues
from hlotool.backends.field.words import key, splitmix, word_of_hash
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, leaves
from hlotool.values.flatten import flatten, unflatten

if TYPE_CHECKING:
    from hlotool.backends.field.lowering import FieldLowering


@dataclass(frozen=True, slots=True)
class BlackBox:
    """An operation that is an unknown function here.

    Attributes:
        name: what it is; boxes of one name are the same function.
        instruction: its name.
        line: in the text, 0 where that is not known.
    """

    name: str
    instruction: str
    line: int


def black_box(instruction: Instruction, lowering: FieldLowering, name: str) -> Callable[..., Any]:
    """The kernel of an unknown function called `name`, which says all that it depends on but the operands."""
    lowering.use_box(instruction, name)
    trial = lowering.trial
    shapes = [operand.shape for operand in instruction.operands]

    def kernel(*values: Any) -> Any:
        digests = [_digest(shape, value) for shape, value in zip(shapes, values)]
        return hashed(instruction.shape, key("black box", trial.seed, name, *digests))

    return kernel


def _digest(shape: Shape, value: Any) -> int:
    """A number that tells the numbers of one operand from others."""
    arrays = [
        np.ascontiguousarray(array)
        for _, part, array in flatten(shape, residues(shape, value))
        if isinstance(part, ArrayShape)
    ]
    return key(*((array.shape, array.tobytes()) for array in arrays))


def hashed(shape: Shape, seed: int) -> Any:
    """A value of `shape` whose floats are hashes of `seed` and of their places; integers and preds are 0."""
    return unflatten(shape, [_hashed_leaf(part, key(seed, index)) for index, part in leaves(shape)])


def _hashed_leaf(shape: Shape, seed: int) -> Any:
    if not isinstance(shape, ArrayShape):
        return TOKEN
    kind = shape.element_type
    if not kind.is_inexact:
        return np.zeros(shape.dims, dtype_of(kind))
    numbers = splitmix(np.arange(shape.size, dtype=np.uint64) ^ np.uint64(seed)).reshape(shape.dims)
    if not kind.is_complex:
        return word_of_hash(numbers)
    return pair(word_of_hash(numbers), word_of_hash(splitmix(~numbers)))
