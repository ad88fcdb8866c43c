"""`hlotool explain`: what an error message of XLA or a frontend means, and what to do."""

from __future__ import annotations

import argparse
import sys

from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.cli.options import add_output_options
from hlotool.cli.output import emit_report
from hlotool.errors import UsageError

USAGE = "explain [options] [TEXT | FILE | -]"
ABOUT = "say what an error message means, and what to do"
DESCRIPTION = """\
Recognise error messages of XLA, JAX, TensorFlow and PyTorch/XLA in a text or log file: the cause, the
remedy, the page of the documentation, and with --dump the instruction that a message names.
"""
EXAMPLES = """\
examples:
  python train.py 2>&1 | hlotool explain -        everything known in a log
  hlotool explain train.log --dump DIR            with the instructions of a dump
  hlotool explain E1200                           one error code
  hlotool explain --list                          the whole catalogue
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="a message, an error code, a file, or - for stdin"
    )
    parser.add_argument("--dump", metavar="DIR", help="dump of the program that the messages are about")
    parser.add_argument("--list", action="store_true", help="list all messages that are known")
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.explain import explain, list_messages

    if not arguments.list:
        return finish(explain(_text(arguments.text), **keywords(explain, arguments)).record, arguments)
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
