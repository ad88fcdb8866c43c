"""`hlotool conformance`: does a backend compute what every opcode must, on every element type?"""

from __future__ import annotations

import argparse

from hlotool.api.given import words
from hlotool.api.numbers import executions, seed
from hlotool.cli.calling import TerminalCourse, keywords
from hlotool.cli.options import add_execution_options, add_output_options
from hlotool.cli.reports import add_report_options

USAGE = "conformance [options]"
ABOUT = "try every opcode on every element type on a backend or a PJRT plug-in"
DESCRIPTION = """\
Run what each opcode must do on a backend: the cases of its spec, whose results are known, and random ones
that the reference judges. A table says for each opcode and element type whether the results are those,
others that a documented freedom allows (by name), or others that nothing explains. A process that dies costs
one case.
"""
EXAMPLES = """\
examples:
  hlotool conformance --backend xla                       XLA on the CPU
  hlotool conformance --backend pjrt:/path/plugin.so      a PJRT plug-in
  hlotool conformance --backend cuda-emu --only dot,reduce --types f32,bf16
  hlotool conformance --backend xla:gpu --out failures --html table.html
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    group = parser.add_argument_group("what is tried")
    group.add_argument(
        "--backend",
        "--test",
        metavar="BACKEND",
        default="xla",
        help="xla, xla:gpu, pjrt:/path/plugin.so, cuda-emu, … [xla]",
    )
    group.add_argument("--only", metavar="OPCODE,...", type=words, default=(), help="these opcodes [all]")
    group.add_argument("--types", metavar="TYPE,...", type=words, default=(), help="element types [all]")
    group.add_argument(
        "--cases", metavar="N", type=executions, default=30, help="random cases for each opcode [30]"
    )
    group.add_argument("--seed", type=seed, default=0, help="of random cases [0]")
    group.add_argument(
        "--out", metavar="DIR", help="write the smallest failure of each opcode and element type there"
    )
    add_execution_options(parser)
    add_report_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.conformance import conformance

    course = TerminalCourse(arguments)
    found = conformance(**keywords(conformance, arguments), course=course)
    return course.finish(found.record)
