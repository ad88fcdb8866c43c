"""`hlotool explain`: what an error message of XLA or a frontend means, and what to do."""

from __future__ import annotations

import argparse
import sys

from hlotool.cli.calling import called
from hlotool.cli.commands import Command
from hlotool.cli.finishing import finish
from hlotool.cli.output import emit_report
from hlotool.errors import UsageError


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.explain import explain, list_messages

    if not arguments.list:
        return finish(called(explain, arguments, text=_text(arguments.text)).record, arguments)
    found = list_messages()
    if arguments.json:
        return finish(found.record, arguments)
    from hlotool.report.explain import Catalogue

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
