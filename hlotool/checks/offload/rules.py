"""The rules on host offload and memory spaces in layouts, and programs mended by them.

A program that returns host tensors as device outputs is mended in one of two ways.
XLA: hlo_verifier.cc, layout-sensitive rules (who may change memory spaces).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hlotool.checks.offload.positions import (
    HOST_MEMORY,
    PLACEMENT_ATTRIBUTE,
    PLACEMENT_TARGET,
    is_host_compute,
    memory_space,
    on_host,
    placement,
)
from hlotool.checks.offload.walk import HostMemory, Returned, host_memory
from hlotool.checks.records import Severity
from hlotool.checks.rules import Applies, ModuleCheck, Problem, Subject, module_rule
from hlotool.facts.buffers import has_tiles
from hlotool.ir.attributes import AttributeValue, EntryLayout, FrontendAttributes, ParameterAlias
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, Layout, Shape, ShapeIndex, TupleShape, leaves, subshape
from hlotool.ir.walk import Context, contexts

#: On-chip memory of the device, `S(1)`.
FAST_MEMORY = 1

#: Compute whose operands should be in one memory; XLA's verifier does not look at these.
_COMPUTES = frozenset({"dot", "convolution", "reduce", "fft", "sort", "reduce-window"})


def changed_spaces(subject: Subject) -> Iterator[Problem]:
    """Instructions that change the memory space of what they are given; nothing is final while there are
    annotations.
    """
    if any(placement(instruction) is not None for instruction in subject.instructions):
        return
    if not any(_spaces(instruction.shape) for instruction in subject.instructions):
        return
    found = contexts(subject.module)
    for computation in subject.computations:
        if found[computation] - {Context.CONTROL_FLOW}:
            continue  # within a fusion memory spaces mean nothing
        for instruction in computation.instructions:
            yield from _instruction(instruction)
    yield from _aliases(subject)


def _spaces(shape: Shape) -> bool:
    return any(memory_space(part) for _, part in leaves(shape))


def _instruction(instruction: Instruction) -> Iterator[Problem]:
    if not instruction.operands or not isinstance(instruction.shape, ArrayShape):
        return
    first = instruction.operands[0].shape
    before = memory_space(first) if isinstance(first, ArrayShape) else 0
    after = memory_space(instruction.shape)
    match instruction.opcode:
        case "dynamic-slice" | "dynamic-update-slice":
            # The TPU's compiler lets slices leave fast memory once it has assigned memory: libtpu 0.0.11 to
            # 0.0.52, in texts that it ends with. XLA's verifier has run by then.
            if before != FAST_MEMORY or not has_tiles(first):
                yield from _slice(instruction, before, after)
        case "copy":
            yield from _copy(instruction, before, after)
        case _ if instruction.row.opcode_class is Class.ELEMENTWISE or instruction.opcode in _COMPUTES:
            yield from _compute(instruction)


def _slice(instruction: Instruction, before: int, after: int) -> Iterator[Problem]:
    if before == FAST_MEMORY != after:
        broken = (
            "Instruction shouldn't change layout memory space between generic fast memory space and others "
            "for instruction"
        )
    elif instruction.opcode == "dynamic-slice" and (before, after) == (0, HOST_MEMORY):
        broken = "DynamicSlice instruction shouldn't change layout memory space from device to host"
    elif instruction.opcode == "dynamic-update-slice" and (before, after) == (HOST_MEMORY, 0):
        broken = "DynamicUpdateSlice instruction shouldn't change layout memory space from host to device"
    else:
        return
    yield Problem(f"{broken}: {instruction.name}", instruction)


def _copy(instruction: Instruction, before: int, after: int) -> Iterator[Problem]:
    """Copies between host and device move bytes: only one into the host may also change the layout."""
    operand, result = instruction.operands[0].array_shape, instruction.array_shape
    if before == after or HOST_MEMORY not in (before, after):
        return
    same_order = _order(operand) == _order(result)
    if operand.element_type is not result.element_type or (after != HOST_MEMORY and not same_order):
        yield Problem(
            f"Expected instruction to have shape equal to {operand}, actual shape is {result}: a copy "
            "between host and device memory cannot convert or transpose",
            instruction,
        )


def _order(shape: ArrayShape) -> tuple[int, ...] | None:
    return shape.layout.minor_to_major if shape.layout is not None else None


def _compute(instruction: Instruction) -> Iterator[Problem]:
    """Device compute on host memory: XLA's verifier lets it pass, the result is a slow program or a crash."""
    host = [o for o in instruction.operands if isinstance(o.shape, ArrayShape) and on_host(o.shape)]
    if host and not is_host_compute(instruction):
        yield Problem(
            f"%{host[0].name} is in host memory and %{instruction.name} computes with it on the device",
            instruction,
            severity=Severity.WARNING,
        )


