"""When an asynchronous instruction is written `custom-call-start(…)` instead of `async-start(…), calls=%c`.

The short form says nothing of the wrapped computation, so it stands only for one that the text implies: the
parameters in order and one instruction on them.
XLA: async_ops.md, HloComputation::CanExpandIntoSingleInstruction. XLA shortens even where that reorders
operands or reads back as another opcode; here the long form stays then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import COMMON_ATTRIBUTES, OPCODES
from hlotool.ir.printing.defaults import printed_attributes
from hlotool.ir.walk import async_start

_SUFFIXES = {"async-start": "-start", "async-update": "-update", "async-done": "-done"}


@dataclass(frozen=True, slots=True)
class AsyncSugar:
    """The short form of one instruction.

    Attributes:
        wrapped: the computation that it leaves unsaid.
        opcode: such as `custom-call-start`.
        shown: attributes of the wrapped instruction that its text shows.
    """

    wrapped: Computation
    opcode: str
    shown: Mapping[str, AttributeValue]


def sugar_of(instruction: Instruction) -> AsyncSugar | None:
    """The short form of `instruction`, or None when it has none or would lose something."""
    suffix, start = _SUFFIXES.get(instruction.opcode), async_start(instruction)
    if suffix is None or start.opcode != "async-start":
        return None
    wrapped = start.attribute("calls", Computation, None)
    if wrapped is None or not _is_implied(wrapped, start):
        return None
    inner = wrapped.root
    if instruction is not start:
        return AsyncSugar(wrapped, inner.opcode + suffix, {})
    shown = {k: v for k, v in printed_attributes(inner).items() if k not in COMMON_ATTRIBUTES}
    return AsyncSugar(wrapped, inner.opcode + suffix, shown)


def _is_implied(wrapped: Computation, start: Instruction) -> bool:
    inner = wrapped.root
    ambiguous = any(f"{inner.opcode}{suffix}" in OPCODES for suffix in _SUFFIXES.values())
    thread = start.text("async_execution_thread", "main")
    return (
        not ambiguous
        and all(i is inner or i.opcode == "parameter" for i in wrapped.instructions)
        and inner.operands == tuple(wrapped.parameters)
        and inner.opcode != "parameter"
        and wrapped.execution_thread == thread
        and inner.metadata in (None, start.metadata)
        and all(v == start.attributes.get(k) for k, v in inner.attributes.items() if k in COMMON_ATTRIBUTES)
    )
