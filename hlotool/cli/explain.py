"""`hlotool explain`: what an error message of XLA or a frontend means, and what to do."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.cli.options import add_output_options
from hlotool.cli.output import emit_report, finish
from hlotool.errors import DumpError, ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.explain.records import MatchRecord

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
    from hlotool.report.records import ExplainRecord

    matches = _everything() if arguments.list else _matches(arguments)
    code = ExitCode.AGREE if matches else ExitCode.NOTHING_COMPARED
    record = ExplainRecord(matches=matches, exit_code=code)
    if arguments.list and not arguments.json:
        from hlotool.report.explain import Catalogue

        emit_report(Catalogue(record))
        return code
    return finish(record, arguments)


def _everything() -> list[MatchRecord]:
    from hlotool.explain.entries import catalogue
    from hlotool.explain.records import entry_record

    return [entry_record(entry) for entry in catalogue()]


def _matches(arguments: argparse.Namespace) -> list[MatchRecord]:
    from hlotool.explain.entries import find_entry
    from hlotool.explain.records import entry_record, explain_text

    dump = None
    if arguments.dump:
        from hlotool.dump.directory import open_dump

        dump = open_dump(arguments.dump)
    text = _text(arguments.text)
    entry = find_entry(text)
    return [entry_record(entry)] if entry else explain_text(text, dump)


def _text(words: list[str]) -> str:
    """What to read: words of the command line, a file that they name, or standard input.

    Raises:
        UsageError: there is nothing to read.
        DumpError: the file cannot be read.
    """
    if not words and sys.stdin.isatty():
        raise UsageError("nothing to explain: give a message, a log file, or - to read standard input")
    if words in ([], ["-"]):
        return sys.stdin.buffer.read().decode(errors="backslashreplace")
    text = " ".join(words)
    try:
        if len(words) == 1 and "\n" not in text and Path(text).is_file():
            return Path(text).read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise DumpError(f"{text}: {error.strerror}") from error
    return text
