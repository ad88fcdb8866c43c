"""`hlotool inspect`: what a dump holds, and what kernels its programs become."""

from __future__ import annotations

import argparse

from hlotool.api.given import architecture
from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.cli.options import (
    add_only_option,
    add_output_options,
    add_paths,
    add_stages_option,
    add_worker_options,
)

USAGE = "inspect [options] PATH ..."
ABOUT = "what a dump holds: functions, opcodes, sizes, memory, arithmetic, kernels"
DESCRIPTION = """\
Say what a dump holds, without running anything: functions and how often each was compiled, stages,
instructions, parameters and results, memory and arithmetic as XLA counts them, loops, collectives,
transfers to the host, custom calls.
"""
EXAMPLES = """\
examples:
  hlotool inspect DIR                             the functions of a dump, the largest first
  hlotool inspect DIR --only train_step           one module, in detail
  hlotool inspect FILE.hlo --json                 everything, for scripts
  hlotool inspect FILE.hlo --kernels              the CUDA kernels that are generated for it
  hlotool inspect DIR --kernels --arch sm_100     the same of every module, for another GPU
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_paths(parser)
    group = parser.add_argument_group("what to look at")
    add_only_option(group)
    add_stages_option(group)
    group = parser.add_argument_group("kernels", "generated for the last stage, as the cuda backend does")
    group.add_argument("--kernels", action="store_true", help="source, launches, resources, host fallbacks")
    group.add_argument(
        "--arch", metavar="SM", type=architecture, default="sm_90", help="to compile them for [sm_90]"
    )
    add_worker_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.inspect import inspect

    return finish(inspect(arguments.paths, **keywords(inspect, arguments)).record, arguments)
