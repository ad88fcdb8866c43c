"""`hlotool merge`: the records of the shards of a run become that of the whole run."""

from __future__ import annotations

import argparse

from hlotool.cli.finishing import finish
from hlotool.cli.options import add_output_options
from hlotool.cli.reports import add_report_options

USAGE = "merge [options] RECORD ..."
ABOUT = "make the records of all shards of a run one"
DESCRIPTION = """\
Make the records of `hlotool run --shard 1/N --json` to `--shard N/N --json` one: that of the run
of all modules. The exit code is that of the whole run.
"""
EXAMPLES = """\
examples:
  hlotool merge shard-*.json                   the report of the whole run
  hlotool merge shard-*.json --junit all.xml   likewise, for a build server
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("records", nargs="+", metavar="RECORD", help="what `run --shard I/N --json` printed")
    add_report_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.merge import merge

    return finish(merge(arguments.records).record, arguments)
