"""The data of a program: parameters and results that are unused, passed through, not donated; constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from hlotool.amounts import size_text
from hlotool.check.facts import parameter_name
from hlotool.check.findings import Severity
from hlotool.check.rules import Applies, Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.errors import ElidedConstant
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, leaves

#: Memory that is worth a donation.
WORTH_DONATING = 1_000_000


@module_rule(
    "unused-parameter",
    Severity.NOTE,
    "an argument that nothing reads",
    remedy="do not pass it: it is copied to the device, and its shape alone compiles again",
)
def unused_parameter(subject: Subject) -> Iterator[Problem]:
    """Entry parameters without users."""
    entry = subject.module.entry
    for parameter in entry.parameters:
        if not subject.users[parameter] and parameter is not entry.root:
            number = parameter.parameter_number
            yield Problem(f"parameter {number} ({parameter_name(parameter)}) is never read", parameter)


@module_rule(
    "passed-through",
    Severity.NOTE,
    "a result that is an argument, unchanged: it is copied",
    remedy="leave it out of the results, or donate the argument",
)
def passed_through(subject: Subject) -> Iterator[Problem]:
    """Leaves of the result that are parameters and not aliased to them."""
    root = subject.module.entry.root
    aliased = _aliased_outputs(subject.module)
    parts = enumerate(root.operands) if root.opcode == "tuple" else enumerate((root,))
    for index, part in parts:
        is_large = isinstance(part.shape, ArrayShape) and part.shape.byte_size >= WORTH_DONATING
        if part.opcode == "parameter" and is_large and (index,) not in aliased:
            yield Problem(f"result {index} is parameter {part.parameter_number} unchanged", part)


@module_rule(
    "donation-not-used",
    Severity.NOTE,
    "large arguments that results of the same shape could overwrite",
    remedy="donate arguments that are not needed afterwards (JAX: donate_argnums)",
)
def donation_not_used(subject: Subject) -> Iterator[Problem]:
    """Results with the shape of a parameter, when the program donates nothing."""
    module = subject.module
    if "input_output_alias" in module.attributes or "buffer_donor" in module.attributes:
        return
    results = (shape for _, shape in leaves(module.entry.root.shape))
    free = Counter(shape.logical_text() for shape in results if isinstance(shape, ArrayShape))
    names: list[str] = []
    total = 0
    for parameter in module.entry.parameters:
        shape = parameter.shape
        if isinstance(shape, ArrayShape) and free[shape.logical_text()] > 0:
            free[shape.logical_text()] -= 1
            total += shape.byte_size
            names.append(parameter_name(parameter))
    if total >= WORTH_DONATING:
        shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        yield Problem(f"{size_text(total)} could be reused: {shown} have results of the same shape")


def _aliased_outputs(module: Module) -> set[tuple[int, ...]]:
    return {alias.output_index for alias in module.listed("input_output_alias", ParameterAlias, ())}


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
                f"{instruction.shape} of {size_text(size)} is part of the program",
                instruction,
                severity=Severity.WARNING if size >= LARGE_BYTES else None,
            )


def _is_splat(instruction: Instruction) -> bool:
    literal = instruction.literal
    if literal is None or literal.elided:
        return False
    bits = np.ascontiguousarray(literal.array).view(np.uint8).reshape(literal.array.size, -1)
    return bool((bits == bits[0]).all())
