"""Cases of the rules on conversions and data movement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewrite.algebra_cases import CASES, DIMS, Case, case

from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction
from hlotool.lab.conformance.generators.cases import COMPLEX


@case("convert-to-itself", ("s4", "f32", "f8e5m2", "c64"))
def convert_to_itself(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("convert", x, shape=array(kind, *DIMS))


@case("convert-to-itself", ("s8", "f32"))
def bitcast_convert_to_itself(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("bitcast-convert", x, shape=array(kind, *DIMS))


for _first, _middle, _last, _fits in (
    ("s8", "s32", "s8", True),
    ("u8", "s16", "u8", True),
    ("u8", "s8", "u8", False),
    ("s4", "s8", "f32", True),
    ("s16", "f32", "bf16", True),
    ("s16", "f16", "f32", False),
    ("s8", "f32", "u8", False),
    ("u16", "f32", "f16", True),
    ("s32", "f32", "f64", False),
    ("s32", "f64", "f32", True),
    ("f16", "f32", "f16", True),
    ("f16", "f32", "bf16", True),
    ("bf16", "f32", "f64", True),
    ("f8e4m3fn", "f32", "f8e4m3fn", True),
    ("f8e5m2fnuz", "f32", "f16", True),
    ("f16", "f32", "s8", True),
    ("bf16", "f64", "s32", True),
    ("f32", "f16", "f32", False),
    ("f32", "bf16", "f32", False),
    ("f64", "f32", "s32", False),
):

    @case("convert-convert", (_first,), rewritten=_fits)
    def convert_convert(
        b: Builder, kind: str, x: Instruction, middle: str = _middle, last: str = _last
    ) -> Instruction:
        inner = b.op("convert", x, shape=array(middle, *DIMS))
        return b.op("convert", inner, shape=array(last, *DIMS))


@case("bitcast-convert-back", ("f32", "u32"))
def bitcast_convert_back(b: Builder, kind: str, x: Instruction) -> Instruction:
    inner = b.op("bitcast-convert", x, shape=array("s32", *DIMS))
    return b.op("bitcast-convert", inner, shape=array(kind, *DIMS))


@case("bitcast-convert-back", ("f64",), DIMS)
def bitcast_convert_to_parts_and_back(b: Builder, kind: str, x: Instruction) -> Instruction:
    inner = b.op("bitcast-convert", x, shape=array("u16", *DIMS, 4))
    return b.op("bitcast-convert", inner, shape=array(kind, *DIMS))


@case("real-of-complex", ("f32", "f64"), DIMS, DIMS)
def real_of_complex(b: Builder, kind: str, x: Instruction, y: Instruction) -> Instruction:
    return b.op("real", b.op("complex", x, y))


@case("imag-of-complex", ("f32", "f64"), DIMS, DIMS)
def imag_of_complex(b: Builder, kind: str, x: Instruction, y: Instruction) -> Instruction:
    return b.op("imag", b.op("complex", x, y))


@case("complex-of-parts", COMPLEX)
def complex_of_parts(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("complex", b.op("real", x), b.op("imag", x))


MOVED = ("f32", "s4", "pred", "c64")


def move(rule: str, opcode: str, dims: tuple[int, ...], result: tuple[int, ...], **attributes: Any) -> None:
    """One movement of one array."""

    def build(b: Builder, kind: str, x: Instruction) -> Instruction:
        return b.op(opcode, x, shape=array(kind, *result), **attributes)

    CASES.append(Case(rule, MOVED, build, (dims,)))


def move_twice(
    rule: str,
    opcode: str,
    dims: Sequence[tuple[int, ...]],
    *attributes: dict[str, Any],
    rewritten: bool = True,
) -> None:
    """Two movements of one array."""

    def build(b: Builder, kind: str, x: Instruction) -> Instruction:
        inner = b.op(opcode, x, shape=array(kind, *dims[1]), **attributes[0])
        return b.op(opcode, inner, shape=array(kind, *dims[2]), **attributes[-1])

    CASES.append(Case(rule, MOVED, build, (dims[0],), rewritten))


move("moves-nothing", "reshape", (2, 3), (2, 3))
move("moves-nothing", "copy", (2, 3), (2, 3))
move("moves-nothing", "transpose", (2, 3), (2, 3), dimensions=(0, 1))
move("moves-nothing", "broadcast", (2, 3), (2, 3), dimensions=(0, 1))
move("moves-nothing", "reverse", (2, 1), (2, 1), dimensions=(1,))
move("moves-nothing", "concatenate", (2, 3), (2, 3), dimensions=(1,))
move("moves-nothing", "slice", (5,), (5,), slice=(SliceDim(0, 5),))
move_twice("reshape-reshape", "reshape", [(2, 3), (6,), (3, 2)], {})
move_twice(
    "transpose-transpose", "transpose", [(2, 3, 4), (4, 2, 3), (2, 4, 3)],
    {"dimensions": (2, 0, 1)}, {"dimensions": (1, 0, 2)},
)  # fmt: skip
move_twice("reverse-reverse", "reverse", [(2, 3)] * 3, {"dimensions": (0, 1)}, {"dimensions": (1, 0)})
move_twice(
    "reverse-reverse", "reverse", [(2, 3)] * 3, {"dimensions": (0,)}, {"dimensions": (1, 0)}, rewritten=False
)
move_twice(
    "broadcast-broadcast", "broadcast", [(3, 2), (3, 4, 2), (2, 5, 3, 4)],
    {"dimensions": (0, 2)}, {"dimensions": (2, 3, 0)},
)  # fmt: skip
move_twice(
    "slice-slice", "slice", [(20, 9), (6, 9), (3, 0)],
    {"slice": (SliceDim(1, 18, 3), SliceDim(0, 9))}, {"slice": (SliceDim(1, 6, 2), SliceDim(4, 4))},
)  # fmt: skip
move_twice(
    "slice-slice", "slice", [(20,), (7,), (3,)],
    {"slice": (SliceDim(0, 20, 3),)}, {"slice": (SliceDim(1, 7, 2),)},
)  # fmt: skip


@case("moves-nothing", MOVED)
def pad_by_nothing(b: Builder, kind: str, x: Instruction) -> Instruction:
    padding = (PaddingDim(0, 0), PaddingDim(0, 0))
    return b.op("pad", x, b.constant(1, kind), padding=padding)


@case("moves-nothing", MOVED, rewritten=False)
def pad_to_the_same_size(b: Builder, kind: str, x: Instruction) -> Instruction:
    padding = (PaddingDim(1, -1), PaddingDim(0, 0))
    return b.op("pad", x, b.constant(1, kind), padding=padding)


@case("moves-nothing", MOVED, (3, 3), rewritten=False)
def transpose_of_a_square(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("transpose", x, dimensions=(1, 0))


for _opcode, _dims, _attributes in (
    ("reshape", (24,), {}),
    ("transpose", (6, 4), {"dimensions": (1, 0)}),
    ("slice", (2, 6), {"slice": (SliceDim(0, 4, 2), SliceDim(0, 6))}),
    ("reverse", (4, 6), {"dimensions": (1,)}),
    ("copy", (4, 6), {}),
):

    @case("movement-of-scalar", MOVED, ())
    def movement_of_scalar(
        b: Builder,
        kind: str,
        x: Instruction,
        opcode: str = _opcode,
        dims: tuple[int, ...] = _dims,
        attributes: dict[str, Any] = _attributes,
    ) -> Instruction:
        copies = b.op("broadcast", x, shape=array(kind, *DIMS), dimensions=())
        return b.op(opcode, copies, shape=array(kind, *dims), **attributes)


@case("movement-of-scalar", MOVED, (), ("s32", ()))
def dynamic_slice_of_scalar(b: Builder, kind: str, x: Instruction, i: Instruction) -> Instruction:
    copies = b.op("broadcast", x, shape=array(kind, 4), dimensions=())
    return b.op("dynamic-slice", copies, i, dynamic_slice_sizes=(2,))


for _start, _limit, _stride, _inside in (
    (0, 4, 1, True),
    (5, 10, 2, True),
    (3, 5, 1, False),
    (4, 4, 1, False),
):

    @case("slice-of-concatenate", MOVED, DIMS, DIMS, (2, 6), rewritten=_inside)
    def slice_of_concatenate(
        b: Builder,
        kind: str,
        *parts: Instruction,
        own: SliceDim = SliceDim(_start, _limit, _stride),  # noqa: B008 - bound in the loop
    ) -> Instruction:
        joined = b.op("concatenate", *parts, dimensions=(0,))
        inside = own if own.limit < 8 or own.stride == 1 else SliceDim(5, 8, 2)
        return b.op("slice", joined, slice=(inside, SliceDim(1, 6)))


@case("concatenate-without-empty", MOVED, (2, 3), (0, 3), (4, 3))
def concatenate_without_empty(b: Builder, kind: str, *parts: Instruction) -> Instruction:
    return b.op("concatenate", *parts, dimensions=(0,))


@case("dynamic-slice-of-all", MOVED, DIMS, ("s32", ()), ("s32", ()))
def dynamic_slice_of_all(b: Builder, kind: str, *operands: Instruction) -> Instruction:
    return b.op("dynamic-slice", *operands, dynamic_slice_sizes=DIMS)


for _index in (-5, 0, 2, 3, 100):

    @case("dynamic-slice-at-constant", MOVED)
    def dynamic_slice_at_constant(b: Builder, kind: str, x: Instruction, index: int = _index) -> Instruction:
        starts = (b.constant(index, "s32"), b.constant(1, "s32"))
        return b.op("dynamic-slice", x, *starts, dynamic_slice_sizes=(2, 3))


@case("update-of-all", MOVED, DIMS, DIMS, ("s32", ()), ("s32", ()))
def update_of_all(b: Builder, kind: str, *operands: Instruction) -> Instruction:
    return b.op("dynamic-update-slice", *operands)


for _row, _beside in ((0, True), (1, False), (9, True)):

    @case("slice-of-update", MOVED, DIMS, (1, 2), rewritten=_beside)
    def slice_of_update(
        b: Builder, kind: str, x: Instruction, update: Instruction, row: int = _row
    ) -> Instruction:
        updated = b.op("dynamic-update-slice", x, update, b.constant(row, "s32"), b.constant(1, "s32"))
        return b.op("slice", updated, slice=(SliceDim(1, 3), SliceDim(0, 4)))

    @case("slice-of-update", MOVED, DIMS, (1, 2), rewritten=_beside)
    def dynamic_slice_of_update(
        b: Builder, kind: str, x: Instruction, update: Instruction, row: int = _row
    ) -> Instruction:
        updated = b.op("dynamic-update-slice", x, update, b.constant(row, "s32"), b.constant(1, "s32"))
        starts = (b.constant(1, "s32"), b.constant(0, "s32"))
        return b.op("dynamic-slice", updated, *starts, dynamic_slice_sizes=(2, 4))


@case("transpose-of-size-one", MOVED, (2, 1, 3, 1))
def transpose_of_size_one(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("transpose", x, dimensions=(3, 0, 2, 1))


@case("transpose-of-size-one", MOVED, (2, 1, 3), rewritten=False)
def transpose_of_others(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("transpose", x, dimensions=(2, 0, 1))


@case("sort-of-one", ("f32", "s8"), (4, 1))
def sort_of_one(b: Builder, kind: str, x: Instruction) -> Instruction:
    less = Builder("less")
    sides = [less.parameter(n, array(kind)) for n in range(2)]
    compare = less.op("compare", *sides, direction="LT")
    return b.op("sort", x, dimensions=(1,), to_apply=less.build(compare))
