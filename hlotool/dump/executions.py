"""Captured executions of a dump, decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.dump.elided import elided_constants
from hlotool.dump.names import Format, Kind
from hlotool.dump.records import Capture
from hlotool.errors import ElidedConstant
from hlotool.ir.module import Module

if TYPE_CHECKING:
    from hlotool.parse.proto.snapshot import Execution


def captured_program(capture: Capture) -> Module:
    """The program inside a captured execution.

    Raises:
        ElidedConstant: XLA had dropped a constant before it wrote the execution.
    """
    module = read_execution(capture).module
    if missing := elided_constants(module):
        raise ElidedConstant(missing[0].name, module.location(missing[0]))
    return module


def read_execution(capture: Capture) -> Execution:
    """Decode a captured execution; raises ProtoError."""
    from hlotool.parse.proto.snapshot import (
        parse_snapshot,
        parse_unoptimized_snapshot,
        parse_unoptimized_snapshot_text,
    )

    path = str(capture.source)
    if capture.kind is Kind.SNAPSHOT:
        return parse_snapshot(capture.source.read_bytes(), path)
    if capture.format is Format.TEXT_PROTO:
        return parse_unoptimized_snapshot_text(capture.source.read_text(), path)
    return parse_unoptimized_snapshot(capture.source.read_bytes(), path)
