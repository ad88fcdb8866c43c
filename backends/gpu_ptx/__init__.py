"""PTX, the assembly that XLA:GPU generates, executed on the CPU without any GPU.

`program.py` reads PTX, `memory.py` is the device's memory, `launch.py` runs a kernel. The semantics is that
of NVIDIA's "Parallel Thread Execution ISA", sections named in the docstrings. `thunks.py`, `assignment.py`
and `dump.py` read what the compiler wrote beside the PTX, `stepping.py` executes a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.aot.options import TARGETS
from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options, check_options

if TYPE_CHECKING:
    from hlotool.backends.base import Backend

#: By form, with their meaning; besides, every debug option of XLA: `xla_NAME=VALUE`.
OPTIONS = {
    **{name: f"compile for {target.device}" for name, target in TARGETS.items() if target.platform == "cuda"},
    "disable=PASS+PASS": "HLO passes that must not run",
    "triton=off": "no GEMM kernels of Triton: products are calls of cuBLAS, which the reference computes",
    "autotune=MxNxK": "tiles of Triton's GEMM kernels, as the autotuner may choose them",
    "python=PATH": "interpreter whose jaxlib and plug-ins are used; it needs jax, too",
    "timeout=SECONDS": "for each compilation",
    "seed=NUMBER": "which of the executions that the hardware may choose: the order of warps, approximations",
    "xla_FLAG=VALUE": "any debug option of XLA",
}

__all__ = ["OPTIONS", "create"]

_NAME = "gpu-ptx"


def create(options: Options = NO_OPTIONS) -> Backend:
    """Entry point of group `hlotool.backends`.

    Without a GPU among the options the PTX of dumps is executed.

    Raises:
        UsageError: options that it does not know, or that say how to compile and not for what.
    """
    from hlotool.backends.gpu_ptx.backend import compiling, executing

    spec = str(BackendSpec(_NAME, options))
    if not set(options) - {"seed"}:
        check_options(_NAME, options, OPTIONS)
        return executing(options, spec)
    return compiling(options, OPTIONS, spec)
