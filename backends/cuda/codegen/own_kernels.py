"""Operations that have kernels of their own, rather than being computed where they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from hlotool.backends.cuda.codegen.contractions import Contraction, dot_contraction
from hlotool.backends.cuda.codegen.convolutions import convolution_contraction
from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape
from hlotool.backends.cuda.codegen.loops import loop
from hlotool.backends.cuda.codegen.product_tiles import product
from hlotool.backends.cuda.codegen.scatters import scattered
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.ir.module import Instruction
from hlotool.passes.fusion_facts import SERIAL

#: From an instruction, its results and the memory that it may read to its kernels.
Maker = Callable[[Instruction, Sequence[Instruction], Sequence[Instruction]], list[Kernel]]

#: Tiles are worth it for as many rows and columns.
NARROW = 8


def is_long(instruction: Instruction) -> bool:
    """Whether it is too much work to be repeated by everything that reads it."""
    if instruction.opcode == "reduce-window":
        return prod(dim.size for dim in instruction.window.dims) > SERIAL
    if instruction.opcode not in _CONTRACTIONS:
        return True
    return _CONTRACTIONS[instruction.opcode](instruction).length > SERIAL


def multiply_adds(instruction: Instruction) -> int:
    """How many products a dot or a convolution sums; 0 for other operations, and where that is not known."""
    if instruction.opcode not in _CONTRACTIONS:
        return 0
    try:
        return _CONTRACTIONS[instruction.opcode](instruction).length * array_shape(instruction).size
    except NotGenerated:
        return 0


def _contracted(
    instruction: Instruction, parts: Sequence[Instruction], inputs: Sequence[Instruction]
) -> list[Kernel]:
    contraction = _CONTRACTIONS[instruction.opcode](instruction)
    _, rows, columns = contraction.counts
    if min(rows, columns) < NARROW or not array_shape(instruction).size:
        return [loop(parts, inputs)]
    return [product(contraction, inputs)]


_CONTRACTIONS: dict[str, Callable[[Instruction], Contraction]] = {
    "convolution": convolution_contraction,
    "dot": dot_contraction,
    "scaled-dot": dot_contraction,
}


def _looped(
    instruction: Instruction, parts: Sequence[Instruction], inputs: Sequence[Instruction]
) -> list[Kernel]:
    return [loop(parts, inputs)]


#: By opcode.
MAKERS: dict[str, Maker] = {
    **dict.fromkeys(_CONTRACTIONS, _contracted),
    "reduce-window": _looped,
    "scatter": scattered,
    "select-and-scatter": _looped,
    "select-in-windows": _looped,
}
