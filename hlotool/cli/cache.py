"""`hlotool cache`: the verdicts that are kept for later runs."""

from __future__ import annotations

import argparse

from hlotool.api.numbers import byte_size
from hlotool.cli.finishing import finish
from hlotool.cli.options import add_output_options

USAGE = "cache [options] info|prune|clear"
ABOUT = "the verdicts kept for later runs: look, or remove some"
DESCRIPTION = """\
`run` keeps its verdicts, so that it does not replay a program again that it knows, whatever the
file and its names are. Nothing is lost with them but time.
"""
EXAMPLES = """\
examples:
  hlotool cache info                  where they are, and how much they take
  hlotool cache prune --size 100M     remove those of no use for the longest time
  hlotool cache clear                 remove all
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument(
        "action", choices=("info", "prune", "clear"), help="count, remove what is old, or all"
    )
    parser.add_argument(
        "--size", metavar="SIZE", type=byte_size, help="what may stay, as 100M [as much as a run leaves]"
    )
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.cache import cache

    return finish(cache(arguments.action, size=arguments.size).record, arguments)
