"""`hlotool explain`: what an error message of XLA or a frontend means, and what to do."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotool.cli.options import add_output_options, exit_code_text
from hlotool.errors import DumpError, ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.explain.records import MatchRecord

_DESCRIPTION = """\
Recognise error messages of XLA, JAX, TensorFlow and PyTorch/XLA in a text or log file: the cause, the
remedy, the page of the documentation, and with --dump the instruction that a message names.
"""

_EXAMPLES = """\
examples:
  python train.py 2>&1 | hlotool explain -        everything known in a log
  hlotool explain train.log --dump DIR            with the instructions of a dump
  hlotool explain E1200                           one error code
  hlotool explain --list                          the whole catalogue
"""


def add_parser(commands: Any, formatter: type[argparse.HelpFormatter]) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="say what an error message means, and what to do",
        description=_DESCRIPTION,
        epilog=f"{_EXAMPLES}\n{exit_code_text()}",
        formatter_class=formatter,
        usage="hlotool explain [options] [TEXT | FILE | -]",
    )
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="a message, an error code, a file, or - for stdin"
    )
    parser.add_argument("--dump", metavar="DIR", help="dump of the program that the messages are about")
    parser.add_argument("--list", action="store_true", help="list all messages that are known")
    add_output_options(parser)
    parser.set_defaults(command=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.cli.output import emit, emit_bytes
    from hlotool.report.records import ExplainRecord

    matches = _everything() if arguments.list else _matches(arguments)
    code = ExitCode.AGREE if matches else ExitCode.NOTHING_COMPARED
    if arguments.json:
        import msgspec

        emit_bytes(msgspec.json.encode(ExplainRecord(matches=matches, exit_code=code)) + b"\n")
        return code
    from hlotool.report.console import console_for, render
    from hlotool.report.explain import Catalogue, Explanation

    report = Catalogue(matches) if arguments.list else Explanation(matches)
    emit(render(console_for(sys.stdout), report))
    return code


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
