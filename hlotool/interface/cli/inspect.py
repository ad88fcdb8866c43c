"""`hlotool inspect`: what it does besides: draw programs."""

from __future__ import annotations

import argparse

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.cli import calling
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import emit_bytes


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if not arguments.emit:
        return calling.execute(command, arguments)
    if other := [name for name in ("json", "memory", "kernels") if getattr(arguments, name)]:
        raise UsageError(f"--emit prints graphs in the place of everything else: without --{other[0]}")
    from hlotool.interface.api.inspect import draw

    pieces = draw(arguments.paths, arguments.emit, only=arguments.only, stages=arguments.stages)
    emit_bytes(piece.encode("utf-8", "backslashreplace") for piece in pieces)
    return ExitCode.AGREE
