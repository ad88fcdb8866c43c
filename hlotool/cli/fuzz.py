"""`hlotool fuzz`: programs that nobody wrote, to find what a backend gets wrong."""

from __future__ import annotations

import argparse

from hlotool.api.numbers import devices, minutes, modules, seed
from hlotool.cli.calling import TerminalCourse, keywords
from hlotool.cli.options import add_execution_options, add_output_options

USAGE = "fuzz [options] --out DIR [PATH ...]"
ABOUT = "draw programs, and make a report of each distinct fault of a backend"
DESCRIPTION = """\
Draw programs, run them on the reference and on a backend, and look into what is wrong, crashes, hangs, or
differs from run to run twice: it is made small, blamed on a pass or on code of the compiler, and written as a
bundle with the text of an issue. Faults that are known, and further cases of one fault, are only counted.
The same command goes on with the campaign in its folder.
"""
EXAMPLES = """\
examples:
  hlotool fuzz --backend xla --minutes 30 --out DIR     half an hour on XLA of the installed jaxlib
  hlotool fuzz --out DIR --integers --programs 2000     no floats: every difference counts
  hlotool fuzz --out DIR corpus/jax                     these programs, changed, as well
  hlotool fuzz --out DIR --known mine.toml              these faults are known, too
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help="programs that are changed, as well")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of the campaign")
    group = parser.add_argument_group("what is compared")
    group.add_argument("--backend", metavar="NAME", default="xla", help="in question [xla]")
    group.add_argument("--reference", metavar="NAME", default="numpy", help="gives expected values [numpy]")
    group = parser.add_argument_group("what is drawn")
    group.add_argument(
        "--minutes", metavar="N", type=minutes, help="all calls together [30, without --programs no limit]"
    )
    group.add_argument(
        "--programs", metavar="N", type=modules, default=0, help="programs [as many as there is time for]"
    )
    group.add_argument("--seed", type=seed, default=0, help="of programs and inputs [0]")
    group.add_argument("--integers", action="store_true", help="only programs without floats")
    group.add_argument("--devices", metavar="N", type=devices, default=1, help="that programs are for [1]")
    group = parser.add_argument_group("what is known")
    group.add_argument(
        "--known",
        metavar="FILE",
        action="append",
        default=[],
        help="TOML of known faults, which are counted only",
    )
    group.add_argument(
        "--no-committed",
        dest="committed",
        action="store_false",
        help="report also the known faults that hlotool comes with",
    )
    add_execution_options(parser, on_clusters=True)
    parser.set_defaults(timeout=60.0)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.fuzz import fuzz

    course = TerminalCourse(arguments)
    found = fuzz(arguments.paths, **keywords(fuzz, arguments), course=course)
    return course.finish(found.record)
