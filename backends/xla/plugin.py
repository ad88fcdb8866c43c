"""The backend `pjrt`: any device that has a PJRT plug-in, which jaxlib loads in a process of its own.

`pjrt:/path/plugin.so` gives programs to the plug-in as JAX does, as StableHLO. It sees the environment of the
command, so that variables set it up.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options, check_options
from hlotool.errors import BackendUnavailable, UsageError

if TYPE_CHECKING:
    from hlotool.backends.xla.backend import XlaBackend

#: By form, with their meaning.
OPTIONS = {
    "/PATH/PLUGIN.so": "the library of the plug-in, which exports GetPjrtApi; always needed",
    "python=PATH": "interpreter whose jaxlib loads it; it needs jax, too",
    "timeout=SECONDS": "for each compilation and each run",
}


def create(options: Options = NO_OPTIONS) -> XlaBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: no path or several ones, or options that it does not know.
        BackendUnavailable: there is no such file, or jaxlib is not installed.
    """
    from dataclasses import replace

    from hlotool.backends.xla.backend import XlaBackend
    from hlotool.backends.xla.options import parse_options
    from hlotool.backends.xla.protocol import Route

    paths = [key for key, value in options.items() if not value]
    if len(paths) != 1:
        named = f", not {' and '.join(paths)}" if paths else ""
        raise UsageError(f"backend pjrt needs the path of one plug-in, as pjrt:/path/plugin.so{named}")
    path = os.path.abspath(os.path.expanduser(paths[0]))
    if not os.path.isfile(path):
        raise BackendUnavailable(f"PJRT plug-in {path}: there is no such file")
    others = {key: value for key, value in options.items() if value}
    check_options("pjrt", others, OPTIONS)
    parsed = replace(parse_options(others), platform=path, route=Route.MLIR)
    return XlaBackend(parsed, str(BackendSpec("pjrt", options)))
