"""The values of one computation: who makes them, who reads them last, and whose memory they have."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex


class Role(enum.Enum):
    """What becomes of an argument's memory."""

    #: It stays as it is; the caller counts it.
    KEPT = "kept"
    #: The loop's next value is written there; the caller counts it.
    OVERWRITTEN = "overwritten"
    #: It is the computation's own, and free after the last use.
    DONATED = "donated"


class Value(Struct, eq=False):
    """An array in memory.

    Attributes:
        size: in bytes.
        index: of the leaf of the result that it is made as.
        space: memory space of its layout.
        made: position of the instruction that makes it; of an argument -1.
        is_own: the computation allocates it.
        is_reserved: from beginning to end; what is there before a result is made has no memory of its own.
        may_be_overwritten: once it has been read for the last time.
        last_use: position of the last instruction that reads it.
        is_taken: that instruction writes its own result there.
    """

    size: int
    index: ShapeIndex = ()
    space: int = 0
    made: int = -1
    is_own: bool = True
    is_reserved: bool = False
    may_be_overwritten: bool = True
    last_use: int = -1
    is_taken: bool = False


class Lives(Struct, frozen=True):
    """The values of a computation.

    Attributes:
        values: of each instruction, one per leaf; what hands values on has those of its operands.
        made: what each instruction makes.
        dying: what is read for the last time, by position; what is never read is not in it.
        taken: of what is written over an operand, that operand; filled in by `Estimate.moments`.
    """

    values: Mapping[Instruction, Sequence[Value]]
    made: Sequence[Sequence[Value]]
    dying: Mapping[int, Sequence[Value]]
    taken: dict[Value, Value] = field(default_factory=dict)
