"""The CUDA backend: every fusion is one generated kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options, check_options
from hlotool.errors import UsageError

if TYPE_CHECKING:
    from hlotool.backends.cuda.backend import CudaBackend

#: Options of the backend's spec, by form, with their meaning.
OPTIONS: dict[str, str] = {
    "compiler=NAME": "nvrtc or nvcc; otherwise nvrtc where it is installed",
    "device=NUMBER": "which GPU, as CUDA counts; otherwise the first",
    "generated": "large products by generated kernels, too, with the bits of cuda-emu, not by cuBLAS",
    "precision=NAME": "hlo: narrow floats are rounded after each operation; wide: where a fusion stores them",
    "synchronous": "every kernel is waited for, so that errors name the right instruction",
    "unfused": "one kernel for each operation outside the fusions of the program",
}


def create(options: Options = NO_OPTIONS) -> CudaBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: unknown options, a device that is no number, or another precision.
        BackendUnavailable: pycuda, the driver, the device or a compiler is missing.
    """
    check_options("cuda", options, OPTIONS)
    number = options.get("device", "0")
    if not number.isdecimal():
        raise UsageError(f"backend cuda: device={number} is no number")
    from hlotool.backends.cuda.backend import CudaBackend
    from hlotool.backends.cuda.codegen.expansion import precision_of

    return CudaBackend(
        str(BackendSpec("cuda", options)),
        int(number),
        options.get("compiler", ""),
        fuses="unfused" not in options,
        waits="synchronous" in options,
        calls_libraries="generated" not in options,
        precision=precision_of("cuda", options),
    )
