"""Parses the command line, calls one command, turns its end into an exit code.

Nothing heavy is imported here: `--help` and `--version` must answer at once, and a worker process can only
start early when little stands before it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Protocol

from hlotool._version import __version__
from hlotool.cli import (
    backends,
    baseline,
    bisect,
    cache,
    check,
    conformance,
    diff,
    exec,
    explain,
    extract,
    fuzz,
    inspect,
    merge,
    mutate,
    opt,
    prove,
    reduce,
    repro,
    run,
)
from hlotool.cli.completion import SHELLS, PrintCompletion
from hlotool.cli.configured import tell_configuration, with_configuration
from hlotool.cli.interrupts import was_interrupted
from hlotool.cli.options import add_configuration_options, exit_code_text, join_signed_values
from hlotool.cli.output import emit_error, tell
from hlotool.cli.parser import Parser, add_opposites
from hlotool.cli.reports import refuse_impossible_reports
from hlotool.cli.streams import tolerate_narrow_encodings
from hlotool.errors import ExitCode, HlotoolError

_DESCRIPTION = """\
Interpret, replay and check XLA HLO dumps: find the program that computes something wrong.

A dump is the folder that XLA writes when it is told to:

  XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text" python train.py
  hlotool run DIR
"""


class Command(Protocol):
    """What a module of this folder says of its command.

    Attributes:
        USAGE: the command's name and what follows it.
        ABOUT: one line for the list of commands.
        DESCRIPTION: the first paragraph of its help.
        EXAMPLES: below the options, before the exit codes; may be empty.
    """

    USAGE: str
    ABOUT: str
    DESCRIPTION: str
    EXAMPLES: str

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what the command takes to its parser."""

    def execute(self, arguments: argparse.Namespace) -> int:
        """Run the command; returns the exit code."""


_COMMANDS: tuple[Command, ...] = (
    run,
    exec,
    bisect,
    reduce,
    extract,
    repro,
    check,
    diff,
    prove,
    baseline,
    mutate,
    conformance,
    fuzz,
    inspect,
    opt,
    explain,
    backends,
    cache,
    merge,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; returns the exit code."""
    tolerate_narrow_encodings()
    try:
        arguments = _without_secrets(join_signed_values(sys.argv[1:] if argv is None else argv))
    except HlotoolError as error:
        tell(f"hlotool: error: {error}")
        return error.exit_code
    parser = build_parser(pretty=_is_help(arguments) and sys.stdout.isatty())
    try:
        options = parser.parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.USAGE
    try:
        options = with_configuration(options, arguments, build_parser)
    except HlotoolError as error:
        return _report(error, options)
    return _execute(options)


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments, passwords and signatures taken out of URLs before anything can quote them.

    What follows `--` is the command of somebody else.
    """
    if not any("://" in argument for argument in arguments):
        return list(arguments)
    own = arguments.index("--") if "--" in arguments else len(arguments)
    return [*map(_without_secret, arguments[:own]), *arguments[own:]]


def _without_secret(argument: str) -> str:
    from hlotool.stores.masks import masked

    name, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{name}{equals}{masked(value)}"


def build_parser(pretty: bool = False) -> Parser:
    """The whole command line; `pretty` renders help with colours, which costs an import of rich."""
    formatter = _pretty_formatter() if pretty else argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog="hlotool", description=_DESCRIPTION, epilog=exit_code_text(), formatter_class=formatter
    )
    parser.add_argument("--version", action="version", version=f"hlotool {__version__}")
    parser.add_argument(
        "--print-completion",
        choices=tuple(SHELLS),
        action=PrintCompletion,
        help="print what lets this shell complete commands, options and files",
    )
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command_name", required=True, prog="hlotool"
    )
    for command in _COMMANDS:
        parts = (command.EXAMPLES, exit_code_text())
        own = commands.add_parser(
            command.USAGE.split()[0],
            help=command.ABOUT,
            description=command.DESCRIPTION,
            epilog="\n".join(filter(None, parts)),
            formatter_class=formatter,
            usage=f"hlotool {command.USAGE}",
        )
        own.set_defaults(command=command.execute)
        command.add_options(own)
        add_configuration_options(own)
        add_opposites(own)
    return parser


def _execute(options: argparse.Namespace) -> int:
    try:
        _start_log(getattr(options, "log", None))
        tell_configuration(options)
        refuse_impossible_reports(options)
        code: int = options.command(options)
        return code
    except HlotoolError as error:
        return _report(error, options)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except MemoryError as error:
        tell(f"hlotool: error: out of memory: {error}" if str(error) else "hlotool: error: out of memory")
        return ExitCode.BACKEND_FAILED
    except Exception as error:
        if was_interrupted():
            # C code turns an interrupt into errors of its own: NumPy's import into an ImportError.
            return ExitCode.INTERRUPTED
        if options.debug:
            raise
        tell(f"hlotool: internal error: {type(error).__name__}: {error}")
        print("next: repeat the command with --debug and report the traceback", file=sys.stderr)
        return ExitCode.BACKEND_FAILED


def _start_log(level: str | None) -> None:
    if level:
        from hlotool.logs import start_log

        start_log(level)


def _report(error: HlotoolError, options: argparse.Namespace) -> int:
    """One clear line on stderr; with --debug the traceback above it."""
    if options.debug:
        import traceback

        traceback.print_exception(error)
    from hlotool.findings.errors import error_record

    emit_error(error_record(error))
    return error.exit_code


def _is_help(arguments: Sequence[str]) -> bool:
    return "-h" in arguments or "--help" in arguments


def _pretty_formatter() -> type[argparse.HelpFormatter]:
    from rich_argparse import RawDescriptionRichHelpFormatter

    class Formatter(RawDescriptionRichHelpFormatter):
        # Brackets in our texts are brackets, and titles are written as they should read.
        help_markup = False
        text_markup = False
        group_name_formatter = str

    return Formatter