def _aliases(subject: Subject) -> Iterator[Problem]:
    """A result shares its memory with a parameter only within one memory space."""
    module = subject.module
    layout = module.entry_layout
    for entry in module.listed("input_output_alias", ParameterAlias, ()):
        result = subshape(layout.result, entry.output_index)
        parameter = subshape(layout.parameters[entry.parameter], entry.parameter_index)
        if memory_space(result) != memory_space(parameter):
            yield Problem(
                f"Shape and memory space of the result at index {set(entry.output_index) or '{}'} ({result}) "
                f"must be the same as those of the aliased parameter {entry.parameter} ({parameter})"
            )


FIXES = ("output-layout", "move-to-device")


def fixed(module: Module, fix: str) -> tuple[Module, int]:
    """A copy of `module` in which no host tensor is returned as a device output, and how many were.

    Args:
        module: is not changed.
        fix: `output-layout` to promise host memory, `move-to-device` to keep the promise.
    """
    mended = clone_module(module).module
    returned = HostMemory(Subject(mended)).returned
    done: set[ShapeIndex] = set()
    for each in returned:
        index = each.position[1]
        if index in done:
            continue
        done.add(index)
        if fix == "output-layout":
            _promise_host(mended, index)
        else:
            _move_to_device(mended, each)
    return mended, len(done)


def output_on_host(module: Module, index: ShapeIndex) -> Shape:
    """The shape of the output `index` of a program, in host memory."""
    return _on_host(subshape(module.entry_layout.result, index))


def _promise_host(module: Module, index: ShapeIndex) -> None:
    """Change the layout of the entry."""
    layout = module.entry_layout
    promised = EntryLayout(layout.parameters, _replaced(layout.result, index))
    module.attributes = {**module.attributes, "entry_computation_layout": promised}


def _replaced(shape: Shape, index: ShapeIndex) -> Shape:
    if not index:
        return _on_host(shape)
    assert isinstance(shape, TupleShape)
    elements = list(shape.elements)
    elements[index[0]] = _replaced(elements[index[0]], index[1:])
    return TupleShape(tuple(elements))


def _on_host(shape: Shape) -> Shape:
    assert isinstance(shape, ArrayShape)
    layout = shape.layout or Layout(tuple(range(shape.rank - 1, -1, -1)))
    return replace(shape, layout=replace(layout, memory_space=HOST_MEMORY))


def _move_to_device(module: Module, returned: Returned) -> None:
    with editing(module.entry) as edit:
        root = module.entry.root
        edit.set_root(_with_part_moved(edit, root, returned.position[1], returned.annotation))
        edit.remove_unused(root)


def _with_part_moved(
    edit: Editor, value: Instruction, index: ShapeIndex, annotation: Instruction | None
) -> Instruction:
    """`value` with the part `index` moved to the device."""
    if not index:
        return edit.add(_annotation(value, annotation))
    shape = value.shape
    assert isinstance(shape, TupleShape)
    if value.opcode == "tuple":
        parts = list(value.operands)
    else:
        parts = [
            edit.add(
                Instruction(f"{value.name}.part", "get-tuple-element", part, (value,), {"index": number})
            )
            for number, part in enumerate(shape.elements)
        ]
    parts[index[0]] = _with_part_moved(edit, parts[index[0]], index[1:], annotation)
    return edit.add(Instruction(value.name, "tuple", shape, tuple(parts), {}, value.metadata))


