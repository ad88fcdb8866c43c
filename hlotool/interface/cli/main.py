"""Parses the command line, calls one command, turns its end into an exit code.

Nothing heavy is imported here, no command but the one that is called: `--help` and `--version` must answer
at once, and a worker process can only start early when little stands before it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hlotool._version import __version__
from hlotool.errors import ExitCode, HlotoolError
from hlotool.interface.cli.calling import refuse_impossible_reports
from hlotool.interface.cli.commands import COMMANDS
from hlotool.interface.cli.configured import tell_configuration, with_configuration
from hlotool.interface.cli.parser import (
    Configured,
    Output,
    Parser,
    Reports,
    add_arguments,
    add_opposites,
    join_signed_values,
)
from hlotool.interface.cli.process import (
    emit_error,
    exit_code_text,
    tell,
    tolerate_narrow_encodings,
    was_interrupted,
)
from hlotool.interface.cli.reference import SHELLS, PrintCompletion

_DESCRIPTION = """\
Interpret, replay and check XLA HLO dumps: find the program that computes something wrong.

A dump is the folder that XLA writes when asked to:

  XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text" python train.py
  hlotool run DIR
"""

_EPILOG = f"""\
{exit_code_text()}

what a word of a report means: hlotool explain wrong (any verdict, rule, error code or message)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; returns the exit code."""
    tolerate_narrow_encodings()
    try:
        arguments = _without_secrets(join_signed_values(sys.argv[1:] if argv is None else argv))
    except HlotoolError as error:
        tell(f"hlotool: error: {error}")
        return error.exit_code
    if not arguments:
        build_parser(declared=_declared(arguments)).print_help(sys.stderr)
        return ExitCode.USAGE
    parser = build_parser(_is_help(arguments) and sys.stdout.isatty(), _declared(arguments))
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
    from hlotool.system.urls import masked

    name, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{name}{equals}{masked(value)}"


def _declared(arguments: Sequence[str]) -> Sequence[str] | None:
    """The command whose options a command line needs; None where it may need all."""
    first = arguments[0] if arguments else ""
    return None if first.startswith("--print") else [first]


def build_parser(pretty: bool = False, declared: Sequence[str] | None = None) -> Parser:
    """The whole command line.

    Args:
        pretty: render help with colours, which costs an import of rich.
        declared: names of the commands that get their options; None for all.
    """
    formatter = _pretty_formatter() if pretty else argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="hlotool", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=formatter)
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
    for command in COMMANDS:
        parts = (command.examples, _EPILOG)
        own = commands.add_parser(
            command.name,
            help=command.about,
            description=command.description,
            epilog="\n".join(filter(None, parts)),
            formatter_class=formatter,
            usage=f"hlotool {command.usage}",
        )
        own.set_defaults(command=command)
        if declared is None or command.name in declared:
            reports = [Reports] if command.reports else []
            add_arguments(own, command.arguments, *reports, Output, Configured)
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
        from hlotool.system.logs import start_log

        start_log(level)


def _report(error: HlotoolError, options: argparse.Namespace) -> int:
    """One clear line on stderr; with --debug the traceback above it."""
    if options.debug:
        import traceback

        traceback.print_exception(error)
    from hlotool.judge.failures import error_record

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
