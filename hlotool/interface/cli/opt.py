"""`hlotool opt`: run passes on a program, and convert between text and proto."""

from __future__ import annotations

import argparse
import sys

from hlotool.errors import UsageError
from hlotool.interface.cli.calling import called, finish, with_configuration
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import emit_bytes, emit_json


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.interface.api.opt import list_passes, opt

    if arguments.list_passes:
        return finish(list_passes().record, arguments)
    if not arguments.path:
        raise UsageError("which program? hlotool opt FILE, or hlotool opt --list-passes")
    if arguments.json and arguments.emit == "proto" and not arguments.output:
        raise UsageError("--json and --emit proto both write to stdout; say --output FILE")
    found = called(opt, arguments)
    if arguments.json:
        emit_json(with_configuration(found.record, arguments))
    elif not arguments.output:
        emit_bytes(found.pieces)
    if arguments.verbose and not arguments.json:
        from hlotool.interface.report.console import console_for, render
        from hlotool.interface.report.listings import pass_table

        sys.stderr.write(render(console_for(sys.stderr), pass_table(found.rows)))
    return int(found.exit_code)
