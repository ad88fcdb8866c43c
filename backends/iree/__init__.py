"""IREE, a compiler of StableHLO that shares no optimisation and no kernel with XLA: a second opinion on
what programs mean.

It compiles for the CPU of this machine and runs there. StableHLO is written by jaxlib.
Importing this package imports nothing, as `child` also runs in another interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options, check_options

if TYPE_CHECKING:
    from hlotool.backends.iree.backend import IreeBackend

#: By form, with their meaning.
OPTIONS = {
    "python=PATH": "interpreter whose IREE is used; it needs msgspec, too",
    "timeout=SECONDS": "for each run, which compiles",
}


def create(options: Options = NO_OPTIONS) -> IreeBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: options that it does not know.
    """
    from hlotool.backends.iree.backend import IreeBackend
    from hlotool.backends.xla.options import DEFAULT_TIMEOUT, interpreter, seconds

    check_options("iree", options, OPTIONS)
    python = interpreter(options.get("python", ""), "iree")
    timeout = seconds("timeout", options.get("timeout", str(DEFAULT_TIMEOUT)), "iree")
    return IreeBackend(python, timeout, str(BackendSpec("iree", options)))
