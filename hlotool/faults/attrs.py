"""Attributes of instructions by their types; empty where an instruction has none of that name."""

from __future__ import annotations

from typing import cast

from hlotool.ir.attributes import PaddingDim, SliceDim, Window
from hlotool.ir.module import Instruction


def ints(instruction: Instruction, name: str) -> tuple[int, ...]:
    """A list of numbers, such as `dimensions`."""
    return cast("tuple[int, ...]", instruction.attributes.get(name, ()))


def slice_ranges(instruction: Instruction) -> tuple[SliceDim, ...]:
    """The `slice` attribute."""
    return cast("tuple[SliceDim, ...]", instruction.attributes.get("slice", ()))


def padding(instruction: Instruction) -> tuple[PaddingDim, ...]:
    """The `padding` attribute of a pad."""
    return cast("tuple[PaddingDim, ...]", instruction.attributes.get("padding", ()))


def window(instruction: Instruction) -> Window:
    """The `window` attribute."""
    value = instruction.attributes.get("window")
    return value if isinstance(value, Window) else Window(())
