"""What leaves the device, and what nobody knows anything of, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from hlotool.check.lints.repeatability import leaves_device
from hlotool.check.offload.annotations import on_host
from hlotool.inspect.records import TrafficInfo
from hlotool.inspect.sizes import array_bytes
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import array_shapes

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
