"""Generated kernels compiled as for CUDA and run on the CPU by fibers: see `fibers.h`."""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda.codegen.schedules import Kernel, kind_of, size_of
from hlotool.backends.cuda_emu.backend import Builder, Launcher, compiler
from hlotool.ir.arrays import dtype_of

_HEADER = Path(__file__).with_suffix(".h")
_SHARED = "#define SHARED(T, name, count) __shared__ alignas(16) T name[count]"
_FLAGS = ("-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fPIC", "-shared", "-x", "c++")


class FiberBuilder(Builder):
    """Compiles kernels for the fibers.

    Args:
        folder: of the libraries.
        flags: further options of g++.

    Attributes:
        blocks: as many of a grid are run where a barrier is left out; what the others would write is 0.
        backward: threads take turns in descending order.
        left_out: by kernel name, the number of the barrier that its blocks pass without waiting.
        place_left_out: by kernel name, the same for all barriers at one place of the source.
        barriers: by kernel name, at how many barriers a block of it waited.
        places: by kernel name, at how many places of the source.
    """

    def __init__(self, folder: Path, flags: Sequence[str] = ()) -> None:
        super().__init__(folder=folder)
        self._options = (*_FLAGS, *flags)
        self.blocks: int | None = None
        self.backward = False
        self.left_out: dict[str, int] = {}
        self.place_left_out: dict[str, int] = {}
        self.barriers: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self._folder = folder

    def load(self, kernels: Iterable[Kernel]) -> dict[str, Launcher]:
        """Launchers by kernel name."""
        by_name = {kernel.name: kernel for kernel in kernels}
        library = ctypes.CDLL(str(self._library(by_name)))
        return {name: self._launcher(library, kernel) for name, kernel in by_name.items()}

    def _library(self, kernels: dict[str, Kernel]) -> Path:
        device = prelude()
        assert device.count(_SHARED) == 1
        parts = [_HEADER.read_text(encoding="utf-8"), device.replace(_SHARED, "#define SHARED HLO_SHARED")]
        parts += [kernel.source + _entry(kernel) for kernel in kernels.values()]
        source = "\n".join(parts)
        place = self._folder / f"{hashlib.sha256(source.encode()).hexdigest()[:20]}.so"
        if not place.exists():
            command = [compiler()[0], *self._options, "-o", str(place), "-"]
            subprocess.run(command, input=source, encoding="utf-8", check=True, timeout=300)
        return place

    def _launcher(self, library: ctypes.CDLL, kernel: Kernel) -> Launcher:
        name = kernel.name
        function = library[f"run_{name}"]
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_longlong], None
        names = ("left_out", "place_left_out", "most_barriers", "place_count")
        left_out, place, most, places = (ctypes.c_longlong.in_dll(library, n) for n in names)
        backward = ctypes.c_int.in_dll(library, "backward")

        def launch(pointers: int, grid: int) -> None:
            left_out.value = self.left_out.get(name, -1)
            place.value = self.place_left_out.get(name, -1)
            backward.value = self.backward
            if self.blocks is not None and (name in self.left_out or name in self.place_left_out):
                _clear_outputs(kernel, pointers)
                grid = min(grid, self.blocks)
            function(pointers, grid)
            self.barriers[name] = max(most.value, self.barriers.get(name, 0))
            self.places[name] = max(places.value, self.places.get(name, 0))

        return launch


def _entry(kernel: Kernel) -> str:
    """C functions that run one thread, and a grid."""
    found = re.search(rf" {kernel.name}\((.*)\); }}", kernel.launcher)
    assert found is not None
    return (
        f"static void start_{kernel.name}(void** pointers) {{ {kernel.name}({found[1]}); }}\n"
        f'extern "C" void run_{kernel.name}(void** pointers, i64 grid) '
        f"{{ run_grid(start_{kernel.name}, pointers, grid); }}\n"
    )


def _clear_outputs(kernel: Kernel, pointers: int) -> None:
    if kernel.in_place is not None:
        return
    count = len(kernel.inputs)
    places = (ctypes.c_void_p * (count + len(kernel.outputs))).from_address(pointers)
    for place, output in zip(places[count:], kernel.outputs):
        ctypes.memset(place, 0, size_of(output) * dtype_of(kind_of(output)).itemsize)
