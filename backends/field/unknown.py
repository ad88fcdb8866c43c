"""Operations that the field has no meaning for, as unknown functions of all they read; random words for
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.field.blockwise import key, splitmix
from hlotool.backends.field.values import pair, residues
from hlotool.backends.field.words import word_of_hash
from hlotool.ir.arrays import Array, dtype_of, flatten, unflatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, leaves

if TYPE_CHECKING:
    from hlotool.backends.field.lowering import FieldLowering


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


#: Attributes of custom calls on which their results depend, beside the target and the backend config.
_CONFIGURING = frozenset({"batch_group_count", "dim_labels", "feature_group_count", "literal", "window"})


@dataclass(frozen=True, slots=True)
class BlackBox:
    """An operation that is an unknown function here.

    Attributes:
        name: what it is; boxes of one name are the same function.
        instruction: its name.
        line: in the text, 0 where that is not known.
        is_function: of real numbers, element by element; a compiler may compute it by arithmetic.
    """

    name: str
    instruction: str
    line: int
    is_function: bool = False


def black_box(instruction: Instruction, lowering: FieldLowering, name: str) -> Callable[..., Any]:
    """The kernel of an unknown function called `name`, which says all that it depends on but the operands."""
    lowering.use_box(instruction, name)
    trial = lowering.trial
    shapes = [operand.shape for operand in instruction.operands]

    def kernel(*values: Any) -> Any:
        digests = [_digest(shape, value) for shape, value in zip(shapes, values)]
        return drawn(instruction.shape, key("black box", trial.seed, name, *digests))

    return kernel


def without_model(instruction: Instruction, lowering: FieldLowering) -> Callable[..., Any]:
    """The black box of a custom call, which its target, its configuration and its attributes name.

    Raises:
        Unsupported: it calls a computation.
    """
    if any(True for _ in instruction.called):
        raise lowering.unsupported(instruction, "an unknown function of a computation")
    attributes = instruction.attributes.items()
    config = "".join(instruction.config_text.split())
    named = [f"{key}={value}" for key, value in sorted(attributes) if key in _CONFIGURING]
    return black_box(
        instruction, lowering, " ".join([instruction.custom_call_target, config, *named]).strip()
    )


def _digest(shape: Shape, value: Any) -> int:
    """A number that tells the numbers of one operand from others."""
    arrays = [
        np.ascontiguousarray(array)
        for _, part, array in flatten(shape, residues(shape, value))
        if isinstance(part, ArrayShape)
    ]
    return key(*((array.shape, array.tobytes()) for array in arrays))
