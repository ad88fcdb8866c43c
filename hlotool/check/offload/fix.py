"""Mends programs that return host tensors as device outputs, in one of two ways."""

from __future__ import annotations

from dataclasses import replace

from hlotool.check.offload.annotations import (
    HOST_MEMORY,
    PLACEMENT_ATTRIBUTE,
    PLACEMENT_TARGET,
)
from hlotool.check.offload.walk import HostMemory, Returned
from hlotool.check.subject import Subject
from hlotool.ir.attributes import AttributeValue, EntryLayout, FrontendAttributes
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Layout, Shape, ShapeIndex, TupleShape, subshape

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
