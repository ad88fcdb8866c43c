"""Cases of the rules on bits, predicates, comparisons and selections."""

from __future__ import annotations

from rewrite.algebra_cases import DIMS, REAL, case, full, with_constant

from hlotool.ir.builder import Builder
from hlotool.ir.module import Instruction
from hlotool.lab.conformance.generators.cases import FLOATS, INTEGERS, SIGNED, UNSIGNED

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
