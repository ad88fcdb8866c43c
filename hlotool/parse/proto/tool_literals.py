"""Arguments and results as XLA's own tool takes and writes them: `run_hlo_module --input_literals_file=FILE`.

XLA: xla/tools/run_hlo_module.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.errors import ProtoError
from hlotool.ir.literal import Literal
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.parse.proto.literals import read_literal, write_literal
from hlotool.parse.proto.schema import Message, decode, decode_text, message_class


@dataclass(frozen=True, slots=True)
class ToolLiterals:
    """One execution.

    Attributes:
        arguments: one per parameter.
        result: of the tested side; None where that is not known.
        reference: the result of the reference; None where there is none.
    """

    arguments: tuple[Literal, ...]
    result: Literal | None = None
    reference: Literal | None = None


def tool_inputs(module: Module, arguments: Sequence[Any]) -> bytes:
    """A serialized RunHloModuleLiterals of one iteration.

    Args:
        module: the program.
        arguments: one value per parameter of its entry, tuples for tuples.
    """
    parameters = zip(module.entry.parameters, arguments)
    literals = tuple(as_literal(parameter.shape, value) for parameter, value in parameters)
    return write_executions([ToolLiterals(literals)])


def as_literal(shape: Shape, value: Any) -> Literal:
    """A runtime value as a literal of its shape."""
    if isinstance(shape, TupleShape):
        return Literal(shape, tuple(map(as_literal, shape.elements, value)))
    return Literal(shape, np.asarray(value, order="C") if isinstance(shape, ArrayShape) else None)


def write_executions(executions: Sequence[ToolLiterals]) -> bytes:
    """A serialized RunHloModuleLiterals."""
    message = message_class("RunHloModuleLiterals")()
    for execution in executions:
        iteration = message.iterations.add()
        for argument in execution.arguments:
            write_literal(iteration.arguments.add(), argument)
        if execution.result is not None:
            write_literal(iteration.result, execution.result)
        if execution.reference is not None:
            write_literal(iteration.reference_result, execution.reference)
    return bytes(message.SerializeToString(deterministic=True))


def read_executions(content: bytes, origin: str) -> list[ToolLiterals]:
    """Executions in a RunHloModuleLiterals, or the one in a RunHloModuleIterationLiterals; binary or text.

    The two messages have no field of one type and number in common, so that one is never taken for the other.

    Raises:
        ProtoError: it is neither, or a literal does not fit its shape.
    """
    return [_execution(iteration) for iteration in _iterations(content, origin)]


def _iterations(content: bytes, origin: str) -> Sequence[Message]:
    """Every iteration in a file of either message, in either form."""
    for name in ("RunHloModuleLiterals", "RunHloModuleIterationLiterals"):
        for read in _readings(name, content, origin):
            if name == "RunHloModuleLiterals" and read.iterations:
                return list(read.iterations)
            if name == "RunHloModuleIterationLiterals" and (read.arguments or read.HasField("result")):
                return [read]
    raise ProtoError(f"{origin}: holds no arguments: not a RunHloModuleLiterals, or an empty one")


def _readings(name: str, content: bytes, origin: str) -> Iterator[Message]:
    """The content as a binary message and as a text, where it is either."""
    with suppress(ProtoError):
        yield decode(name, content, origin)
    with suppress(ProtoError, UnicodeDecodeError):
        yield decode_text(name, content.decode(), origin)


def _execution(iteration: Message) -> ToolLiterals:
    return ToolLiterals(
        tuple(read_literal(argument) for argument in iteration.arguments),
        read_literal(iteration.result) if iteration.HasField("result") else None,
        read_literal(iteration.reference_result) if iteration.HasField("reference_result") else None,
    )
