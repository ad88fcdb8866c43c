"""`hlotool mutate`: would these inputs notice a fault?"""

from __future__ import annotations

import argparse

from hlotool.api.given import budget, values_file
from hlotool.api.numbers import repetitions, seed
from hlotool.cli.calling import TerminalCourse, keywords
from hlotool.cli.options import (
    add_execution_options,
    add_output_options,
    add_scale_option,
    add_unknown_options,
)

USAGE = "mutate [options] FILE"
ABOUT = "would your inputs notice a fault? The share of single faults that they show"
DESCRIPTION = """\
Plant single faults of the kinds that compilers make at random places of a program, and see which of them the
inputs of a replay show. Of a dump with the program before and after optimisation, the latter gets the faults
and the former judges. What is not noticed is listed with the line of your program, unless it is proved that
nothing can show it.
"""
EXAMPLES = """\
examples:
  hlotool mutate DIR                              the inputs that `hlotool run DIR` takes
  hlotool mutate FILE.hlo --inputs in.npz         inputs of your own
  hlotool mutate DIR --thorough --cases 1000      all further sets, more faults
  hlotool mutate FILE.hlo --scale 1000=8,64=7     a large program, with smaller sizes
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("path", metavar="FILE", help="HLO file, or the dump of one module")
    group = parser.add_argument_group("what is planted")
    group.add_argument("--cases", metavar="N", type=repetitions, default=200, help="faults at most [200]")
    group.add_argument("--seed", type=seed, default=0, help="of faults and of generated inputs [0]")
    add_unknown_options(group)
    add_scale_option(group)
    group = parser.add_argument_group("inputs in question", "those that `hlotool run` takes, unless")
    group.add_argument("--inputs", metavar="FILE", type=values_file, help=".npz or SCRIPT.py:FUNCTION")
    group.add_argument(
        "--further-sets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="after the plain generated set, others that reach more of the program [yes]",
    )
    group.add_argument("--thorough", action="store_true", help="all further sets, however long it takes")
    group.add_argument(
        "--budget", metavar="SECONDS|FACTORx", type=budget, help="what further sets may take [0.5x]"
    )
    add_execution_options(parser, resumes=False)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.show_scale:
        from hlotool.cli.scale import show

        return show(arguments, [arguments.path])
    from hlotool.api.mutate import mutate

    course = TerminalCourse(arguments)
    found = mutate(arguments.path, **keywords(mutate, arguments), course=course)
    return course.finish(found.record)
