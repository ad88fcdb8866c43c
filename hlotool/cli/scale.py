"""`--show-scale` of the commands that have `--scale`: the sizes that programs would get, and nothing run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.errors import UsageError


def show(
    arguments: argparse.Namespace, paths: Sequence[str], against: str | None = None, in_place: bool = False
) -> int:
    """Print the plans instead of running a command; returns the exit code.

    Args:
        arguments: of the command.
        paths: of its programs.
        against: what these are compared with, where the command has two sides.
        in_place: whether the command runs programs as they are with values on disk.

    Raises:
        UsageError: findings are asked for in a form for others.
    """
    from hlotool.api.show_scale import show_scale

    for name in ("format", "html", "junit", "sarif", "github"):
        if getattr(arguments, name, None):
            raise UsageError(f"--show-scale finds nothing for --{name}: it prints text, or --json")
    given = keywords(show_scale, arguments) | {"against": against, "in_place": in_place}
    if isinstance(given.get("stages"), str):
        del given["stages"]
    return finish(show_scale(list(paths), **given).record, arguments)
