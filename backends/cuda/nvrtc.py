"""NVRTC, the compiler as a library, through ctypes: version 12 or 13, of a toolkit or of NVIDIA's wheels.

NVRTC user guide; it needs neither a GPU nor a driver.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from hlotool.backends.cuda.libraries import open_libraries
from hlotool.backends.cuda.options import OPTIONS, refusal
from hlotool.errors import BackendCrashed


def find_nvrtcs() -> Iterator[Nvrtc]:
    """Those that are installed, newer major versions first."""
    for library in open_libraries("nvrtc"):
        try:
            yield Nvrtc(library)
        except (AttributeError, BackendCrashed):  # it loads, but is no NVRTC, or a broken one
            continue


class Nvrtc:
    """One NVRTC.

    Args:
        library: as loaded.

    Raises:
        AttributeError: it is another library.
        BackendCrashed: it does not even tell its version.
    """

    #: NVRTC takes the generated lambdas, which have no annotations, for functions of the host.
    options = (*OPTIONS, "-default-device")

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.toolkit = (major.value, minor.value)
        self.version = f"NVRTC {major.value}.{minor.value}"

    @cached_property
    def architectures(self) -> frozenset[str]:
        """See `Compiler`."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return frozenset(f"sm_{number}" for number in numbers)

    def compile(self, source: str, architecture: str) -> tuple[bytes, str]:
        """See `Compiler`."""
        options = [f"-arch={architecture}", "--ptxas-options=-v", *self.options]
        encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        program = ctypes.c_void_p()
        text = source.encode()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, b"kernels.cu", 0, None, None)
        try:
            status = self._library.nvrtcCompileProgram(program, len(options), encoded)
            log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if status:
                raise refusal(self.version, log)
            return self._bytes(program, "CUBIN"), log
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, found)
        return found.raw

    def _call(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._library, name)(*arguments):
            said = self._library.nvrtcGetErrorString(status).decode(errors="replace")
            raise BackendCrashed("cuda", f"{name} failed: {said}")
