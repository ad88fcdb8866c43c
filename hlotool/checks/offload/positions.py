"""Where a buffer is placed, comes from and goes to, and what is said of problems with host memory.

Frontends write `annotate_device_placement` with the frontend attribute `_xla_buffer_placement`; XLA turns
it into MoveToHost or MoveToDevice. A position is an instruction and a shape index, across computations.
Messages are XLA's own words where it has some.
XLA: service/memory_annotations.h,
convert_memory_placement_to_internal_annotations.cc, host_offloader.cc, host_offload_utils.cc (GetSuccessors
and GetPredecessors).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from hlotool.checks.records import Severity
from hlotool.checks.rules import Problem, Subject
from hlotool.facts.flow import Part
from hlotool.facts.recognition import integer_constant
from hlotool.ir.attributes import OperandAlias
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves, subshape
from hlotool.ir.walk import branches, through_tuple

#: Memory space of the host in layouts, `S(5)`.
HOST_MEMORY = 5

PLACEMENT_TARGET = "annotate_device_placement"
PLACEMENT_ATTRIBUTE = "_xla_buffer_placement"


class Placement(enum.Enum):
    """What an annotation asks for."""

    TO_HOST = "MoveToHost"
    TO_DEVICE = "MoveToDevice"
    #: Somewhere on the device: on-chip memory, pinned memory. Ends nothing, moves nothing to the host.
    PINNED = "pinned on the device"
    UNKNOWN = "unknown"


_EXTERNAL = {
    "pinned_host": Placement.TO_HOST,
    "unpinned_host": Placement.TO_HOST,
    "device": Placement.TO_DEVICE,
    "vmem": Placement.PINNED,
    "pinned_device": Placement.PINNED,
}


def placement(instruction: Instruction) -> Placement | None:
    """What `instruction` asks for; None when it is no annotation."""
    target = instruction.custom_call_target
    if target in ("MoveToHost", "MoveToDevice"):
        return Placement(target)
    if target in ("PinToDevice", "PinToDeviceSram"):
        return Placement.PINNED
    if target != PLACEMENT_TARGET:
        return None
    wanted = placement_name(instruction)
    return None if wanted is None else _EXTERNAL.get(wanted, Placement.UNKNOWN)


def placement_name(instruction: Instruction) -> str | None:
    """The memory that an external annotation names."""
    return instruction.frontend_attribute(PLACEMENT_ATTRIBUTE)


def is_host_compute(instruction: Instruction) -> bool:
    """It is marked to run on the host."""
    return instruction.frontend_attribute("_xla_compute_type") == "host"


def memory_space(shape: Shape, index: ShapeIndex = ()) -> int:
    """The memory space that the layout of the part `index` names; 0 where there is no layout."""
    part = subshape(shape, index)
    return part.layout.memory_space if isinstance(part, ArrayShape) and part.layout is not None else 0


def on_host(shape: Shape) -> bool:
    """Whether the layout of any part of `shape` names host memory."""
    return any(memory_space(part) == HOST_MEMORY for _, part in leaves(shape))


#: A part of an instruction's result.
Position: TypeAlias = Part

#: What hands a buffer on as it is. XLA: IsValidDuringPureMemoryOffload.
PASSES_ON = frozenset(
    {
        "get-tuple-element", "bitcast", "tuple", "call", "while", "conditional", "parameter", "opt-barrier",
        "async-start", "async-done", "custom-call",
    }
)  # fmt: skip


#: What shows the data in another order; what that needs is copied on the device, before the move to the host.
VIEWS = frozenset({"bitcast", "copy", "reshape", "transpose"})


class Positions:
    """Successors and predecessors of positions in one module."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._calls = subject.calls

    def successors(self, position: Position) -> list[Position]:
        """Where the buffer at `position` is next."""
        instruction, index = position
        found: list[Position] = []
        computation = self._calls.home[instruction]
        if instruction is computation.root:
            found += [(caller, index) for caller in self._calls.callers[computation]]
        for user in self._subject.users[instruction]:
            found += self._into(user, instruction, index)
        return found

    def _into(self, user: Instruction, instruction: Instruction, index: ShapeIndex) -> Iterator[Position]:
        numbers = [number for number, operand in enumerate(user.operands) if operand is instruction]
        match user.opcode:
            case "tuple":
                yield from ((user, (number, *index)) for number in numbers)
            case "get-tuple-element":
                if index and index[0] == user.integer("index"):
                    yield user, index[1:]
            case "call" | "while" | "async-start":
                for number in numbers:
                    yield from ((parameter, index) for parameter in self._parameters(user, number))
            case "conditional":
                taken = branches(user)
                yield from ((taken[number - 1].parameters[0], index) for number in numbers if number)
            case "custom-call":
                yield from ((user, index) for number in numbers[:1] if hands_on(user, number))
            case _:
                yield user, index

    def _parameters(self, user: Instruction, number: int) -> Iterator[Instruction]:
        """Parameter `number` of what a call, while or async-start calls; the body of a while comes first."""
        called = list(user.called)
        if user.opcode == "while":
            called = [user.computation("body"), user.computation("condition")]
        for computation in called:
            parameters = computation.parameters
            if number < len(parameters):
                yield parameters[number]

    def predecessors(self, position: Position) -> list[Position] | None:
        """Where the buffer at `position` was before; None where it is computed from several operands."""
        instruction, index = position
        if (source := through_tuple(instruction, index)) is not None:
            return [source]
        match instruction.opcode:
            case "tuple":
                return None
            case "call":
                return [(instruction.computation("to_apply").root, index)]
            case "while":
                return [(instruction.computation("body").root, index)]
            case "parameter":
                number = instruction.parameter_number or 0
                callers = self._calls.callers[self._calls.home[instruction]]
                return [(caller.operands[number], index) for caller in callers]
            case "dynamic-slice" | "dynamic-update-slice" | "pad":
                return [(instruction.operands[0], index)]
        return [(instruction.operands[0], index)] if len(instruction.operands) == 1 else None

    def history(self, position: Position) -> set[Instruction]:
        """What the buffer at `position` went through before, and the instruction itself."""
        seen, waiting = {position}, [position]
        while waiting:
            for before in self.predecessors(waiting.pop()) or ():
                if before not in seen:
                    seen.add(before)
                    waiting.append(before)
        return {instruction for instruction, _ in seen}

    def is_entry_root(self, instruction: Instruction) -> bool:
        """It makes the program's result."""
        return instruction is self._subject.module.entry.root


