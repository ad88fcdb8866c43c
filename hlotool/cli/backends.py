"""`hlotool backends`: which backends there are, and why one cannot be used."""

from __future__ import annotations

import argparse

from hlotool.cli.finishing import finish
from hlotool.cli.options import add_output_options

USAGE = "backends [options]"
ABOUT = "list the backends: available or why not"
DESCRIPTION = "List the backends that `run` can use, each loaded in a process of its own."
EXAMPLES = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.backends import list_backends

    return finish(list_backends().record, arguments)
