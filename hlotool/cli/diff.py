"""`hlotool diff`: what differs between two programs, two dumps or two sets of results."""

from __future__ import annotations

import argparse

from hlotool.api.numbers import distance, tolerance
from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.cli.options import add_output_options, add_stages_option
from hlotool.cli.reports import add_report_options

USAGE = "diff [options] A B"
ABOUT = "what differs between two programs, dumps or sets of results"
DESCRIPTION = """\
Compare two programs instruction by instruction, or two sets of arrays element by element.

Instructions are matched by what they compute, by what is computed from them, by the frontend's names and
lines, and by their own names, through calls and fusions: what was renamed or moved is recognised.
"""
EXAMPLES = """\
examples:
  hlotool diff BEFORE.hlo AFTER.hlo               what a pass has changed
  hlotool diff DIR1 DIR2                          the modules of two dumps, first and last stage
  hlotool diff DIR1 DIR2 --stages '*after_fusion*'
  hlotool diff expected.npz actual.npz            two sets of results
  hlotool diff out/one out/other --rtol 1e-5      folders of .npy, such as --save-outputs writes
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("left", metavar="A", help="HLO file, dump, archive; or .npz, .npy, folder of them")
    parser.add_argument("right", metavar="B", help="the same kind of thing")
    group = parser.add_argument_group("programs")
    add_stages_option(group)
    group.add_argument(
        "-U", "--context", metavar="N", type=distance, default=3, help="equal lines around differences [3]"
    )
    group = parser.add_argument_group("results", "tolerance derived from the element type, unless")
    group.add_argument("--rtol", type=tolerance, help="relative to the larger magnitude")
    group.add_argument("--atol", type=tolerance, help="absolute")
    add_report_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.diff import diff

    found = diff(arguments.left, arguments.right, **keywords(diff, arguments))
    return finish(found.record, arguments)
