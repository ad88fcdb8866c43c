"""Instructions that each rule of the algebraic simplifier must rewrite, and some that it must leave alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from differential.operands import COMPLEX, F8, FLOATS, INTEGERS, SIGNED, UNSIGNED

from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES

#: Sizes of the parameters of a case unless it says otherwise.
DIMS = (4, 6)
REAL = (*INTEGERS, *FLOATS)
BYTES = tuple(kind for kind in INTEGERS if ELEMENT_TYPES[kind].bits >= 8)
SIGNS = (*SIGNED, *FLOATS)


@dataclass(frozen=True)
class Case:
    """One instruction to be rewritten.

    Attributes:
        rule: that must (or must not) do it.
        kinds: element types, each a case of its own.
        build: makes it of a builder, the element type and parameters.
        parameters: dimensions of each, or (element type, dimensions).
        rewritten: whether the rule applies.
    """

    rule: str
    kinds: Sequence[str]
    build: Callable[..., Instruction]
    parameters: Sequence[Any] = (DIMS,)
    rewritten: bool = True


CASES: list[Case] = []


def case(rule: str, kinds: Sequence[str], *parameters: Any, rewritten: bool = True) -> Any:
    """Enter a function that builds an instruction."""

    def enter(build: Callable[..., Instruction]) -> Callable[..., Instruction]:
        CASES.append(Case(rule, kinds, build, parameters or (DIMS,), rewritten))
        return build

    return enter


def full(b: Builder, kind: str, value: Any, dims: tuple[int, ...] = DIMS) -> Instruction:
    """Copies of one value."""
    return b.op("broadcast", b.constant(value, kind), shape=array(kind, *dims), dimensions=())


def with_constant(
    rule: str, opcode: str, kinds: Sequence[str], value: Any, *, left: bool = False, rewritten: bool = True
) -> None:
    """An operation with a constant on the right, or the left, as a broadcast scalar and as an array."""

    def build(b: Builder, kind: str, x: Instruction) -> Instruction:
        constant = full(b, kind, value)
        return b.op(opcode, *((constant, x) if left else (x, constant)))

    def build_scalar(b: Builder, kind: str, x: Instruction) -> Instruction:
        constant = b.constant(value, kind)
        return b.op(opcode, *((constant, x) if left else (x, constant)))

    CASES.append(Case(rule, kinds, build, (DIMS,), rewritten))
    CASES.append(Case(rule, kinds, build_scalar, ((),), rewritten))


with_constant("add-zero", "add", INTEGERS, 0)
with_constant("add-zero", "add", INTEGERS, 0, left=True)
with_constant("add-zero", "add", FLOATS, -0.0)
with_constant("add-zero", "add", FLOATS, 0.0, rewritten=False)
with_constant("add-positive-zero", "add", FLOATS, 0.0)
with_constant("add-positive-zero", "add", FLOATS, 0.0, left=True)
with_constant("subtract-zero", "subtract", REAL, 0)
with_constant("subtract-zero", "subtract", FLOATS, -0.0, rewritten=False)
with_constant("subtract-zero", "subtract", REAL, 0, left=True, rewritten=False)
with_constant("multiply-one", "multiply", (*REAL, *F8), 1)
with_constant("multiply-one", "multiply", REAL, 1, left=True)
with_constant("multiply-one", "multiply", COMPLEX, 1, rewritten=False)
with_constant("divide-one", "divide", (*REAL, *F8), 1)
with_constant("divide-one", "divide", FLOATS, 1, left=True, rewritten=False)
with_constant("multiply-zero", "multiply", INTEGERS, 0)
with_constant("multiply-zero", "multiply", FLOATS, 0, rewritten=False)
with_constant("multiply-minus-one", "multiply", SIGNS, -1)
with_constant("multiply-minus-one", "multiply", UNSIGNED, 1, rewritten=False)
with_constant("divide-by-power-of-two", "divide", FLOATS, 0.5)
with_constant("divide-by-power-of-two", "divide", FLOATS, -8)
with_constant("divide-by-power-of-two", "divide", FLOATS, 3, rewritten=False)
with_constant("divide-by-power-of-two", "divide", ("f16",), 2.0**15, rewritten=False)
with_constant("divide-by-power-of-two", "divide", FLOATS, float("inf"), rewritten=False)
with_constant("divide-by-constant", "divide", FLOATS, 3)
with_constant("divide-by-constant", "divide", FLOATS, -0.3)
with_constant("divide-by-constant", "divide", ("f32",), 1e-40, rewritten=False)
with_constant("divide-by-constant", "divide", ("f32",), 3e38, rewritten=False)
with_constant("multiply-power-of-two", "multiply", BYTES, 4)
with_constant("multiply-power-of-two", "multiply", ("u8", "u32"), 128, left=True)
with_constant("multiply-power-of-two", "multiply", BYTES, 6, rewritten=False)
with_constant("multiply-power-of-two", "multiply", ("s8",), -128, rewritten=False)
with_constant("divide-unsigned-power-of-two", "divide", ("u8", "u16", "u32", "u64"), 16)
with_constant("divide-unsigned-power-of-two", "divide", ("s8", "s32"), 16, rewritten=False)
with_constant("remainder-unsigned-power-of-two", "remainder", ("u8", "u16", "u32", "u64"), 16)
with_constant("remainder-unsigned-power-of-two", "remainder", ("s8", "s32"), 16, rewritten=False)
with_constant("power-zero", "power", FLOATS, 0.0)
with_constant("power-zero", "power", FLOATS, -0.0)
with_constant("power-one", "power", FLOATS, 1)
with_constant("power-two", "power", FLOATS, 2)
with_constant("power-minus-one", "power", FLOATS, -1)
with_constant("and-constant", "and", ("pred", *INTEGERS), 0)
with_constant("and-constant", "and", SIGNED, -1)
with_constant("and-constant", "and", ("pred",), True, left=True)
with_constant("and-constant", "and", ("u8",), 255)
with_constant("and-constant", "and", ("u64",), 2**64 - 1)
with_constant("and-constant", "and", ("u8", "s8"), 127, rewritten=False)
with_constant("or-constant", "or", ("pred", *INTEGERS), 0)
with_constant("or-constant", "or", SIGNED, -1)
with_constant("or-constant", "or", ("pred",), True)
with_constant("xor-constant", "xor", ("pred", *INTEGERS), 0)
with_constant("xor-constant", "xor", SIGNED, -1)
with_constant("xor-constant", "xor", ("pred",), True, left=True)
with_constant("extreme-of-limit", "maximum", FLOATS, float("-inf"))
with_constant("extreme-of-limit", "minimum", FLOATS, float("inf"))
with_constant("extreme-of-limit", "maximum", ("s8",), -128)
with_constant("extreme-of-limit", "minimum", ("u16",), 65535)
with_constant("extreme-of-limit", "maximum", ("u32",), 0)
with_constant("extreme-of-limit", "minimum", ("pred",), True)
with_constant("extreme-of-limit", "maximum", FLOATS, float("inf"), rewritten=False)
with_constant("extreme-of-limit", "minimum", ("s64",), 2**63 - 2, rewritten=False)


@case("subtract-self", INTEGERS)
def subtract_self(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("subtract", x, x)


@case("subtract-self-float", FLOATS)
def subtract_self_float(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("subtract", x, x)


@case("divide-self", FLOATS)
@case("divide-self", INTEGERS, rewritten=False)
def divide_self(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("divide", x, x)


@case("add-negate", (*SIGNS, *UNSIGNED, *COMPLEX), DIMS, DIMS)
def add_negate(b: Builder, kind: str, x: Instruction, y: Instruction) -> Instruction:
    return b.op("add", b.op("negate", y), x)


@case("subtract-negate", (*SIGNS, *UNSIGNED, *COMPLEX), DIMS, DIMS)
def subtract_negate(b: Builder, kind: str, x: Instruction, y: Instruction) -> Instruction:
    return b.op("subtract", x, b.op("negate", y))


@case("negate-negate", (*SIGNS, *UNSIGNED, *COMPLEX, *F8))
def negate_negate(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("negate", b.op("negate", x))


@case("abs-of-sign-change", SIGNS)
def abs_of_negate(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("abs", b.op("negate", x))


@case("abs-of-sign-change", SIGNS)
def abs_of_abs(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("abs", b.op("abs", x))


@case("reassociate-constants", INTEGERS)
@case("reassociate-constants", FLOATS, rewritten=False)
def add_twice(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("add", full(b, kind, 1), b.op("add", x, full(b, kind, 1)))


@case("reassociate-constants", BYTES)
def multiply_twice(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("multiply", b.op("multiply", full(b, kind, 77), x), full(b, kind, 5))


@case("divide-by-sqrt", FLOATS, DIMS, DIMS)
def divide_by_sqrt(b: Builder, kind: str, x: Instruction, y: Instruction) -> Instruction:
    return b.op("divide", x, b.op("sqrt", y))


@case("not-not", ("pred", *INTEGERS))
def not_not(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("not", b.op("not", x))


for _opcode, _kinds in (
    ("and", ("pred", *INTEGERS)),
    ("or", ("pred", *INTEGERS)),
    ("maximum", ("pred", *REAL)),
    ("minimum", ("pred", *REAL)),
):

    @case("idempotent", _kinds)
    def idempotent(b: Builder, kind: str, x: Instruction, opcode: str = _opcode) -> Instruction:
        return b.op(opcode, x, x)


@case("xor-self", ("pred", *INTEGERS))
def xor_self(b: Builder, kind: str, x: Instruction) -> Instruction:
    return b.op("xor", x, x)


@case("select-same", ("pred", "s32", "f32", "c64"), ("pred", DIMS), DIMS)
def select_same(b: Builder, kind: str, p: Instruction, x: Instruction) -> Instruction:
    return b.op("select", p, x, x)


for _value in (True, False):

    @case("select-constant", ("s8", "f32"), DIMS, DIMS)
    def select_constant(
        b: Builder, kind: str, x: Instruction, y: Instruction, value: bool = _value
    ) -> Instruction:
        return b.op("select", full(b, "pred", value), x, y)

    @case("select-predicates", ("pred",), ("pred", DIMS))
    def select_predicates(b: Builder, kind: str, p: Instruction, value: bool = _value) -> Instruction:
        return b.op("select", p, full(b, "pred", value), full(b, "pred", not value))


@case("select-not", ("s8", "f32"), ("pred", DIMS), DIMS, DIMS)
def select_not(b: Builder, kind: str, p: Instruction, x: Instruction, y: Instruction) -> Instruction:
    return b.op("select", b.op("not", p), x, y)


for _direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
    _strict = _direction in ("LT", "GT")
    _equal = _direction in ("EQ", "NE")

    @case("compare-self", ("pred", *INTEGERS, *(FLOATS if _strict else ())))
    @case("compare-self", () if _strict else FLOATS, rewritten=False)
    @case("compare-self-float", FLOATS)
    def compare_self(b: Builder, kind: str, x: Instruction, direction: str = _direction) -> Instruction:
        return b.op("compare", x, x, direction=direction)

    @case("compare-self", FLOATS)
    def compare_self_total(b: Builder, kind: str, x: Instruction, direction: str = _direction) -> Instruction:
        return b.op("compare", x, x, direction=direction, type="TOTALORDER")

    @case("not-compare", ("pred", *INTEGERS, *(FLOATS if _equal else ())), DIMS, DIMS)
    @case("not-compare", () if _equal else FLOATS, DIMS, DIMS, rewritten=False)
    @case("not-compare-float", FLOATS, DIMS, DIMS)
    def not_compare(
        b: Builder, kind: str, x: Instruction, y: Instruction, direction: str = _direction
    ) -> Instruction:
        return b.op("not", b.op("compare", x, y, direction=direction))

    @case("not-compare", FLOATS, DIMS, DIMS)
    def not_compare_total(
        b: Builder, kind: str, x: Instruction, y: Instruction, direction: str = _direction
    ) -> Instruction:
        return b.op("not", b.op("compare", x, y, direction=direction, type="TOTALORDER"))


for _direction, _left in (("LT", False), ("GE", False), ("GT", True), ("LE", True)):

    @case("compare-unsigned-zero", UNSIGNED)
    @case("compare-unsigned-zero", SIGNED, rewritten=False)
    def compare_unsigned_zero(
        b: Builder, kind: str, x: Instruction, direction: str = _direction, left: bool = _left
    ) -> Instruction:
        zero = full(b, kind, 0)
        return b.op("compare", *((zero, x) if left else (x, zero)), direction=direction)


for _direction, _value in (("EQ", True), ("EQ", False), ("NE", True), ("NE", False)):

    @case("compare-predicate", ("pred",), ("pred", DIMS))
    def compare_predicate(
        b: Builder, kind: str, p: Instruction, direction: str = _direction, value: bool = _value
    ) -> Instruction:
        return b.op("compare", p, full(b, "pred", value), direction=direction)


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
