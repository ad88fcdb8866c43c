"""Generated CUDA kernels, compiled by g++ and run on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.registry import NO_OPTIONS, BackendSpec, Options, check_options

if TYPE_CHECKING:
    from hlotool.backends.cuda_emu.backend import EmulatorBackend

#: Options of the backend's spec, by form, with their meaning.
OPTIONS: dict[str, str] = {
    "backward": "the threads of a block run in descending order, which shows races",
    "generated": "large products by generated kernels, too, with the bits of cuda:generated, not by BLAS",
    "march=ARCH": "for another CPU than this one, as g++ calls it: x86-64-v3 has AVX2 and no AVX-512",
    "precision=NAME": "hlo: narrow floats are rounded after each operation; wide: where a fusion stores them",
    "unfused": "one kernel for each operation outside the fusions of the program",
}


def create(options: Options = NO_OPTIONS) -> EmulatorBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: unknown options, or another precision.
        BackendUnavailable: there is no g++.
    """
    check_options("cuda-emu", options, OPTIONS)
    from hlotool.backends.cuda.codegen.expansion import precision_of
    from hlotool.backends.cuda_emu.backend import Builder, EmulatorBackend

    march = (f"-march={options['march']}",) if "march" in options else ()
    return EmulatorBackend(
        str(BackendSpec("cuda-emu", options)),
        builder=Builder("backward" in options, march),
        fuses="unfused" not in options,
        precision=precision_of("cuda-emu", options),
        calls_libraries="generated" not in options,
    )