def _annotation(value: Instruction, like: Instruction | None) -> Instruction:
    """A move to the device, written as the program writes its move to the host."""
    attributes: dict[str, AttributeValue] = {"custom_call_target": "MoveToDevice"}
    if like is None or like.custom_call_target == PLACEMENT_TARGET:
        attributes = {
            "custom_call_target": PLACEMENT_TARGET,
            "custom_call_has_side_effect": True,
            "frontend_attributes": FrontendAttributes(((PLACEMENT_ATTRIBUTE, '"device"'),)),
        }
    return Instruction("to_device", "custom-call", value.shape, (value,), attributes, value.metadata)


@module_rule(
    "offload-output",
    Severity.ERROR,
    "a tensor in host memory is returned, but its output is in device memory (E1200)",
    applies=Applies.EVERY_STAGE,
)
def offload_output(subject: Subject) -> Iterator[Problem]:
    """With the tensor's whole path and both ways out."""
    for returned in host_memory(subject).returned:
        yield _returned(subject, returned)


def _returned(subject: Subject, returned: Returned) -> Problem:
    """The message is XLA's own, so that it can be searched for."""
    _, index = returned.position
    output = "{" + ",".join(map(str, index)) + "}"
    wanted = output_on_host(subject.module, index)
    path = list(dict.fromkeys(instruction for instruction, _ in returned.path))
    before_root = path[-2] if len(path) > 1 and path[-1].opcode == "tuple" else path[-1]
    is_alone = returned.start is returned.annotation
    return Problem(
        f"Tensor which is moved to host (starting from {returned.start.name}) is returned from the entry "
        "computation but the layout for this output is not set to host memory.",
        returned.annotation or returned.start,
        # A lone annotation at the root is copied to the host, whatever the layout says.
        severity=Severity.WARNING if is_alone else None,
        path=path,
        remedy=f"keep it on the host: give output {output} the layout {wanted} in entry_computation_layout "
        "(--fix output-layout; JAX: out_shardings with memory_kind='pinned_host'); or move it back to the "
        f"device after %{before_root.name} (--fix move-to-device; JAX: jax.device_put)",
    )


def _reports(rule: str) -> ModuleCheck:
    def check(subject: Subject) -> Iterator[Problem]:
        yield from host_memory(subject).problems.get(rule, ())

    check.__doc__ = "Tensors in host memory are followed from where they are moved there to what reads them."
    return check


for _rule, _severity, _title in (
    ("offload-update", Severity.ERROR, "an offloaded slice goes into a buffer that cannot be on the host"),
    (
        "offload-branches",
        Severity.ERROR,
        "a host tensor at a conditional, on which the TPU's compiler crashes",
    ),
    (
        "offload-transpose",
        Severity.ERROR,
        "a host tensor that is transposed and reshaped, then moved to the device",
    ),
    ("offload-condition", Severity.ERROR, "a loop's condition uses a tensor in host memory"),
    ("offload-lost-rows", Severity.ERROR, "elements of an offloaded buffer that the TPU's compiler loses"),
    ("offload-host-computation", Severity.ERROR, "a host computation of another form than XLA's"),
    ("offload-annotation", Severity.ERROR, "a placement annotation that is wrong, doubled or useless"),
    ("offload-compute", Severity.WARNING, "device compute on a host tensor: the host does it, slowly"),
    ("offload-slice", Severity.WARNING, "a slice of a host tensor that is not moved to the device"),
    ("offload-64-bit", Severity.NOTE, "64-bit values that are offloaded in halves"),
):
    module_rule(_rule, _severity, _title, applies=Applies.EVERY_STAGE)(_reports(_rule))


@module_rule(
    "memory-space",
    Severity.ERROR,
    "an instruction that changes the memory space of its operand although it may not",
    remedy="copy to the other memory first",
    applies=Applies.EVERY_STAGE,
)
def memory_space_changes(subject: Subject) -> Iterator[Problem]:
    """Layouts with memory spaces, as XLA writes them after offloading."""
    yield from changed_spaces(subject)
