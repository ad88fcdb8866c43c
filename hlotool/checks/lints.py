"""What goes in and out of a program, indices that are sure to lie outside, floats wider than meant.

Parameters and results that are unused, passed through, not donated; large constants; answers of the host,
random numbers, sums in any order.

XLA clamps such an index and says nothing; sizes that only the data knows are named, too. Nothing is
executed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from hlotool.checks.facts import parameter_name
from hlotool.checks.records import Severity
from hlotool.checks.rules import Applies, Problem, Subject, module_rule
from hlotool.errors import ElidedConstant
from hlotool.facts.ranges import Interval
from hlotool.ir.attributes import ParameterAlias
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, Shape, array_shapes, leaves
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


@module_rule(
    "dynamic-shape",
    Severity.NOTE,
    "bounded dynamic shapes: every operation pads to the bound and masks",
    remedy="pad to a fixed size yourself where speed matters; many devices reject dynamic shapes",
)
def dynamic_shape(subject: Subject) -> Iterator[Problem]:
    """The first instruction that makes a dynamic dimension."""
    for instruction in subject.instructions:
        if _is_dynamic(instruction) and not any(_is_dynamic(o) for o in instruction.operands):
            yield Problem(f"the size of {instruction.shape} depends on the data", instruction)
            return


@module_rule(
    "unbounded-shape",
    Severity.WARNING,
    "a dimension without any bound: the program must be refined before it can be compiled",
    remedy="export with concrete shapes, or give the dimension a bound",
)
def unbounded_shape(subject: Subject) -> Iterator[Problem]:
    """The first `?` dimension."""
    for instruction in subject.instructions:
        if any(UNBOUNDED in shape.dims for shape in array_shapes(instruction.shape)):
            yield Problem(f"{instruction.shape} has a dimension of unknown size", instruction)
            return


def _is_dynamic(instruction: Instruction) -> bool:
    return any(shape.is_dynamic for shape in array_shapes(instruction.shape))


@module_rule(
    "truncated-tensor-array",
    Severity.WARNING,
    "writes beyond the end of a TensorArray: under XLA it keeps its first size",
    remedy="create the TensorArray with its final size instead of dynamic_size=True",
)
def truncated_tensor_array(subject: Subject) -> Iterator[Problem]:
    """Writes that were dropped, of which only the address is left, and writes that are clamped to the last
    element.
    """
    for computation in subject.computations:
        groups = list(_writes(computation).values())
        dropped = [group[-1] for group in groups if not any(map(_is_update, group))]
        clamped = [i for group in groups for i in group if subject.clamped_dimension(i) is not None]
        if dropped:
            yield Problem(f"{_count(dropped)} to a TensorArray had no room and left nothing", dropped[0])
        if clamped:
            yield Problem(f"{_count(clamped)} to a TensorArray overwrote its last element", clamped[0])


@module_rule(
    "clamped-index",
    Severity.WARNING,
    "a start index that is out of range whatever the data: it is clamped, and other elements are meant",
    remedy="check the index; where clamping is meant, write it out (clip)",
)
def clamped_index(subject: Subject) -> Iterator[Problem]:
    """Dynamic slices and updates whose start is known to be out of range in some dimension."""
    for instruction in subject.instructions:
        dimension = subject.clamped_dimension(instruction)
        if dimension is not None and not _is_list_write(instruction):
            yield Problem(f"the start index of dimension {dimension} is always out of range", instruction)


def _is_list_write(instruction: Instruction) -> bool:
    """It belongs to a write to a TensorArray."""
    return instruction.metadata is not None and instruction.metadata.op_type == "TensorListSetItem"


def _writes(computation: Computation) -> dict[str, list[Instruction]]:
    """What each write of the user's program became."""
    found: dict[str, list[Instruction]] = {}
    for instruction in filter(_is_list_write, computation.instructions):
        assert instruction.metadata is not None
        found.setdefault(instruction.metadata.op_name, []).append(instruction)
    return found


