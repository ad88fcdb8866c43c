"""Asynchronous operations written short: `custom-call-start(…)` for an async-start around one custom-call.

XLA: hlo_parser.cc (ParseOpcode, kAsyncStart), async_ops.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.ir.attribute_kinds import COMMON_ATTRIBUTES
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import Shape, TupleShape
from hlotool.ir.walk import async_start
from hlotool.names import did_you_mean
from hlotool.parse.text.binding import BoundAttributes, bind
from hlotool.parse.text.scope import Draft, Scope
from hlotool.parse.text.syntax import AttributeSyntax, CallSyntax, TextError

if TYPE_CHECKING:
    from hlotool.parse.text.builder import Builder

_SUFFIXES = {"-start": "async-start", "-update": "async-update", "-done": "async-done"}
#: Attributes of the asynchronous instruction that the wrapped one does not share.
_NOT_SHARED = ("async_execution_thread", "sharding")


def opcode_of(call: CallSyntax) -> tuple[str, str | None]:
    """The opcode, and the one that `custom-call-start` and its like wrap."""
    if call.opcode in OPCODES:
        return call.opcode, None
    for suffix, opcode in _SUFFIXES.items():
        wrapped = call.opcode.removesuffix(suffix)
        if wrapped == call.opcode:
            continue
        if wrapped in OPCODES and wrapped not in ("constant", "parameter"):
            return opcode, wrapped
        raise TextError(f"no opcode is called {call.opcode}, and {wrapped} cannot be run so", call.position)
    meant = did_you_mean(call.opcode, OPCODES)
    raise TextError(f"no opcode is called {call.opcode}{meant}", call.position)


def wrapped_instruction(
    builder: Builder, draft: Draft, wrapped: str, attributes: Sequence[AttributeSyntax]
) -> Instruction:
    """Add the instruction of `draft` and, where the operation starts, a computation of one `wrapped`."""
    position = draft.call.position
    if draft.opcode != "async-start":
        instruction = builder.new(draft, bind(draft.opcode, attributes, position, builder.strict))
        _check_opcode(instruction, wrapped)
        return instruction
    if not (isinstance(draft.shape, TupleShape) and len(draft.shape.elements) > 1):
        raise TextError("the shape is ((operands), result, …)")
    inner = bind(wrapped, attributes, position, builder.strict, also=("async_execution_thread",))
    computation = _computation(builder, draft, wrapped, draft.shape.elements[1], inner)
    builder.add_anonymous(computation)
    own: dict[str, AttributeValue] = {"calls": computation}
    kept = {*COMMON_ATTRIBUTES, "async_execution_thread"}
    own |= {key: value for key, value in inner.values.items() if key in kept}
    return builder.new(draft, BoundAttributes(own, (), inner.predecessors, inner.metadata))


def _computation(
    builder: Builder, draft: Draft, opcode: str, shape: Shape, bound: BoundAttributes
) -> Computation:
    """Parameters like the operands, and one instruction on them."""
    call, scope = draft.call, Scope()
    line = call.line + builder.line_offset
    for number, operand in enumerate(draft.operands):
        name = f"async_param.{number}" if number else "async_param"
        parameter = Instruction(name, "parameter", operand.shape, parameter_number=number, line=line)
        scope.add_parameter(parameter, call.position)
    values = {key: value for key, value in bound.values.items() if key not in _NOT_SHARED}
    inner = BoundAttributes(values, bound.pending, None, bound.metadata)
    inner_call = CallSyntax(opcode, call.position, call.line)
    builder.new(Draft("async_op", opcode, shape, tuple(scope.instructions), inner_call, scope), inner)
    computation = scope.finish("async_wrapped", line, call.position)
    computation.execution_thread = str(bound.values.get("async_execution_thread", "main"))
    return computation


def _check_opcode(instruction: Instruction, wrapped: str) -> None:
    start = async_start(instruction)
    opcode = next(start.called).root.opcode
    if opcode != wrapped:
        raise TextError(f"{start.name} runs {opcode}, not {wrapped}")
