"""Cutting instructions out of a program into a module of their own.

cut = extract(module, cone([result]), [result])   # result and all that it needs, down to the parameters
cut.module, cut.inputs                            # inputs[i] is what parameter i stands for
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit_calls import make_body, operands_first
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import reachable

#: What of the header also holds for a part of the program.
_INHERITED = ("is_scheduled", "replica_count", "num_partitions", "frontend_attributes")


@dataclass(frozen=True, slots=True)
class Extraction:
    """A module cut out of another one.

    Attributes:
        module: it shares no instruction with the original.
        inputs: instructions of the original; parameter i of the module stands for `inputs[i]`.
        results: instructions of the original whose values the module returns; several as a tuple.
        copies: the copy of each instruction of the original that the entry holds.
    """

    module: Module
    inputs: tuple[Instruction, ...]
    results: tuple[Instruction, ...]
    copies: Mapping[Instruction, Instruction]


def cone(
    results: Sequence[Instruction],
    boundary: Collection[Instruction] = (),
    height: int | None = None,
) -> list[Instruction]:
    """`results` and what they need, operands first.

    Args:
        results: of one computation.
        boundary: instructions that stay outside, with all that only they need.
        height: so many steps back from the results; None goes back to the parameters. Constants and iotas
            that are operands of what is inside come along all the same.
    """
    depth = dict.fromkeys(results, 0)
    queue = list(depth)
    for instruction in queue:
        for operand in instruction.operands:
            near = height is None or depth[instruction] < height or operand.opcode in ("constant", "iota")
            if near and operand not in depth and operand not in boundary and operand.opcode != "parameter":
                depth[operand] = depth[instruction] + 1
                queue.append(operand)
    return operands_first(queue)


def extract(
    module: Module, members: Sequence[Instruction], results: Sequence[Instruction], name: str | None = None
) -> Extraction:
    """Copy `members` of one computation into a module of their own that returns `results`.

    What the members read from outside becomes a parameter. Control dependencies among them stay, and so does
    the order of a scheduled program; layouts of parameters and results are those of the instructions.

    Args:
        module: they are part of; its name, devices and source positions are handed on.
        members: operands first, no parameters; see `cone`.
        results: members, or something else of their computation, which is then handed through.
        name: of the new module.

    Raises:
        ValueError: they are not all in one computation of the module.
    """
    home = _home(module, [*members, *results])
    body, inputs = make_body(members, results, module.entry.name, home)
    body.execution_thread = "main"
    attributes: dict[str, AttributeValue] = {k: v for k, v in module.attributes.items() if k in _INHERITED}
    shallow = Module(name or module.name, reachable(body), body, attributes, module.stack_frames, module.path)
    shallow.has_stand_ins = module.has_stand_ins
    copies = dict(zip(members, (i for i in body.instructions if i.opcode != "parameter")))
    clone = clone_module(shallow)
    return Extraction(
        clone.module,
        tuple(inputs),
        tuple(results),
        {original: clone.instructions[copy] for original, copy in copies.items()},
    )


def _home(module: Module, members: Sequence[Instruction]) -> Computation:
    for computation in module.computations:
        if any(i is members[0] for i in computation.instructions):
            inside = set(computation.instructions)
            strangers = [m.name for m in members if m not in inside]
            if strangers:
                raise ValueError(f"{strangers[0]} is not in {computation.name} like {members[0].name}")
            return computation
    raise ValueError(f"{members[0].name} is not in {module.name}")
