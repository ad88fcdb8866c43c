"""Real XLA, through jaxlib, in a process of its own.

Importing this package imports nothing: its modules `child`, `jaxlib_api` and `protocol` also run in another
interpreter, which has jaxlib but hardly anything that the rest of hlotool needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.spec import NO_OPTIONS, BackendSpec, Options

if TYPE_CHECKING:
    from hlotool.backends.xla.backend import XlaBackend

#: By form, with their meaning; besides, every debug option of XLA: `xla_NAME=VALUE`.
OPTIONS = {
    "cpu": "run on the CPU, the default",
    "gpu": "run on a GPU",
    "tpu": "run on a TPU",
    "disable=PASS+PASS": "HLO passes that must not run",
    "only=PASS+PASS": "the only HLO passes that may run",
    "opt=LEVEL": "optimisation level of the code generator, 0 to 3",
    "route=auto|mlir|pre|post": "how programs get into XLA: as StableHLO, before or after its scheduler",
    "python=PATH": "interpreter whose jaxlib is used; it needs jax and msgspec, too",
    "timeout=SECONDS": "for each compilation and each run",
    "xla_FLAG=VALUE": "any debug option of XLA",
}


def create(options: Options = NO_OPTIONS) -> XlaBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: options that it does not know.
        BackendUnavailable: jaxlib is not installed.
    """
    from hlotool.backends.xla.backend import XlaBackend
    from hlotool.backends.xla.options import parse_options

    return XlaBackend(parse_options(options), str(BackendSpec("xla", options)))
