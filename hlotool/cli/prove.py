"""`hlotool prove`: are two programs the same function of real numbers?"""

from __future__ import annotations

import argparse

from hlotool.api.given import values_file
from hlotool.api.numbers import repetitions, seed
from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.cli.options import (
    add_only_option,
    add_output_options,
    add_scale_option,
    add_unknown_options,
    add_worker_options,
)
from hlotool.cli.reports import add_report_options

USAGE = "prove [options] A [B]"
ABOUT = "are two programs the same function of real numbers?"
DESCRIPTION = """\
Evaluate two programs at random points of a finite field, where nothing is rounded, and compare what they
return. What is equal there is the same function of real numbers, whatever order sums are in and whatever
types they are rounded to; what is not has a witness. Overflow, NaN and signs of zero are not seen.
"""
EXAMPLES = """\
examples:
  hlotool prove BEFORE.hlo AFTER.hlo              two programs
  hlotool prove DIR                               every module of a dump: before and after optimizations
  hlotool prove DIR1 DIR2 --only train_step       modules of the same name
  hlotool prove DIR --explain                     which laws and constants the answer rests on
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("left", metavar="A", help="HLO file, dump directory or archive")
    parser.add_argument("right", metavar="B", nargs="?", help="the same kind of thing [A's own last stage]")
    group = parser.add_argument_group("what to compare")
    add_only_option(group)
    add_unknown_options(group, opaque=False)
    add_scale_option(group)
    group.add_argument("--trials", metavar="N", type=repetitions, default=2, help="random points [2]")
    group.add_argument("--seed", type=seed, default=0, help="of the random points [0]")
    group.add_argument(
        "--inputs",
        metavar="FILE",
        type=values_file,
        help=".npz (x@0, x@1, … by device) or SCRIPT.py:FUNCTION: integers and preds; floats are drawn",
    )
    group.add_argument(
        "--further-sets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare what is equal at integers and preds that reach more of the programs, too [yes]",
    )
    group.add_argument("--explain", action="store_true", help="laws, constants and unknown functions")
    add_worker_options(parser)
    add_report_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.show_scale:
        from hlotool.cli.scale import show

        return show(arguments, [arguments.left], arguments.right)
    from hlotool.api.prove import prove

    found = prove(arguments.left, arguments.right, **keywords(prove, arguments))
    return finish(found.record, arguments)
