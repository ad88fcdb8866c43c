"""`hlotool explain`: what an error message of XLA or a frontend means, and what to do."""

from __future__ import annotations

import argparse
import sys

from hlotool.errors import UsageError
from hlotool.interface.cli.calling import called, finish
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import emit_report


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.interface.api.inspect import explain, list_messages

    if not arguments.list:
        return finish(called(explain, arguments, text=_text(arguments.text)).record, arguments)
    found = list_messages()
    if arguments.json:
        return finish(found.record, arguments)
    from hlotool.interface.report.listings import Catalogue

    emit_report(Catalogue(found.record))
    return found.exit_code


def _text(words: list[str]) -> str:
    """What to explain: words of the command line, which may name a file, or standard input.

    Raises:
        UsageError: there is nothing to read.
    """
    if not words and sys.stdin.isatty():
        raise UsageError("nothing to explain: give a message, a log file, or - to read standard input")
    if words in ([], ["-"]):
        return sys.stdin.buffer.read().decode(errors="backslashreplace")
    return " ".join(words)
