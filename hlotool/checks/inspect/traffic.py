"""Bytes that move: across the border of a fusion, between devices, to the host. XLA: hlo_cost_analysis.cc."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from hlotool.checks.lints import leaves_device
from hlotool.checks.offload.positions import on_host
from hlotool.checks.records import TrafficInfo
from hlotool.facts.buffers import array_bytes, table_bytes
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, TupleShape, array_shapes, leaves
from hlotool.ir.walk import Users, users


def is_custom(fusion: Instruction) -> bool:
    """Whether it stands for a kernel that somebody wrote."""
    return fusion.attributes.get("kind") == "kCustom"


def fusion_bytes(fusion: Instruction, computation: Computation) -> int:
    """Everything that crosses its border, and constants too large to be part of the code."""
    readers = users(computation)
    read = sum(_parameter_bytes(parameter, readers) for parameter in computation.parameters)
    constants = sum(table_bytes(c.shape) for c in computation.instructions if _lies_in_memory(c))
    return read + constants + sum(_written(fusion.shape, computation.root))


def _lies_in_memory(instruction: Instruction) -> bool:
    shape = instruction.shape
    return instruction.opcode == "constant" and isinstance(shape, ArrayShape) and shape.size > 1


def _written(shape: Shape, root: Instruction) -> Iterator[int]:
    """Bytes written of each array of the result; what is updated in place is not written as a whole."""
    for index, part in leaves(shape):
        if not isinstance(part, ArrayShape):
            continue
        maker = root.operands[index[0]] if root.opcode == "tuple" and len(index) == 1 else root
        is_update = maker.opcode == "dynamic-update-slice"
        yield table_bytes(maker.operands[1].shape if is_update else part)


def _parameter_bytes(parameter: Instruction, readers: Users) -> int:
    if not isinstance(parameter.shape, TupleShape):
        return read_bytes(parameter, readers)
    parts = (index for index, _ in leaves(parameter.shape))
    return sum(read_bytes(_taken(parameter, index, readers), readers) for index in parts)


def _taken(parameter: Instruction, index: ShapeIndex, readers: Users) -> Instruction:
    """The instruction that takes the part `index` out of a parameter that is a tuple."""
    found = parameter
    for number in index:
        takers = (u for u in readers[found] if u.opcode == "get-tuple-element")
        found = next((taker for taker in takers if taker.integer("index") == number), found)
    return found


def read_bytes(value: Instruction, readers: Users) -> int:
    """What is read of a parameter: slices by their size, all of it once by whatever else there is.

    Args:
        value: a parameter of a fusion, or a part of one.
        readers: of the instructions of its computation.
    """
    return sum(_each_read(value, readers[value], readers))


def _each_read(value: Instruction, direct: Sequence[Instruction], readers: Users) -> Iterator[int]:
    whole = False
    for user in direct:
        if user.opcode == "fusion":
            yield from _nested_reads(value, user, readers)
        elif user.opcode in ("broadcast", "reshape"):
            yield table_bytes(value.shape)
        elif (part := _partial_read(value, user)) is not None:
            yield part
        elif not whole:
            whole = True
            yield table_bytes(value.shape)


def _partial_read(value: Instruction, user: Instruction) -> int | None:
    """What `user` reads when it needs a part of `value` only; None when it needs all of it."""
    if user.opcode == "slice" or (user.opcode == "dynamic-slice" and user.operands[0] is value):
        return table_bytes(user.shape)
    # The array that is updated is the result's own memory.
    return 0 if user.opcode == "dynamic-update-slice" and user.operands[0] is value else None


def _nested_reads(value: Instruction, fusion: Instruction, readers: Users) -> Iterator[int]:
    """Through a fusion within the fusion: by what is read of its result where it hands a parameter on."""
    computation = next(fusion.called)
    inner = users(computation)
    parameters, root = computation.parameters, computation.root
    for number, operand in enumerate(fusion.operands):
        if operand is not value:
            continue
        parameter = parameters[number]
        is_simple = not root.operands or root.operands[0] is parameter
        whole = False
        for user in readers[fusion]:
            is_part = is_simple and user.opcode in ("slice", "dynamic-slice", "dynamic-update-slice")
            part = _partial_read(fusion, user) if is_part else None
            if part is not None:
                yield part
            elif not whole:
                whole = True
                yield table_bytes(fusion.shape) if is_part else read_bytes(parameter, inner)


#: Custom calls that move a value between the memories of host and device.
_OFFLOAD = ("MoveToHost", "MoveToDevice")


def collectives(instructions: Iterable[Instruction]) -> list[TrafficInfo]:
    """What devices exchange; one that is started and finished counts once."""
    found = (i for i in instructions if i.row.opcode_class is Class.COLLECTIVE)
    return _by_name((i.opcode, i) for i in found if not i.opcode.endswith("-done"))


def host_transfers(instructions: Iterable[Instruction]) -> list[TrafficInfo]:
    """What goes to the host's memory, comes from there, or waits for the host."""
    return _by_name((i.custom_call_target or i.opcode, i) for i in instructions if _concerns_host(i))


def custom_calls(instructions: Iterable[Instruction]) -> list[TrafficInfo]:
    """Custom calls, counted by their target."""
    return _by_name((target, i) for i in instructions if (target := i.custom_call_target))


def _concerns_host(instruction: Instruction) -> bool:
    if instruction.opcode in ("copy", "copy-start"):
        return _is_on_host(instruction) != _is_on_host(instruction.operands[0])
    return instruction.custom_call_target in _OFFLOAD or bool(leaves_device(instruction))


def _is_on_host(instruction: Instruction) -> bool:
    shape = next(iter(array_shapes(instruction.shape)), None)
    return shape is not None and on_host(shape)


def _by_name(found: Iterable[tuple[str, Instruction]]) -> list[TrafficInfo]:
    """The most bytes first."""
    sizes: dict[str, list[int]] = {}
    for name, instruction in found:
        shapes = [s for i in (instruction, *instruction.operands) for s in array_shapes(i.shape)]
        sizes.setdefault(name, []).append(sum(map(array_bytes, shapes)))
    rows = [TrafficInfo(name=name, count=len(each), bytes=sum(each)) for name, each in sizes.items()]
    return sorted(rows, key=attrgetter("bytes"), reverse=True)
