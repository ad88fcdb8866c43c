"""`hlotool opt`: run passes on a program, and convert between text and proto."""

from __future__ import annotations

import argparse
import sys

from hlotool.api.given import CHOICES
from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish, with_configuration
from hlotool.cli.options import add_output_options
from hlotool.cli.output import emit_bytes, emit_json
from hlotool.errors import UsageError

USAGE = "opt [options] FILE"
ABOUT = "run passes on a program; convert between text and proto"
DESCRIPTION = """\
Run passes on an HLO program and print it. Without --passes it is printed as it is: in XLA's form, verified,
as text or as a proto.
"""
EXAMPLES = """\
examples:
  hlotool opt FILE --passes 'inline,fix(simplify,cse,dce),fuse{kind=loop}'
  hlotool opt FILE --passes despecialize -o plain.hlo
  hlotool opt FILE --passes fuse --pass-fuel 12           only the first 12 transformations
  hlotool opt FILE --passes simplify,fuse --dump-to DIR   a dump that hlotool run and bisect take
  hlotool opt FILE --compile aot:v5e --dump-to DIR        what the TPU's compiler makes of it, without a TPU
  hlotool opt FILE.hlo.pb --emit text                     a proto as text
  hlotool opt --list-passes                               passes and their options
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("path", nargs="?", metavar="FILE", help="HLO text or proto; - for stdin")
    parser.add_argument("--from", dest="form", choices=CHOICES["form"], help="what FILE is [look inside]")
    parser.add_argument(
        "--emit",
        choices=CHOICES["emit"],
        default="text",
        help="what to write; filecheck is a test of --passes [text]",
    )
    parser.add_argument("--output", "-o", metavar="FILE", help="write the program here [stdout]")
    group = parser.add_argument_group("passes")
    group.add_argument("--passes", metavar="PIPELINE", default="", help="a,b{option=value},fix(c,d)")
    group.add_argument("--list-passes", action="store_true", help="list passes and their options")
    group.add_argument(
        "--pass-fuel",
        metavar="[PASS=]N",
        action="append",
        default=[],
        help="stop (one pass, or all) after N transformations",
    )
    group.add_argument(
        "--no-verify", dest="verify", action="store_false", help="do not verify between passes"
    )
    group.add_argument(
        "--print-before", metavar="PASS", action="append", default=[], help="on stderr; 'all' for every pass"
    )
    group.add_argument(
        "--print-after", metavar="PASS", action="append", default=[], help="likewise, where something changed"
    )
    group.add_argument(
        "--compile",
        dest="compiler",
        metavar="BACKEND",
        default="",
        help="have a compiler make something of it: xla, aot:v5e",
    )
    group.add_argument("--dump-to", metavar="DIR", help="write the program after each pass, as XLA does")
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.opt import list_passes, opt

    if arguments.list_passes:
        return finish(list_passes().record, arguments)
    if not arguments.path:
        raise UsageError("which program? hlotool opt FILE, or hlotool opt --list-passes")
    if arguments.json and arguments.emit == "proto" and not arguments.output:
        raise UsageError("--json and --emit proto both write to stdout; say --output FILE")
    found = opt(arguments.path, **keywords(opt, arguments))
    if arguments.json:
        emit_json(with_configuration(found.record, arguments))
    elif not arguments.output:
        emit_bytes(found.pieces)
    if arguments.verbose and not arguments.json:
        from hlotool.report.console import console_for, render
        from hlotool.report.opt import pass_table

        sys.stderr.write(render(console_for(sys.stderr), pass_table(found.rows)))
    return found.exit_code
