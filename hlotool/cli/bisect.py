"""`hlotool bisect`: from a wrong dump to the module, the pass and the instructions to blame."""

from __future__ import annotations

import argparse

from hlotool.cli.calling import TerminalCourse, keywords
from hlotool.cli.options import (
    add_baseline_option,
    add_exact_option,
    add_execution_options,
    add_input_options,
    add_only_option,
    add_output_options,
    add_paths,
    add_repetition_options,
    add_scale_option,
    add_tolerance_options,
    add_unknown_options,
)
from hlotool.cli.reports import add_report_options

USAGE = "bisect [options] PATH ..."
ABOUT = "find the module, the pass and the instructions that made a result wrong"
DESCRIPTION = """\
Find what made a program wrong: the module, the compiler pass, the instructions. Every stage of a dump is
run on the same inputs; both ends are checked before anything is searched, and what is found is asked again
before it is accused. Behind the first culprit a second one is looked for.
"""
EXAMPLES = """\
examples:
  hlotool bisect DIR                              a dump with --xla_dump_hlo_pass_re=.*
  hlotool bisect DIR --only train_step            one module
  hlotool bisect FILE.hlo --backend xla           no dump: XLA is here and makes one
  hlotool bisect DIR --inputs in.npz --outputs out.npz
                                                  does the hardware do what the last stage says?
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_paths(parser)
    group = parser.add_argument_group("what to search")
    add_only_option(group)
    group.add_argument("--every-stage", action="store_true", help="judge all stages: finds repaired faults")
    group.add_argument(
        "--every-module", action="store_true", help="search all modules, not one for each kind of failure"
    )
    group.add_argument("--reference", metavar="NAME", default="numpy", help="backend that runs it [numpy]")
    group.add_argument(
        "--backend", metavar="NAME", help="compile here, such as with xla, and dump its passes"
    )
    add_exact_option(group)
    add_unknown_options(group)
    add_scale_option(group)
    add_baseline_option(group)
    add_repetition_options(group, 3, "runs of what is compiled here")
    add_input_options(parser)
    add_tolerance_options(parser)
    group = parser.add_argument_group("repro bundles")
    group.add_argument("--repro", metavar="DIR", default="hlotool-repro", help="folder [hlotool-repro]")
    group.add_argument("--no-repro", dest="repro", action="store_const", const=None, help="write none")
    group.add_argument(
        "--try-on",
        metavar="NAME",
        help="compiler on which they are tried and made small [xla, or --backend]; none: do not",
    )
    add_execution_options(parser, on_clusters=True)
    add_report_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.show_scale:
        from hlotool.cli.scale import show

        return show(arguments, arguments.paths)
    from hlotool.api.bisect import bisect

    course = TerminalCourse(arguments)
    found = bisect(arguments.paths, **keywords(bisect, arguments), course=course)
    return course.finish(found.record)
