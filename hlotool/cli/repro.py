"""`hlotool repro verify`: does a repro bundle still fail, and in the same way?"""

from __future__ import annotations

import argparse

from hlotool.api.numbers import seconds
from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.cli.options import add_output_options

USAGE = "repro verify [options] DIR ..."
ABOUT = "run a repro bundle again: does it still fail, and in the same way?"
DESCRIPTION = """\
Run repro bundles again. The exit code is 1 when a bundle still fails in the same way, 0 when none fails any
more, 5 when one fails in another way. The same way: the same kind of failure of the same outputs.

A bundle that names a command, an interpreter or flags of XLA is not run unless you trust it.
"""
EXAMPLES = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("action", choices=["verify"], help="the only one")
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folder of a bundle")
    parser.add_argument("--backend", metavar="NAME", help="instead of the one that the bundle names")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=300.0, help="of its command [300]"
    )
    parser.add_argument(
        "--trust", action="store_true", help="run the command and the backend options that a bundle names"
    )
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.repro import verify

    return finish(verify(arguments.folders, **keywords(verify, arguments)).record, arguments)