def hands_on(custom_call: Instruction, operand: int) -> bool:
    """Whether the custom call returns the buffer of that operand: moves do, and what is aliased."""
    if placement(custom_call) in (Placement.TO_HOST, Placement.TO_DEVICE):
        return True
    aliases = custom_call.listed("output_to_operand_aliasing", OperandAlias, ())
    return any(alias.operand == operand for alias in aliases)


def regroups(instruction: Instruction) -> bool:
    """A reshape that changes more than dimensions of size 1: partitioned, it exchanges data."""
    return instruction.opcode == "reshape" and true_dims(instruction) != true_dims(instruction.operands[0])


def true_dims(instruction: Instruction) -> tuple[int, ...]:
    """Without those of size 1; of tuples none."""
    shape = instruction.shape
    return tuple(size for size in shape.dims if size > 1) if isinstance(shape, ArrayShape) else ()


_HALVES = (
    "64-bit type on device is decomposed into 32-bit types very early on so host offloader only sees 32-bit "
    "types. Thus the current handling of 64-bit type host offloading might be sub-optimal"
)


def device_compute(instruction: Instruction, path: list[Instruction]) -> Problem:
    """Device compute reads the tensor."""
    return Problem(
        f'Found an instruction ("{instruction.name}") which does device compute in host memory space. '
        "Converting into host compute.",
        instruction,
        path=path,
        remedy=f"move the tensor to the device before %{instruction.name}: on the host it is very slow",
    )


def buffer_is_copied(update: Instruction, path: list[Instruction]) -> Problem:
    """All of a buffer is moved to the device after an update of what was on the host before."""
    return Problem(
        'Found an instruction ("copy") which does device compute in host memory space. '
        "Converting into host compute.",
        update,
        path=path,
        details=[f"the copy is the compiler's own: the host copies the whole buffer after %{update.name}"],
        remedy="move slices of the buffer to the device, or build it there and move all of it to the host",
    )


def slice_stays(instruction: Instruction, path: list[Instruction]) -> Problem:
    """A slice that is not moved to the device. At constant indices the compiler takes it for a static one."""
    name = instruction.name
    is_static = all(integer_constant(index) is not None for index in instruction.operands[1:])
    return Problem(
        f"Encountered {'slice' if is_static else 'dynamic-slice'} on tensor which is in host memory. {name} "
        f"does not move the tensor back to device. {name} will be converted into host compute.",
        instruction,
        path=path,
        remedy=f"move the result of %{name} to the device directly after it",
    )


