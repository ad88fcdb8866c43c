"""`--show-scale` of the commands that have `--scale`: the sizes that programs would get, and nothing run."""

from __future__ import annotations

import argparse

from hlotool.cli.calling import called
from hlotool.cli.finishing import finish
from hlotool.errors import UsageError


def show(arguments: argparse.Namespace) -> int:
    """Print the plans instead of running a command; returns the exit code.

    Raises:
        UsageError: findings are asked for in a form for others.
    """
    from hlotool.api.show_scale import show_scale

    for name in ("format", "html", "junit", "sarif", "github"):
        if getattr(arguments, name, None):
            raise UsageError(f"--show-scale finds nothing for --{name}: it prints text, or --json")
    paths = getattr(arguments, "paths", None) or [getattr(arguments, "path", None) or arguments.left]
    # Only `run` takes programs as they are where values on disk are enough.
    in_place = arguments.command_name == "run"
    against = getattr(arguments, "right", None)
    return finish(
        called(show_scale, arguments, paths=paths, against=against, in_place=in_place).record, arguments
    )
