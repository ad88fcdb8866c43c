"""A program that was drawn, and the words for what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hlotool.ir.attributes import (
    Ints,
    PaddingDim,
    SliceDim,
    Window,
)
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, array_shapes

#: Attributes whose value is a word, or a number of a handful.
_WORDS = ("direction", "type", "fft_type", "algorithm", "distribution", "transpose_a", "kind", "mode")
#: Attributes that are on or off.
_FLAGS = (
    "is_stable", "indices_are_sorted", "unique_indices", "is_reverse", "largest", "lower", "left_side",
    "unit_diagonal", "use_global_device_ids",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """One program.

    Attributes:
        module: that hlotool's verifier accepts; `module.to_text()` is what a compiler gets.
        origin: `graph`, `mutation` or `idioms`: a random graph, a real program that was changed, patterns of
            rewrites.
        seed: of the source.
        index: of the program there; both, and what the source was told, make it again.
        features: words for what is in it: see `words_of`, and `idiom:NAME` of the patterns it was made of.
    """

    module: Module
    origin: str
    seed: int
    index: int
    features: frozenset[str]


def words_of(module: Module) -> frozenset[str]:
    """What is in a program: `OPCODE`, `OPCODE:TYPE` of each array of a result, `OPCODE ATTRIBUTE…`.

    Numbers of attributes are told by what rewrites ask of them (`pad negative`, `slice stride`), shapes by
    their corners (`add:dims 0`, `dot:dims 1`).
    """
    return frozenset(word for i in module.instructions() for word in _words(i))


def _words(instruction: Instruction) -> Iterator[str]:
    opcode = instruction.opcode
    yield opcode
    for shape in array_shapes(instruction.shape):
        yield f"{opcode}:{shape.element_type}"
        for corner in _corners(shape):
            yield f"{opcode}:{corner}"
    for operand in instruction.operands:
        if opcode in ("convert", "bitcast-convert", "compare") and isinstance(operand.shape, ArrayShape):
            yield f"{opcode}<{operand.shape.element_type}"
    for name, value in instruction.attributes.items():
        for word in _of_attribute(name, value):
            yield f"{opcode} {word}"


def _corners(shape: ArrayShape) -> Iterator[str]:
    if 0 in shape.dims:
        yield "dims 0"
    if 1 in shape.dims:
        yield "dims 1"
    if shape.dims and max(shape.dims) > 100:
        yield "dims large"
    if not shape.dims:
        yield "scalar"
    if shape.is_dynamic:
        yield "dynamic"
    if shape.layout is not None and not shape.layout.is_descending:
        yield "layout"


def _of_attribute(name: str, value: object) -> Iterator[str]:
    if name in _WORDS and isinstance(value, str):
        yield f"{name}={value}"
    elif name in _FLAGS and value is True:
        yield name
    elif name == "dimensions" and isinstance(value, tuple):
        numbers: Ints = tuple(n for n in value if isinstance(n, int))
        yield f"{len(numbers)} dimensions" + ("" if list(numbers) == sorted(numbers) else " permuted")
    elif isinstance(value, Window):
        yield from _of_window(value)
    elif isinstance(value, tuple):
        for part in value:
            if isinstance(part, SliceDim) and part.stride > 1:
                yield "stride"
            elif isinstance(part, PaddingDim):
                yield from (w for w, on in _of_padding(part).items() if on)
    elif isinstance(value, int) and not isinstance(value, bool) and name.endswith("_count") and value > 1:
        yield name
    elif name == "sharding":
        yield "sharding"


def _of_padding(part: PaddingDim) -> dict[str, bool]:
    return {
        "negative": min(part.low, part.high) < 0,
        "interior": part.interior > 0,
        "edge": max(part.low, part.high) > 0,
    }


def _of_window(window: Window) -> Iterator[str]:
    for dim in window.dims:
        found = {
            "stride": dim.stride > 1,
            "base dilation": dim.base_dilation > 1,
            "window dilation": dim.window_dilation > 1,
            "reversal": dim.reversal,
            "pad": max(dim.pad_low, dim.pad_high) > 0,
            "negative pad": min(dim.pad_low, dim.pad_high) < 0,
            "whole": dim.size > 1 and dim.stride == 1,
        }
        yield from (f"window {word}" for word, on in found.items() if on)
