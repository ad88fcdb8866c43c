"""`hlotool reduce` and `hlotool extract`: where the program that is made goes if nobody says."""

from __future__ import annotations

import argparse

from hlotool.cli import calling
from hlotool.cli.commands import Command
from hlotool.cli.finishing import finish
from hlotool.cli.output import tell


def reduce(command: Command, arguments: argparse.Namespace) -> int:
    """Reduce a program; returns the exit code."""
    from hlotool.search.reduction.files import default_output

    arguments.output = arguments.output or default_output(arguments.path)
    return calling.execute(command, arguments)


def extract(command: Command, arguments: argparse.Namespace) -> int:
    """Cut instructions out; returns the exit code."""
    from hlotool.api.extract import extract
    from hlotool.search.reduction.files import default_output

    arguments.output = arguments.output or default_output(arguments.path, "extracted")
    record = calling.called(extract, arguments).record
    if not arguments.json:
        of = f", inputs {record.inputs.description}" if record.inputs is not None else ""
        tell(f"{record.output}: {record.size} instructions{of}")
        if record.calls > 1:
            tell(f"executed {record.calls} times; values of number {arguments.call}")
    return finish(record, arguments)
