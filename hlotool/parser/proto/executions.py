"""Captured executions, with the arguments of one run and perhaps its result; files of arguments.

- HloSnapshot (`--xla_dump_hlo_snapshots`): program, arguments, result of one device.
- HloUnoptimizedSnapshot (`--xla_dump_hlo_unoptimized_snapshots`): the program as the frontend gave it and
  the arguments of every partition; as a proto, as text, or, with `--xla_dump_hlo_as_proto`, as a proto that
  only says how long each argument is, followed by the arguments themselves (a proto cannot exceed 2 GiB).
- Arguments and results as XLA's own tool takes and writes them: `run_hlo_module
  --input_literals_file=FILE`.

XLA: hlo.proto, dump.cc (DumpHloUnoptimizedSnapshotIfEnabled), xla/tools/run_hlo_module.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hlotool.errors import ProtoError
from hlotool.ir.arrays import Literal
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.parser.proto.module import read_module
from hlotool.parser.proto.schema import Message, decode, decode_text, message_class, varint
from hlotool.parser.proto.values import deserialize_literal, read_literal, write_literal


@dataclass(frozen=True)
class Execution:
    """One captured execution.

    Attributes:
        program: an HloModuleProto, serialized: no part of the message that holds all values.
        path: of the file.
        arguments: of each device (partition) that took part, one literal per parameter.
        result: None where it was not captured.
        platform: name of the platform that ran it, empty where that was not captured.
    """

    program: bytes
    path: str | None
    arguments: tuple[tuple[Literal, ...], ...]
    result: Literal | None = None
    platform: str = ""

    @cached_property
    def module(self) -> Module:
        """The program; its constants may be elided, where XLA had dropped them to save memory.

        Most of the time it is known from elsewhere, and not read here.

        Raises:
            ProtoError: it cannot be read.
        """
        return read_module(decode("HloModuleProto", self.program, self.path or "<proto>"), self.path)


def parse_snapshot(content: bytes, path: str | None = None) -> Execution:
    """Decode an HloSnapshot.

    Raises:
        ProtoError: it is none, is truncated, or its literals do not fit their shapes.
    """
    origin = path or "<proto>"
    proto = decode("HloSnapshot", content, origin)
    if not proto.hlo.hlo_module.computations:
        raise ProtoError(f"{origin}: a proto, but not a snapshot with a program")
    execution = Execution(
        proto.hlo.hlo_module.SerializeToString(),
        path,
        (tuple(_literal(argument, origin) for argument in proto.arguments),),
        _literal(proto.result, origin) if proto.HasField("result") else None,
        proto.execution_platform,
    )
    if execution.result is None or execution.result.shape != TupleShape(()):
        return execution
    # XLA writes an empty tuple where it gave up copying the result, as it does for donated arguments.
    is_lost = execution.module.entry.root.shape != TupleShape(())
    return replace(execution, result=None) if is_lost else execution


def parse_unoptimized_snapshot(content: bytes, path: str | None = None) -> Execution:
    """Decode an HloUnoptimizedSnapshot in either of its binary forms; raises ProtoError."""
    origin = path or "<proto>"
    try:
        proto = decode("HloUnoptimizedSnapshot", content, origin)
    except ProtoError:
        return _parse_large(content, path, origin)
    if not proto.hlo_module.computations:
        return _parse_large(content, path, origin)
    return _unoptimized(proto, path, origin)


def parse_unoptimized_snapshot_text(text: str, path: str | None = None) -> Execution:
    """Decode the text form of an HloUnoptimizedSnapshot; raises ProtoError."""
    origin = path or "<proto>"
    return _unoptimized(decode_text("HloUnoptimizedSnapshot", text, origin), path, origin)


def _unoptimized(proto: Message, path: str | None, origin: str) -> Execution:
    if not proto.hlo_module.computations:
        raise ProtoError(f"{origin}: a snapshot without a program")
    arguments = (tuple(_literal(a, origin) for a in partition.arguments) for partition in proto.partitions)
    return Execution(proto.hlo_module.SerializeToString(), path, tuple(arguments))


def _parse_large(content: bytes, path: str | None, origin: str) -> Execution:
    """The length of a snapshot without arguments, that snapshot, then the serialized arguments."""
    try:
        start, length = varint(content)
    except ValueError:
        start, length = 0, len(content) + 1
    if start + length > len(content):
        raise ProtoError(f"{origin}: not a complete HloUnoptimizedSnapshot: truncated, or another format")
    proto = decode("HloUnoptimizedSnapshot", content[start : start + length], origin)
    execution = _unoptimized(proto, path, origin)
    at = start + length
    partitions: list[tuple[Literal, ...]] = []
    for partition in proto.partitions:
        arguments: list[Literal] = []
        for descriptor in partition.arguments_descriptors:
            serialized = content[at : at + descriptor.argument_size_bytes]
            arguments.append(_literal(serialized, origin))
            at += descriptor.argument_size_bytes
        partitions.append(tuple(arguments))
    return replace(execution, arguments=tuple(partitions))


def _literal(stored: Message | bytes, origin: str) -> Literal:
    """A literal as a proto or serialized; errors name the file."""
    try:
        return deserialize_literal(stored) if isinstance(stored, bytes) else read_literal(stored)
    except ProtoError as error:
        raise ProtoError(f"{origin}: {error}") from error


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
