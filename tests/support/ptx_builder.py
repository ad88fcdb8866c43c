"""Generated CUDA kernels compiled to PTX by NVRTC, and executed without a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np

from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda.codegen.schedules import THREADS, Kernel, kind_of, size_of
from hlotool.backends.cuda.toolchain import Nvrtc
from hlotool.backends.cuda_emu.backend import Builder, Launcher
from hlotool.backends.gpu_ptx.launch import launch
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.model import PtxProgram
from hlotool.backends.gpu_ptx.program import parse_ptx
from hlotool.ir.arrays import dtype_of


class PtxBuilder(Builder):
    """Compiles kernels to PTX.

    Args:
        compiler: an NVRTC.
        seed: of all launches.

    Attributes:
        instructions: that threads have executed.
    """

    def __init__(self, compiler: Nvrtc, seed: int = 0) -> None:
        super().__init__()
        self._nvrtc = compiler
        self.seed = seed
        self.instructions = 0

    def load(self, kernels: Iterable[Kernel]) -> dict[str, Launcher]:
        """Launchers by kernel name."""
        by_name = {kernel.name: kernel for kernel in kernels}
        if not by_name:
            return {}
        source = "\n".join([prelude(), *(kernel.source for kernel in by_name.values())])
        program = parse_ptx(self._nvrtc.ptx(source, "sm_90"), "kernels.ptx")
        return {name: self._launcher(program, kernel) for name, kernel in by_name.items()}

    def _launcher(self, program: PtxProgram, kernel: Kernel) -> Launcher:
        buffers = (*kernel.inputs, *kernel.outputs)
        sizes = [size_of(buffer) * dtype_of(kind_of(buffer)).itemsize for buffer in buffers]

        def run(pointers: int, grid: int) -> None:
            hosts = list((ctypes.c_void_p * len(buffers)).from_address(pointers))
            memory = Memory()
            places: dict[int, int] = {}
            for number, (host, size) in enumerate(zip(hosts, sizes)):
                given = number < len(kernel.inputs) or kernel.in_place is not None
                if size and host not in places:
                    data = ctypes.string_at(host, size) if given else None
                    places[host] = memory.allocate(size, initial=data)
            values = [places.get(host, memory.allocate(0)).to_bytes(8, "little") for host in hosts]
            done = launch(
                program.kernels[kernel.name], (grid, 1, 1), (THREADS, 1, 1), values, memory, seed=self.seed
            )
            self.instructions += done.thread_instructions
            for host, size in list(zip(hosts, sizes))[len(kernel.inputs) :]:
                if size:
                    assert memory.written(places[host], size).all()
                    result = memory.read(places[host], size)
                    ctypes.memmove(host, np.ascontiguousarray(result).ctypes.data, size)

        return run
