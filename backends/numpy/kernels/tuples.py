"""Tuples, tokens, and operations that only order or annotate."""

from __future__ import annotations

from typing import Any

from hlotool.backends.base import TOKEN, Token
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.module import Instruction


@lowers("tuple")
def make_tuple(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands as a tuple. XLA: operation_semantics.md#tuple."""
    return lambda *values: values


@lowers("get-tuple-element")
def get_tuple_element(instruction: Instruction, lowering: Lowering) -> Kernel:
    """One element of a tuple. XLA: operation_semantics.md#gettupleelement."""
    index = instruction.integer("index")
    return lambda values: values[index]


@lowers("after-all")
def after_all(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token that stands behind all operands. XLA: operation_semantics.md#afterall."""
    return _token


@lowers("add-dependency", "domain", "opt-barrier")
def identity(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The first operand. XLA: hlo_opcode.h, operation_semantics.md#optimizationbarrier."""
    return _first


def _token(*_: Any) -> Token:
    return TOKEN


def _first(value: Any, *_: Any) -> Any:
    return value
