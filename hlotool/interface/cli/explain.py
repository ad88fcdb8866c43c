"""`hlotool explain`: what a word of a report, or a message of XLA or a frontend, means, and what to do."""

from __future__ import annotations

import argparse
import sys

from hlotool.interface.cli.calling import called, finish
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import emit_report


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.interface.api.inspect import explain, list_messages

    text = "" if arguments.list else _text(arguments.text)
    if text or arguments.text:
        return finish(called(explain, arguments, text=text).record, arguments)
    found = list_messages()
    if arguments.json:
        return finish(found.record, arguments)
    from hlotool.interface.report.listings import Catalogue, Topics

    emit_report(Catalogue(found.record) if arguments.list else Topics(found.record))
    return found.exit_code


def _text(words: list[str]) -> str:
    """What to explain: words of the command line, which may name a file, or standard input; may be empty."""
    if not words and sys.stdin.isatty():
        return ""
    if words in ([], ["-"]):
        return sys.stdin.buffer.read().decode(errors="backslashreplace")
    return " ".join(words)
