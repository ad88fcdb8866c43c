"""A spot where two programs part, as two small programs on the values that occurred.

Both take the same arguments. The one computes what the right program computed at this spot, the other one
what the wrong program did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Names, copied
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves, subshape
from hlotool.ir.walk import reachable
from hlotool.locate.execution import Execution
from hlotool.locate.frames import Node, operand_nodes, resolve
from hlotool.locate.locator import Found


@dataclass(frozen=True, slots=True)
class Spot:
    """Two small programs that should compute the same.

    Attributes:
        before: the right one.
        after: the wrong one.
        arguments: values that occurred, for both; of programs for several devices a tuple of them per device.
        copies: how many devices have values of their own.
    """

    before: Module
    after: Module
    arguments: tuple[Any, ...]
    copies: int = 1


def cut_out(found: Found) -> Spot | None:
    """The operations to blame as a program of their own, and what should stand in their place as another.

    None where one program is for several devices and the other is not, or where some values were not kept.
    """
    blame = found.blame
    values, left, right = _parameters(found)
    copies, others = (len(each.entry.trace.stores) for each in (found.tested, found.reference))
    if copies != others or any(value is None for value in values):
        return None
    arguments = values if copies == 1 else tuple(tuple(v[device] for v in values) for device in range(copies))
    return Spot(
        _module(found.reference, "before", blame.before, blame.members_before, left, copies),
        _module(found.tested, "after", blame.after, blame.members_after, right, copies),
        arguments,
        copies,
    )


#: The header of a program that tells for how many devices it is.
_DEVICES = ("replica_count", "num_partitions")

#: The parameters of one of the two programs: a shape each, and which node it stands for.
_Slots = list[tuple[Shape, Node | None]]


def _parameters(found: Found) -> tuple[tuple[Any, ...], _Slots, _Slots]:
    """The values of the common parameters, and what they are in each program."""
    blame = found.blame
    used_before = {blame.before, *(o for n in blame.members_before for o in operand_nodes(n))}
    used_after = {blame.after, *(o for n in blame.members_after for o in operand_nodes(n))}
    values: list[Any] = []
    left: _Slots = []
    right: _Slots = []
    for one, other in blame.inputs:
        if one not in used_before and other not in used_after:
            continue
        value = next(found.value(node) for node in (one, other) if node is not None)
        shapes = [subshape(node.instruction.shape, node.index) for node in (one, other) if node is not None]
        values.append(value)
        left.append((shapes[0], one))
        right.append((shapes[-1], other))
    return tuple(values), left, right


def _module(
    origin: Execution, name: str, root: Node, members: Sequence[Node], slots: _Slots, copies: int
) -> Module:
    """A module that computes `root` from what the slots stand for, on so many devices."""
    names = Names(())
    made: dict[Node, Instruction] = {}
    instructions: list[Instruction] = []
    for number, (shape, node) in enumerate(slots):
        wanted = node.instruction.name if node is not None else "unused"
        parameter = Instruction(names.fresh(wanted), "parameter", shape, parameter_number=number)
        instructions.append(parameter)
        if node is not None:
            made[node] = parameter
    for node in members:
        if node in made:
            continue
        whole = Node(node.frame, node.instruction)
        if whole not in made:
            copy = copied(node.instruction, _operands(whole, made, instructions, names))
            copy.name = names.fresh(copy.name)
            instructions.append(copy)
            made[whole] = copy
        made[node] = _part(made[whole], node.index, instructions, names)
    body = Computation("main", instructions, made[root])
    program = origin.original
    header = _DEVICES if copies > 1 else ()
    attributes: dict[str, AttributeValue] = {k: v for k, v in program.attributes.items() if k in header}
    module = Module(f"{program.name}_{name}", reachable(body), body, attributes, program.stack_frames)
    module.has_stand_ins = program.has_stand_ins
    return clone_module(module).module


def _operands(
    node: Node, made: dict[Node, Instruction], instructions: list[Instruction], names: Names
) -> list[Instruction]:
    """The copies of what an operation reads; tuples are put together again."""
    found: list[Instruction] = []
    for operand in node.instruction.operands:
        if isinstance(operand.shape, ArrayShape):
            found.append(_matching(made[resolve(node.frame, operand)], operand.shape, instructions, names))
            continue
        parts = [made[resolve(node.frame, operand, index)] for index, _ in leaves(operand.shape)]
        whole = Instruction(names.fresh("tuple"), "tuple", operand.shape, tuple(parts))
        instructions.append(whole)
        found.append(whole)
    return found


def _matching(
    given: Instruction, wanted: ArrayShape, instructions: list[Instruction], names: Names
) -> Instruction:
    """`given`, copied to another layout where a copy that was looked through did that."""
    layout = given.shape.layout if isinstance(given.shape, ArrayShape) else None
    if wanted.layout is None or layout == wanted.layout:
        return given
    copy = Instruction(names.fresh("copy"), "copy", wanted, (given,))
    instructions.append(copy)
    return copy


def _part(
    whole: Instruction, index: ShapeIndex, instructions: list[Instruction], names: Names
) -> Instruction:
    for i in index:
        shape = subshape(whole.shape, (i,))
        whole = Instruction(names.fresh("part"), "get-tuple-element", shape, (whole,), {"index": i})
        instructions.append(whole)
    return whole
