"""Operations that the field has no meaning for: unknown functions of everything that they read.

Two programs that call the same box on the same operands get the same result, a hash; what else they do with
it is compared as ever. Nothing follows where only one of them calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.field.drawing import drawn
from hlotool.backends.field.hashing import key
from hlotool.backends.field.held import residues
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape
from hlotool.values.flatten import flatten

if TYPE_CHECKING:
    from hlotool.backends.field.lowering import FieldLowering


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
