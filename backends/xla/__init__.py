"""Real XLA, through jaxlib, in a process of its own.

Importing this package imports nothing: its modules `child`, `jaxlib_api` and `protocol` also run in another
interpreter, which has jaxlib but hardly anything that the rest of hlotool needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options
from hlotool.backends.xla.options import OPTIONS

if TYPE_CHECKING:
    from hlotool.backends.xla.backend import XlaBackend

__all__ = ["OPTIONS", "create"]


def create(options: Options = NO_OPTIONS) -> XlaBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: options that it does not know.
        BackendUnavailable: jaxlib is not installed.
    """
    from hlotool.backends.xla.backend import XlaBackend
    from hlotool.backends.xla.options import parse_options

    return XlaBackend(parse_options(options), str(BackendSpec("xla", options)))
