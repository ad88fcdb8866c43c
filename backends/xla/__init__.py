"""Real XLA, through jaxlib, in a process of its own.

Importing this needs no jaxlib: what does is in `child` and runs in that process.
"""

from __future__ import annotations

from hlotool.backends.spec import NO_OPTIONS, BackendSpec, Options
from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.options import parse_options

__all__ = ["XlaBackend", "create"]


def create(options: Options = NO_OPTIONS) -> XlaBackend:
    """Entry point of group `hlotool.backends`; raises UsageError for options that it does not know."""
    return XlaBackend(parse_options(options), str(BackendSpec("xla", options)))
