"""Operations that give the same bytes another shape, and move nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hlotool.backends.cuda.memory import Resident
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType


def view_of(instruction: Instruction) -> Callable[[Resident], Resident] | None:
    """What a reshape or bitcast does to an array in row-major order; None where it has to move elements."""
    source, target = instruction.operands[0].shape, instruction.shape
    if not isinstance(source, ArrayShape) or not isinstance(target, ArrayShape):
        return None
    if source.is_dynamic or target.is_dynamic or not _same_elements(source, target):
        return None
    if instruction.opcode == "bitcast" and not (_is_row_major(source) and _is_row_major(target)):
        return None
    return partial(Resident.viewed, dims=target.dims, dtype=dtype_of(target.element_type))


def _same_elements(source: ArrayShape, target: ArrayShape) -> bool:
    """Whether the bytes that hold one array are right as they are for the other."""
    old, new = source.element_type, target.element_type
    if old is new:
        return source.size == target.size
    # Elements narrower than a byte lie in one each, and a pred of any byte but 0 is held as 1.
    whole = old.bits >= 8 and new.bits >= 8 and new is not ElementType.PRED
    return whole and source.size * old.bits == target.size * new.bits


def _is_row_major(shape: ArrayShape) -> bool:
    """Whether elements lie in memory as in row-major order; dimensions of size 1 may stand anywhere."""
    order = [d for d in shape.minor_to_major[::-1] if shape.dims[d] != 1]
    return order == sorted(order) and not (shape.layout is not None and shape.layout.tiles)