def used_in_condition(instruction: Instruction) -> Problem:
    """The condition of a loop computes with the tensor.

    libtpu 0.0.42 dies of it (`Check failed: !tmp_shape_index.empty()`), 0.0.52 gives E1200.
    """
    return Problem(
        f'Tensor which is moved to host is used by an invalid instruction ("{instruction.name}") '
        "during while condition body.",
        instruction,
        remedy="carry what the condition needs as a value of its own that stays on the device",
    )


def moved_at_the_end(annotation: Instruction, conditional: Instruction) -> Problem:
    """A branch ends with a move to the host, of a program for several devices (libtpu 0.0.42 dies of it)."""
    return Problem(
        f"Check failed: predecessors.size() == 1 ({len(branches(conditional))} vs. 1)",
        annotation,
        path=[annotation, conditional],
        details=["a branch of a conditional ends with a move to the host: the TPU's compiler crashes on it"],
        remedy=f"move the result of %{conditional.name} to the host, not those of its branches",
    )


def ends_a_branch(instruction: Instruction, origin: Computation, callers: Sequence[Instruction]) -> Problem:
    """A branch ends with a move back to the device, and `callers` call it (libtpu 0.0.42 refuses it).

    XLA names the computation in which the tensor was moved to the host, the branch or a loop's body in it.
    """
    names = ", ".join(caller.name for caller in callers)
    return Problem(
        f'Expected computation "{origin.name}" to be called only by one caller and that caller to be a '
        f"While. There are {len(callers)} caller(s): [{names}]",
        instruction,
        remedy="move the tensor back after the conditional, or compute with it before its branch ends",
    )


def reshaped_after_transpose(reshape: Instruction) -> Problem:
    """The compiler moves the transpose's copy behind the reshape, and keeps the shape that it had.

    libtpu 0.0.42 dies of the wrong shape or refuses it, in words that depend on what reads it.
    """
    transpose = reshape.operands[0]
    return Problem(
        f"%{transpose.name} and %{reshape.name} transpose and reshape a tensor in host memory before it is "
        f"moved to the device: the TPU's compiler gives it the shape {transpose.shape}",
        reshape,
        path=[transpose, reshape],
        remedy=f"move the tensor to the device before %{transpose.name}",
    )


def decides(instruction: Instruction, conditional: Instruction) -> Problem:
    """What is computed from a host tensor chooses a branch (libtpu 0.0.42 dies of it)."""
    return Problem(
        "Check failed: b >= 0 (-1 vs. 0)",
        conditional,
        path=[instruction, conditional],
        details=["what is on the host chooses a branch: the TPU's compiler crashes on it"],
        remedy="move what decides to the device before it is computed with",
    )


def unknown_place(instruction: Instruction) -> Problem:
    """An annotation names no memory."""
    return Problem(
        f"Invalid external annotation: {placement_name(instruction)}",
        instruction,
        details=["allowed: pinned_host, unpinned_host, device, vmem, pinned_device"],
    )


def operand_count(instruction: Instruction) -> Problem:
    """An annotation of several tensors, or of none."""
    return Problem(
        f"Custom calls with target {instruction.custom_call_target} must have exactly one operand. "
        f"{instruction.name} has {len(instruction.operands)}.",
        instruction,
    )


def changes_shape(instruction: Instruction) -> Problem:
    """An annotation that XLA cannot replace by its operand."""
    operand = instruction.operands[0]
    return Problem(
        f"the annotation %{instruction.name} changes the shape from {operand.shape} to {instruction.shape}",
        instruction,
        path=[operand, instruction],
        remedy="annotate the update before it is written, not the buffer after it",
    )


def unexpected_in_host_computation(instruction: Instruction) -> Problem:
    """A host computation with more than a call."""
    return Problem(
        f"Unexpected instruction found in async computation: {instruction.name}",
        instruction,
        remedy="a host computation that is started asynchronously holds parameters and one call",
    )


def moved_twice(instruction: Instruction) -> Problem:
    """A second move to the host on the way."""
    return Problem("the tensor is in host memory already", instruction, severity=Severity.NOTE)


def not_on_host(instruction: Instruction) -> Problem:
    """A move to the device of what never left it."""
    return Problem(
        "the tensor is moved to the device, but it is there already",
        instruction,
        severity=Severity.NOTE,
    )


def halves(instruction: Instruction) -> Problem:
    """Half of a 64-bit value is taken from the host."""
    return Problem(_HALVES, instruction)
