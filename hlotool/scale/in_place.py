"""Before programs get smaller sizes: can they run as they are, if less is held at once?

A comparison holds its arguments, both results and what legal executions return. Arguments and the expected
result can be read from files instead; then what counts is what one execution has alive at once, in the order
of instructions in which that is least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlotool.analysis.light_order import lightened
from hlotool.analysis.memory import INTERPRETER, Memory, memory_of
from hlotool.ir.module import Module
from hlotool.ir.types import array_shapes
from hlotool.scale.plan import COPIES, RUNS_IN_PLACE, Limits, need_of
from hlotool.scale.records import InPlaceRecord
from hlotool.values.on_disk import OnDisk, room_on_disk

#: An argument of a narrow type is drawn in f32, and converted, before it goes to its file.
_DRAWN = 3


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
    memories = [memory_of(module, INTERPRETER) for module in lighter.values()]
    needed = max(map(_needed, lighter.values(), memories))
    written = memories[0].arguments + memories[0].results
    if needed > limits.memory or written > room_on_disk():
        return None
    reordered = sum(lighter[key] is not module for key, module in programs.items())
    return InPlace(lighter, int(limits.memory), COPIES * need.memory, needed, reordered, written)


def _needed(module: Module, memory: Memory) -> int:
    """Bytes of memory of one execution whose arguments are on disk, and of drawing the largest of these."""
    leaves = (shape.byte_size for p in module.entry.parameters for shape in array_shapes(p.shape))
    return max(memory.peak - memory.arguments, _DRAWN * max(leaves, default=0))
