"""Programs that would not fit run as they are, with less held at once.

A comparison holds its arguments, both results and what legal executions return. Arguments and the expected
result can be read from files instead; then what counts is what one execution has alive at once, in the
order of instructions in which that is least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlotool.facts.memory import INTERPRETER, memory_of
from hlotool.facts.schedules import lightened
from hlotool.ir.arrays import LEAST, OnDisk, room_on_disk
from hlotool.ir.edit import with_attributes
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.rewrite.scale.limits import COPIES, RUNS_IN_PLACE, Limits, need_of
from hlotool.rewrite.scale.records import InPlaceRecord

#: Bytes that drawing an element takes beside it: f32 and f64 are drawn in place, narrow floats in f32,
#: others, integers and preds among them, in words of eight bytes.
_OF_NARROW_FLOATS, _OF_OTHERS = 4, 8


@dataclass(frozen=True, eq=False)
class InPlace:
    """Programs that run as they are, with what is large on disk.

    Attributes:
        programs: by the key that they were given under, in their lightest order.
        limit: bytes of memory that there are.
        memory: bytes that a comparison would take otherwise, estimated.
        needed: bytes of memory that one execution needs, estimated.
        reordered: programs that have another order.
        written: bytes of arguments and of the expected result, which will be on disk.
    """

    programs: Mapping[str, Module]
    limit: int
    memory: int
    needed: int
    reordered: int
    written: int
    _disk: OnDisk = field(default_factory=OnDisk)

    def keep(self, value: Any) -> Any:
        """The same value, its large arrays on disk; raises NoRoomOnDisk."""
        return self._disk.keep(value)

    @property
    def record(self) -> InPlaceRecord:
        """What was done so far."""
        return self._record(self._disk.size)

    @property
    def planned(self) -> InPlaceRecord:
        """What will be done, before anything is."""
        return self._record(self.written)

    def _record(self, on_disk: int) -> InPlaceRecord:
        return InPlaceRecord(
            limit=self.limit,
            memory=self.memory,
            needed=self.needed,
            on_disk=on_disk,
            reordered=self.reordered,
        )


def in_place(programs: Mapping[str, Module], limits: Limits) -> InPlace | None:
    """How `programs`, whose comparison takes more memory than there is, run all the same.

    Args:
        programs: by any key, the reference first.
        limits: of a comparison.

    Returns:
        None where an execution by itself takes too much, or the disk has no room, or runs take too long.
    """
    need = need_of(*programs.values())
    if not limits.has_time_for(need, RUNS_IN_PLACE):
        return None
    lighter = {key: lightened(module) for key, module in programs.items()}
    needed = max(map(_needed, lighter.values()))
    first = next(iter(lighter.values()))
    written = _large(*first.entry.parameters) + _large(first.entry.root)
    if needed > limits.memory or written > room_on_disk():
        return None
    others = [lighter[key] for key, module in programs.items() if lighter[key] is not module]
    for module in others:
        # In another order it is no schedule of the compiler's: who overwrites what is open.
        module.attributes = with_attributes(module.attributes, is_scheduled=None)
    return InPlace(lighter, int(limits.memory), COPIES * need.memory, needed, len(others), written)


def _needed(module: Module) -> int:
    """Bytes of memory of one execution with large arguments on disk, and of drawing the largest of these."""
    parameters = module.entry.parameters
    shapes = (shape for parameter in parameters for shape in array_shapes(parameter.shape))
    peak = memory_of(module, INTERPRETER).peak
    return max(peak - _large(*parameters), *map(_drawing, shapes), 0)


def _drawing(shape: ArrayShape) -> int:
    """Bytes of memory that making an argument takes, itself included."""
    kind = shape.element_type
    if kind in (ElementType.F32, ElementType.F64):
        return shape.byte_size
    return shape.byte_size + shape.size * (_OF_NARROW_FLOATS if kind.is_narrow_float else _OF_OTHERS)


def _large(*instructions: Instruction) -> int:
    """Bytes of the arrays that are put on disk."""
    sizes = (shape.byte_size for i in instructions for shape in array_shapes(i.shape))
    return sum(size for size in sizes if size >= LEAST)
