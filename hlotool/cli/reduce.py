"""`hlotool reduce`: make a failing program small while it fails in the same way."""

from __future__ import annotations

import argparse

from hlotool.api.given import regex
from hlotool.cli.calling import TerminalCourse, keywords
from hlotool.cli.options import (
    add_exact_option,
    add_execution_options,
    add_input_options,
    add_output_options,
    add_repetition_options,
    add_scale_option,
    add_tolerance_options,
    add_unknown_options,
)

USAGE = "reduce [options] FILE"
ABOUT = "make a failing program small while it fails in the same way"
DESCRIPTION = """\
Make a failing program small: fewer instructions, inlined calls, shorter loops, smaller shapes, simpler types
and values, fewer devices. The way in which it fails is kept: a wrong value never becomes a crash.

A command given as --check is called with the file of a candidate; the arguments lie beside it as .npz. Its
exit status means what it means to `git bisect run`: 0 good, 125 cannot be judged, others bad.
"""
EXAMPLES = """\
examples:
  hlotool reduce FILE.hlo --backend xla           where XLA and the reference differ
  hlotool reduce FILE.hlo --backend xla --exact   what XLA's passes make another function of
  hlotool reduce FILE.hlo --check ./fails.sh --output small.hlo
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("path", metavar="FILE", help="HLO file, or the dump of one module")
    _add_judge_options(parser)
    add_input_options(parser, outputs=False)
    add_tolerance_options(parser)
    group = parser.add_argument_group("result")
    group.add_argument("--output", "-o", metavar="FILE", help="what is left [NAME.reduced.hlo]")
    group.add_argument("--repro", metavar="DIR", help="write a repro bundle, too")
    add_execution_options(parser)
    add_output_options(parser)


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what fails")
    group.add_argument("--stage", metavar="LABEL", default="", help="of a dump [the first]")
    group.add_argument("--backend", metavar="NAME", default="numpy", help="backend that is wrong")
    group.add_argument("--reference", metavar="NAME", default="numpy", help="backend that is right [numpy]")
    group.add_argument("--check", metavar="CMD", default="", help="command that judges a program instead")
    group.add_argument(
        "--fail-regex", metavar="REGEX", type=regex, help="what CMD prints when the failure is there"
    )
    add_exact_option(group)
    add_unknown_options(group)
    add_scale_option(group)
    add_repetition_options(group, 2, "first runs: does it fail always?")


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.show_scale:
        from hlotool.cli.scale import show

        return show(arguments, [arguments.path])
    from hlotool.api.reduce import reduce
    from hlotool.search.reduction.files import default_output

    course = TerminalCourse(arguments)
    given = keywords(reduce, arguments)
    given["output"] = arguments.output or default_output(arguments.path)
    found = reduce(arguments.path, **given, course=course)
    return course.finish(found.record)
