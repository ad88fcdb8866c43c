"""StableHLO's reference interpreter, as a third opinion on small programs.

It comes with jaxlib, computes element by element and takes seconds for what others do in milliseconds.
Importing this package imports nothing, as `child` runs in a process of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options, check_options

if TYPE_CHECKING:
    from hlotool.backends.stablehlo.backend import StablehloBackend

#: By form, with their meaning.
OPTIONS = {
    "python=PATH": "interpreter whose jaxlib is used",
    "timeout=SECONDS": "for each run",
}


def create(options: Options = NO_OPTIONS) -> StablehloBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: options that it does not know.
        BackendUnavailable: jaxlib is not installed.
    """
    from hlotool.backends.stablehlo.backend import StablehloBackend
    from hlotool.backends.xla.options import parse_options

    check_options("stablehlo", options, OPTIONS)
    return StablehloBackend(parse_options(options), str(BackendSpec("stablehlo", options)))
