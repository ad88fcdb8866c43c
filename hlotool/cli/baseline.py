"""`hlotool baseline update`: what is known from now on, so that only what is new fails."""

from __future__ import annotations

import argparse

from hlotool.cli.finishing import finish
from hlotool.cli.options import add_output_options

USAGE = "baseline update [options] FILE RECORD ..."
ABOUT = "write what is known from now on: with --baseline FILE only what is new fails"
DESCRIPTION = """\
Write the findings of records, as commands print them with --json, into a baseline. What it knows of modules
that the records did not look at stays known; what they looked at and no longer find is forgotten.
"""
EXAMPLES = """\
examples:
  hlotool run DIR --json > now.json
  hlotool baseline update known.json now.json     these are known
  hlotool run DIR --baseline known.json           exit 1 only for what is not
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("action", choices=["update"], help="the only one")
    parser.add_argument("file", metavar="FILE", help="the baseline")
    parser.add_argument("records", nargs="+", metavar="RECORD", help="what a command printed with --json")
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.baseline import update_baseline

    return finish(update_baseline(arguments.file, arguments.records).record, arguments)