def _is_update(instruction: Instruction) -> bool:
    """A write that is kept updates the list by a slice."""
    return instruction.opcode == "dynamic-update-slice"


def _count(writes: list[Instruction]) -> str:
    return "a write" if len(writes) == 1 else f"{len(writes)} writes"


@module_rule(
    "nan-source",
    Severity.NOTE,
    "log, division or square root whose operand is known to reach the value where it breaks",
    remedy="keep the operand away from there: add an epsilon, clamp it, or select before the operation",
)
def nan_source(subject: Subject) -> Iterator[Problem]:
    """Operands with a known bound at or beyond the bad value; what may be anything is left alone."""
    groups: dict[object, list[tuple[Instruction, str, bool]]] = {}
    for instruction in subject.instructions:
        if not isinstance(instruction.shape, ArrayShape) or not instruction.shape.element_type.is_floating:
            continue
        operands = [subject.ranges.of(operand) for operand in instruction.operands]
        if found := _problem(instruction, operands):
            groups.setdefault(_line(instruction), []).append((instruction, *found))
    for group in groups.values():
        instruction, message, _ = group[0]
        others = f", and {len(group) - 1} more from this line" if len(group) > 1 else ""
        is_certain = any(certain for _, _, certain in group)
        yield Problem(message + others, instruction, severity=Severity.WARNING if is_certain else None)


def _line(instruction: Instruction) -> object:
    """The line of the user's program; an instruction without one stands for itself."""
    metadata = instruction.metadata
    if metadata is None:
        return instruction
    return metadata.stack_frame_id or (metadata.source_file, metadata.source_line, metadata.op_name)


def _problem(instruction: Instruction, operands: list[Interval]) -> tuple[str, bool] | None:
    """What goes wrong, and whether it does for every value."""
    match instruction.opcode:
        case "log" if operands[0].high < 0:
            return "the logarithm of a negative number is NaN", True
        case "log" if operands[0].low == 0:
            return "the operand reaches 0, where the logarithm is -infinity", False
        case "sqrt" if operands[0].high < 0:
            return "the square root of a negative number is NaN", True
        case "rsqrt" if operands[0].low == 0:
            return "the operand reaches 0, where rsqrt is infinite", False
        case "divide":
            return _divide(instruction, operands[1])
    return None


def _divide(instruction: Instruction, divisor: Interval) -> tuple[str, bool] | None:
    if divisor.low == divisor.high == 0:
        return "the divisor is always 0", True
    touches = (divisor.low == 0 and math.isfinite(divisor.low)) or divisor.high == 0
    if touches and divisor.avoid != 0:
        numerator, denominator = instruction.operands
        both = " (0/0 is NaN)" if numerator is denominator else ""
        return f"the divisor reaches 0{both}", False
    return None


_WIDE = frozenset({ElementType.F64, ElementType.C128})


@module_rule(
    "accidental-f64",
    Severity.WARNING,
    "f64 arithmetic in a program whose arguments are all narrower",
    remedy="a float64 NumPy scalar or array, or a Python float under x64, widens all it meets: cast it",
)
def accidental_f64(subject: Subject) -> Iterator[Problem]:
    """The first conversion of an array to f64 when no argument is f64."""
    parameters = subject.module.entry.parameters
    if any(_is_wide(parameter.shape) for parameter in parameters) or not parameters:
        return
    for instruction in subject.instructions:
        if instruction.opcode == "convert" and _is_wide(instruction.shape) and _was_float(instruction):
            amount = sum(_is_wide(i.shape) and i.opcode != "constant" for i in subject.instructions)
            yield Problem(
                f"{instruction.operands[0].shape} is widened to {instruction.shape}; "
                f"{amount} instructions compute in f64",
                instruction,
            )
            return


def _is_wide(shape: Shape) -> bool:
    return any(part.element_type in _WIDE for part in array_shapes(shape))


def _was_float(convert: Instruction) -> bool:
    shape = convert.operands[0].shape
    return isinstance(shape, ArrayShape) and shape.element_type.is_floating and shape.rank > 0
