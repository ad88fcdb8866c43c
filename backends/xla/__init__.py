"""Real XLA, through jaxlib, in a process of its own.

Importing this needs no jaxlib: what does is in `child` and runs in that process.
"""

from __future__ import annotations

from importlib.util import find_spec

from hlotool.backends.spec import NO_OPTIONS, BackendSpec, Options
from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.failures import REMEDY
from hlotool.backends.xla.options import parse_options
from hlotool.errors import BackendUnavailable

__all__ = ["XlaBackend", "create"]


def create(options: Options = NO_OPTIONS) -> XlaBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: options that it does not know.
        BackendUnavailable: jaxlib is not installed.
    """
    parsed = parse_options(options)
    missing = [name for name in ("jax", "jaxlib") if not find_spec(name)]
    if missing and not parsed.python:
        raise BackendUnavailable(f"backend xla needs {missing[0]}: {REMEDY}")
    return XlaBackend(parsed, str(BackendSpec("xla", options)))
