"""The backend `cuda-emu`: fusions formed, kernels generated, compiled by g++, run on the CPU with NumPy.

All missing kernels of a module go into one library: most of the time g++ takes is for the prelude.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.cuda.backend import KernelCache
from hlotool.backends.cuda.codegen.elements import array_shape
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.own_kernels import multiply_adds
from hlotool.backends.cuda.codegen.partition import KernelProgram
from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda.codegen.schedules import Buffer, Kernel, Part, kind_of
from hlotool.backends.cuda.kernel_backend import KernelBackend
from hlotool.backends.cuda.machine import SharedMemory
from hlotool.backends.numpy import threads
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan, Run, owns_item
from hlotool.backends.numpy.registry import Calling
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.errors import BackendCrashed, BackendTimeout, BackendUnavailable
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.system.files import processor_features

#: No contraction of a * b + c: every operation rounds, as HLO says. Vectors change no bits.
#: The flags of floating-point exceptions are never read: if they counted, vectors without masks (AVX2) could
#: not compute what only some lanes need, and loops that choose between two results would stay scalar.
FLAGS = (
    "-std=c++17", "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native",
    "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w", "-x", "c++",
)  # fmt: skip

#: Seconds for one compilation.
_LIMIT = 300

#: Kernels of fewer blocks are done before another thread has begun.
_SEVERAL = 64
#: Parts for each thread: the slower ones take fewer.
_SHARES = 4

#: Runs a kernel: pointers of inputs and outputs, number of blocks.
Launcher = Callable[[Any, int], None]


@cache
def compiler() -> tuple[str, str]:
    """Path and version of g++.

    Raises:
        BackendUnavailable: there is none.
    """
    path = shutil.which("g++")
    if path is None:
        raise BackendUnavailable("backend cuda-emu compiles kernels with g++, and there is none on the PATH")
    done = subprocess.run([path, "-dumpfullversion"], capture_output=True, encoding="utf-8", timeout=60)
    if done.returncode:
        raise BackendUnavailable(f"backend cuda-emu: {path} does not run: {done.stderr.strip()}")
    return path, done.stdout.strip()


class Builder:
    """Compiles and loads kernels.

    Args:
        backward: the threads of a block run in descending order.
        flags: further options of g++, which win over `FLAGS`.
        folder: of the compiled kernels; the cache folder if None.
    """

    def __init__(self, backward: bool = False, flags: Sequence[str] = (), folder: Path | None = None) -> None:
        self._path, version = compiler()
        self._flags = (*FLAGS, *flags, *(("-DHLO_BACKWARD",) if backward else ()))
        made_from = [version, platform.machine(), processor_features(), prelude(), *self._flags]
        key = hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:20]
        self._cache = KernelCache(key, folder)

    def load(self, kernels: Iterable[Kernel]) -> dict[str, Launcher]:
        """Launchers by kernel name; compiles what is missing.

        Raises:
            BackendCrashed: g++ refuses the source.
            BackendTimeout: it takes too long.
        """
        by_name = {kernel.name: kernel for kernel in kernels}
        known = {name: self._cache.find(_key(kernel)) for name, kernel in by_name.items()}
        places = {name: entry.library for name, entry in known.items() if entry is not None}
        missing = [by_name[name] for name in by_name if name not in places]
        if missing:
            library = self.compile([k.source + k.launcher for k in missing], list(map(_key, missing)))
            places.update({kernel.name: library for kernel in missing})
        return {name: _launcher(str(place), name) for name, place in places.items()}

    def compile(self, sources: Sequence[str], keys: Sequence[str]) -> Path:
        """One library of several kernels, in the cache, to be found by their keys."""
        self._cache.folder.mkdir(parents=True, exist_ok=True)
        source = "\n".join([prelude(), *sources])
        name = "lib" + hashlib.sha256(source.encode()).hexdigest()[:20] + ".so"
        with tempfile.TemporaryDirectory(dir=self._cache.folder) as folder:
            made = Path(folder) / name
            self._run_compiler(source, made)
            self._cache.add(made, {key: {} for key in keys})
        return self._cache.folder / name

    def _run_compiler(self, source: str, target: Path) -> None:
        command = [self._path, *self._flags, "-o", str(target), "-"]
        try:
            done = subprocess.run(
                command, input=source.encode(), capture_output=True, timeout=_LIMIT, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise BackendTimeout("cuda-emu", f"g++ took more than {_LIMIT} seconds") from error
        if done.returncode:
            raise BackendCrashed(
                "cuda-emu", "g++ refused a generated kernel", done.stderr[:4000].decode("utf-8", "replace")
            )


def _key(kernel: Kernel) -> str:
    """What the cache finds a kernel by: its launcher has its name, which was made from its source."""
    return hashlib.sha256(kernel.launcher.encode()).hexdigest()[:20]


@cache
def _library(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def _launcher(path: str, name: str) -> Launcher:
    function: Any = getattr(_library(path), f"run_{name}")
    function.argtypes = [ctypes.c_void_p, *[ctypes.c_longlong] * 3]
    function.restype = None

    def launch(pointers: int, grid: int) -> None:
        shares = threads.thread_count() * _SHARES if grid >= _SEVERAL else 1
        edges = [grid * share // shares for share in range(shares + 1)]
        # Other threads run meanwhile: calls of C functions let go of the interpreter's lock.
        threads.each(lambda part: function(pointers, grid, *part), list(pairwise(edges)))

    return launch


#: Multiplications and additions from which on BLAS is faster than a generated kernel: 52 against 28
#: microseconds for f32 at this size, and 3 times as fast and more beyond.
_LARGE_PRODUCT = 1 << 18


class EmulatorLoading(SharedMemory):
    """The kernels of one module; values are NumPy arrays. See `Loading`."""

    def __init__(
        self, builder: Builder, precision: Precision = Precision.HLO, calls_libraries: bool = True
    ) -> None:
        self.precision = precision
        self._builder = builder
        self._calls_libraries = calls_libraries
        self._launchers: dict[str, Launcher] = {}

    def build(self, kernels: Iterable[Kernel]) -> None:
        self._launchers.update(self._builder.load(kernels))

    def launch(self, instruction: Instruction, program: KernelProgram, positions: Sequence[int]) -> Step:
        return Calling(Launch(program, positions, self._launchers))

    def library_call(self, instruction: Instruction, host: Lowering) -> tuple[Step, Sequence[Kernel]] | None:
        if not self._calls_libraries or multiply_adds(instruction) < _LARGE_PRODUCT:
            return None
        return host.kernel(instruction), ()

    def run(self, plan: Plan, arguments: Sequence[Any], run: Run) -> Value:
        result: Value = plan(list(arguments), run)
        return result


class EmulatorBackend(KernelBackend):
    """Runs generated kernels on the CPU.

    Args:
        name: as on the command line.
        fuses: operations are fused first.
        precision: of narrow floats inside of fusions.
        calls_libraries: large products are left to BLAS.
        builder: compiles the kernels; for this machine, with threads in ascending order, if None.

    Raises:
        BackendUnavailable: there is no g++.
    """

    def __init__(
        self,
        name: str = "cuda-emu",
        *,
        fuses: bool = True,
        precision: Precision = Precision.HLO,
        calls_libraries: bool = True,
        builder: Builder | None = None,
    ) -> None:
        super().__init__(name, fuses, precision, calls_libraries)
        self._builder = builder or Builder()

    @property
    def version(self) -> str:
        """`cuda-emu (g++ X.Y.Z)`."""
        return f"{self.name} (g++ {compiler()[1]})"

    def loading(self) -> EmulatorLoading:
        """The kernels of one module on this CPU."""
        return EmulatorLoading(self._builder, self.precision, self._calls_libraries)


# Programs of kernels as steps of a plan: NumPy arrays in, NumPy arrays out.


class Launch:
    """Runs the kernels of one instruction.

    Args:
        program: what to run.
        positions: for each input the number of the operand that it is.
        launchers: compiled kernels by name; filled before the first run.
    """

    def __init__(
        self, program: KernelProgram, positions: Sequence[int], launchers: Mapping[str, Launcher]
    ) -> None:
        self._program = program
        self._positions = dict(zip(program.inputs, positions))
        self._launchers = launchers
        self._constants: dict[Buffer, Array] = {
            b: np.ascontiguousarray(array) for b, array in program.literals.items()
        }

    def __call__(self, values: list[Any], run: Run) -> Any:
        memory: dict[Buffer, Array] = dict(self._constants)
        for kernel in self._program.kernels:
            for buffer in kernel.inputs:
                if buffer not in memory and isinstance(buffer, Instruction):
                    memory[buffer] = np.ascontiguousarray(values[self._positions[buffer]])
            for buffer in kernel.outputs:
                memory[buffer] = self._target(kernel, buffer, memory, values)
            self._launch(kernel, memory)
        if run.probe is not None:
            for instruction, place in self._program.seen.items():
                run.probe(instruction, memory[place])
        results = [memory[output] for output in self._program.outputs]
        # Plans hold scalars as NumPy scalars.
        values.clear()
        return self._program.packed(r if r.ndim else r[()] for r in results)

    def _target(
        self, kernel: Kernel, buffer: Buffer, memory: Mapping[Buffer, Array], values: list[Any]
    ) -> Array:
        base = kernel.in_place
        if base is None:
            dims = (buffer.size,) if isinstance(buffer, Part) else array_shape(buffer).dims
            return np.empty(dims, dtype_of(kind_of(buffer)))
        if base in memory:
            return memory[base].copy()
        position = self._positions[base]
        if owns_item(values, position) and values[position].flags.c_contiguous:
            owned: Array = values[position]
            return owned
        return np.array(values[position], order="C")

    def _launch(self, kernel: Kernel, memory: Mapping[Buffer, Array]) -> None:
        arrays = [memory[buffer] for buffer in (*kernel.inputs, *kernel.outputs)]
        if not any(memory[buffer].size for buffer in kernel.outputs):
            return
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        self._launchers[kernel.name](ctypes.addressof(pointers), kernel.grid)
