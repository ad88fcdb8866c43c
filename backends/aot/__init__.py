"""The compilers of TPUs and GPUs, which need no device: what they make of a program runs on NumPy.

So the program that a TPU would execute is compared with what it was made of, on a laptop. What remains
outside is the last step, from HLO to machine code, and the device itself.
Importing this package imports nothing, as `child` and `protocol` also run in another interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.aot.options import TARGETS
from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options

if TYPE_CHECKING:
    from hlotool.backends.aot.backend import AotBackend

#: By form, with their meaning; besides, every debug option of XLA: `xla_NAME=VALUE`.
OPTIONS = {
    **{name: f"compile for {target.device}" for name, target in TARGETS.items()},
    "topology=SIZES": "of a TPU slice, such as 2x4; of GPUs partitions x hosts x devices, such as 1x1x4",
    "disable=PASS+PASS": "HLO passes that must not run",
    "triton=off": "no GEMM kernels of Triton: products are calls of cuBLAS",
    "libtpu=PATH": "another TPU compiler than the installed one: a libtpu.so",
    "python=PATH": "interpreter whose jaxlib and plug-ins are used; it needs jax, too",
    "timeout=SECONDS": "for each compilation",
    "xla_FLAG=VALUE": "any debug option of XLA",
}

__all__ = ["OPTIONS", "create"]


def create(options: Options = NO_OPTIONS) -> AotBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: options that it does not know, or no target among them.
    """
    from hlotool.backends.aot.backend import AotBackend
    from hlotool.backends.aot.options import parse_options

    return AotBackend(parse_options(options, OPTIONS), str(BackendSpec("aot", options)))
