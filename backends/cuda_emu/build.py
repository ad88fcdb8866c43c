"""Generated kernels compiled by g++ for this machine's CPU.

All missing kernels of a module go into one library: most of the time g++ takes is for the prelude.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from hlotool.backends.cuda.build import KernelCache
from hlotool.backends.cuda.codegen.prelude import prelude
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.numpy import ownership
from hlotool.errors import BackendCrashed, BackendTimeout, BackendUnavailable
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
        shares = ownership.thread_count() * _SHARES if grid >= _SEVERAL else 1
        edges = [grid * share // shares for share in range(shares + 1)]
        # Other threads run meanwhile: calls of C functions let go of the interpreter's lock.
        ownership.each(lambda part: function(pointers, grid, *part), list(pairwise(edges)))

    return launch
