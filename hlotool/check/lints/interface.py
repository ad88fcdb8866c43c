"""Parameters and results: unused, passed through, not donated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlotool.check.facts import parameter_name
from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Module
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
        yield Problem(f"{total / 1e6:.1f} MB could be reused: {shown} have results of the same shape")


def _aliased_outputs(module: Module) -> set[tuple[int, ...]]:
    return {alias.output_index for alias in module.listed("input_output_alias", ParameterAlias, ())}
