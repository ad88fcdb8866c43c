"""`hlotool repro verify`: does a repro bundle still fail, and in the same way?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from hlotool.cli.options import add_output_options, exit_code_text, seconds

_DESCRIPTION = """\
Run repro bundles again. The exit code is 1 when a bundle still fails in the same way, 0 when none fails any
more, 5 when one fails in another way.
"""


def add_parser(commands: Any, formatter: type[argparse.HelpFormatter]) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "repro",
        help="run a repro bundle again: does it still fail, and in the same way?",
        description=_DESCRIPTION,
        epilog=exit_code_text(),
        formatter_class=formatter,
        usage="hlotool repro verify [options] DIR ...",
    )
    parser.add_argument("action", choices=["verify"], help="the only one")
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folder of a bundle")
    parser.add_argument("--backend", metavar="NAME", help="instead of the one that the bundle names")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=300.0, help="of its command [300]"
    )
    add_output_options(parser)
    parser.set_defaults(command=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.cli.output import emit, emit_bytes
    from hlotool.report.bisect_records import VerifyRecord, verify_exit_code
    from hlotool.repro.verify import verify

    found = [verify(Path(folder), arguments.backend, arguments.timeout) for folder in arguments.folders]
    code = verify_exit_code(found)
    if arguments.json:
        import msgspec

        emit_bytes(msgspec.json.encode(VerifyRecord(bundles=found, exit_code=code)) + b"\n")
        return code
    from hlotool.report.console import console_for, render
    from hlotool.report.repro import VerifyReport

    emit(render(console_for(sys.stdout), VerifyReport(found, verbose=arguments.verbose)))
    return code
