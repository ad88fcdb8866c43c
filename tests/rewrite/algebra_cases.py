"""Instructions that each rule of the algebraic simplifier must rewrite, and some that it must leave alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.conformance.generators.cases import COMPLEX, F8, FLOATS, INTEGERS, SIGNED, UNSIGNED

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
