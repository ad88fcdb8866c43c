"""Constants: left out of the dump, or so large that they should be arguments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlotool.check.findings import Severity
from hlotool.check.rules import Applies, Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.errors import ElidedConstant
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

#: From here on a constant is worth a note: it is compiled into the program and hashed with it.
NOTED_BYTES = 100_000
#: From here on it costs compile time and memory that anybody would miss.
LARGE_BYTES = 10_000_000


@module_rule(
    "elided-constant",
    Severity.WARNING,
    "a constant's value is missing in the dump, which XLA's tools read as zeros",
    remedy=ElidedConstant.REMEDY,
    applies=Applies.EVERY_STAGE,
)
def elided_constant(subject: Subject) -> Iterator[Problem]:
    """`constant({...})`, once for each module: they come by the dozen."""
    elided = [i for i in subject.instructions if i.literal is not None and i.literal.has_elided]
    if elided:
        others = f" and {len(elided) - 1} more" if len(elided) > 1 else ""
        yield Problem(f"the value of {elided[0].shape} %{elided[0].name}{others} is elided", elided[0])


@module_rule(
    "large-constant",
    Severity.NOTE,
    "data that is compiled into the program instead of being an argument",
    remedy="pass the array as an argument: captured arrays are compiled in, and another value compiles again",
)
def large_constant(subject: Subject) -> Iterator[Problem]:
    """Constants of 100 kB and more whose elements are not all alike."""
    for instruction in subject.instructions:
        if instruction.opcode != "constant" or not isinstance(instruction.shape, ArrayShape):
            continue
        size = instruction.shape.byte_size
        if size >= NOTED_BYTES and not _is_splat(instruction):
            yield Problem(
                f"{instruction.shape} of {size / 1e6:.1f} MB is part of the program",
                instruction,
                severity=Severity.WARNING if size >= LARGE_BYTES else None,
            )


def _is_splat(instruction: Instruction) -> bool:
    literal = instruction.literal
    if literal is None or literal.elided:
        return False
    bits = np.ascontiguousarray(literal.array).view(np.uint8).reshape(literal.array.size, -1)
    return bool((bits == bits[0]).all())
