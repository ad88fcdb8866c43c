"""What goes in and out of a program, and what of it another run does not repeat.

Parameters and results that are unused, passed through, not donated; large constants; answers of the host,
random numbers, sums in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from hlotool.checks.facts import parameter_name
from hlotool.checks.records import Severity
from hlotool.checks.rules import Applies, Problem, Subject, module_rule
from hlotool.errors import ElidedConstant
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, leaves
from hlotool.system.user_input import size_text

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
#: From here on it costs compile time and memory that are worth saving.
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


@module_rule(
    "stateful-rng",
    Severity.WARNING,
    "random numbers from the device's own generator: seeds of the frontend have no effect",
    remedy="draw from a key that is an argument: jax.random, tf.random.stateless_*, tf.random.Generator",
)
def stateful_rng(subject: Subject) -> Iterator[Problem]:
    """`rng` and `rng-get-and-update-state`."""
    for instruction in subject.instructions:
        if instruction.opcode in ("rng", "rng-get-and-update-state"):
            yield Problem(
                "these random numbers differ from run to run and cannot be compared or replayed", instruction
            )


@module_rule(
    "nondeterministic-scatter",
    Severity.NOTE,
    "sums of floats whose order a GPU does not fix: results differ in the last bits from run to run",
    remedy="unique_indices=True where it holds, --xla_gpu_exclude_nondeterministic_ops to find them all",
)
def nondeterministic_scatter(subject: Subject) -> Iterator[Problem]:
    """Float scatters that combine updates, without unique indices."""
    for instruction in subject.instructions:
        if instruction.opcode == "scatter" and _combines_floats(instruction):
            yield Problem("updates of one element are added in any order", instruction)


def _combines_floats(scatter: Instruction) -> bool:
    if scatter.flag("unique_indices"):
        return False
    combines = any(i.opcode in ("add", "multiply") for c in scatter.called for i in c.instructions)
    shape = scatter.operands[0].shape
    return combines and isinstance(shape, ArrayShape) and shape.element_type.is_floating


_CALLBACKS = ("python_cpu_callback", "python_gpu_callback", "python_tpu_callback", "host_callback", "PyFunc")
_HOST = frozenset({"infeed", "outfeed"})


@module_rule(
    "host-callback",
    Severity.NOTE,
    "a call back into Python, or a transfer to the host, in the middle of the program",
    remedy="remove it from what is timed; such a program cannot be replayed elsewhere or cached",
)
def host_callback(subject: Subject) -> Iterator[Problem]:
    """Each callback, infeed, outfeed and host transfer."""
    for instruction in subject.instructions:
        if what := leaves_device(instruction):
            yield Problem(f"{what} stops the device until the host has answered", instruction)


def leaves_device(instruction: Instruction) -> str:
    """What it is that the device waits for the host in, as `this infeed`; empty where it does not."""
    target = instruction.custom_call_target
    if any(word in target for word in _CALLBACKS):
        return f"the callback {target}"
    if instruction.opcode in _HOST:
        return f"this {instruction.opcode}"
    if instruction.opcode in ("send", "recv") and instruction.flag("is_host_transfer"):
        return f"this {instruction.opcode} to the host"
    return ""
