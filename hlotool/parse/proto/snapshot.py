"""Captured executions: a program with the arguments of one run, and perhaps its result.

- HloSnapshot (`--xla_dump_hlo_snapshots`): program, arguments, result of one device.
- HloUnoptimizedSnapshot (`--xla_dump_hlo_unoptimized_snapshots`): the program as the frontend gave it and the
  arguments of every partition; as a proto, as text, or, with `--xla_dump_hlo_as_proto`, as a proto that only
  says how long each argument is, followed by the arguments themselves (a proto cannot exceed 2 GiB).

XLA: hlo.proto, dump.cc (DumpHloUnoptimizedSnapshotIfEnabled).
"""

from __future__ import annotations

from dataclasses import dataclass

from hlotool.errors import ProtoError
from hlotool.ir.literal import Literal
from hlotool.ir.module import Module
from hlotool.ir.types import TupleShape
from hlotool.parse.proto.literals import deserialize_literal, read_literal
from hlotool.parse.proto.module import read_module
from hlotool.parse.proto.schema import Message, decode, decode_text
from hlotool.parse.proto.wire import varint


@dataclass(frozen=True, slots=True)
class Execution:
    """One captured execution.

    Attributes:
        module: the program; its constants may be elided, where XLA had dropped them to save memory.
        arguments: of each device (partition) that took part, one literal per parameter.
        result: None where it was not captured.
        platform: name of the platform that ran it, empty where that was not captured.
    """

    module: Module
    arguments: tuple[tuple[Literal, ...], ...]
    result: Literal | None = None
    platform: str = ""


def parse_snapshot(content: bytes, path: str | None = None) -> Execution:
    """Decode an HloSnapshot.

    Raises:
        ProtoError: it is none, is truncated, or its literals do not fit their shapes.
    """
    origin = path or "<proto>"
    proto = decode("HloSnapshot", content, origin)
    if not proto.hlo.hlo_module.computations:
        raise ProtoError(f"{origin}: a proto, but not a snapshot with a program")
    module = read_module(proto.hlo.hlo_module, path)
    result = _literal(proto.result, origin) if proto.HasField("result") else None
    if result is not None and result.shape == TupleShape(()) != module.entry.root.shape:
        # XLA writes an empty tuple where it gave up copying the result, as it does for donated arguments.
        result = None
    return Execution(
        module,
        (tuple(_literal(argument, origin) for argument in proto.arguments),),
        result,
        proto.execution_platform,
    )


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
    return Execution(read_module(proto.hlo_module, path), tuple(arguments))


def _parse_large(content: bytes, path: str | None, origin: str) -> Execution:
    """The length of a snapshot without arguments, that snapshot, then the serialized arguments."""
    try:
        start, length = varint(content)
    except ValueError:
        start, length = 0, len(content) + 1
    if start + length > len(content):
        raise ProtoError(f"{origin}: not a complete HloUnoptimizedSnapshot: truncated, or something else")
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
    return Execution(execution.module, tuple(partitions))


def _literal(stored: Message | bytes, origin: str) -> Literal:
    """A literal as a proto or serialized; errors name the file."""
    try:
        return deserialize_literal(stored) if isinstance(stored, bytes) else read_literal(stored)
    except ProtoError as error:
        raise ProtoError(f"{origin}: {error}") from error
