"""Layouts in tiles: only the compiler for TPUs writes them."""

from __future__ import annotations

from hlotool.ir.module import Module
from hlotool.ir.types import Shape, array_shapes


def has_tiles(shape: Shape) -> bool:
    """Whether a layout in a shape has tiles."""
    return any(part.layout is not None and bool(part.layout.tiles) for part in array_shapes(shape))


def is_tiled(module: Module) -> bool:
    """Whether a program has layouts in tiles: then a compiler for TPUs wrote it."""
    return any(has_tiles(instruction.shape) for instruction in module.instructions())
