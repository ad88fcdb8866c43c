"""Generated CUDA kernels, compiled by g++ and run on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.backends.spec import NO_OPTIONS, BackendSpec, Options, check_options

if TYPE_CHECKING:
    from hlotool.backends.cuda_emu.backend import EmulatorBackend

#: Options of the backend's spec, by form, with their meaning.
OPTIONS: dict[str, str] = {
    "backward": "the threads of a block run in descending order, which shows races",
    "unfused": "one kernel for each operation outside the fusions of the program",
}


def create(options: Options = NO_OPTIONS) -> EmulatorBackend:
    """Entry point of group `hlotool.backends`.

    Raises:
        UsageError: unknown options.
        BackendUnavailable: there is no g++.
    """
    check_options("cuda-emu", options, OPTIONS)
    from hlotool.backends.cuda_emu.backend import EmulatorBackend

    name = str(BackendSpec("cuda-emu", options))
    return EmulatorBackend(name, backward="backward" in options, fuses="unfused" not in options)
