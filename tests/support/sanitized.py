"""Kernels under GCC's address and undefined-behaviour sanitizers, in a process of their own.

    assert sanitized("fuzz", "fusions", 0, 24).returncode == 0        # runs random fusions 0 to 23

The sanitizers stop that process at the first fault and say on stderr what it was. NumPy allocates arrays by
malloc, so that the memory around each of them is guarded.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hlotool.backends.cuda_emu.backend import Builder, EmulatorBackend
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from support import kernels
from support.fibers import FiberBuilder
from support.kernel_fuzz import BATCH, fuzz_program

TESTS = Path(__file__).resolve().parent.parent

#: Beyond what `undefined` stands for: floats converted to integers that cannot hold them.
FLAGS = (
    "-O1", "-g1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)  # fmt: skip

#: Of kernels as CUDA runs them: vectors have to be aligned. The address sanitizer does not know fibers.
_FIBER_FLAGS = tuple(flag.replace("address,", "") for flag in FLAGS)

#: Kernels that do what the sanitizers have to notice, by what they say then.
PLANTED = {
    "heap-buffer-overflow": "out0[0] = p0[64];",
    "heap-buffer-overflow ": "out0[64] = 1;",
    "misaligned address": "out0[0] = *(const float*)((const char*)p0 + 2);",
    "signed integer overflow": "const int big = 2147483647 - (int)p0[0]; out0[0] = big + 1;",
    "shift exponent": "const int by = 32 + (int)p0[0]; out0[0] = 1 << by;",
    "outside the range": "out0[0] = (int)(p0[0] + 1e30f);",
    "index 300 out of bounds": "SHARED(float, shared, NT); shared[300 + (int)p0[0]] = out0[0];",
}

#: Stands before what is said of each.
MARK = "planted fault"


def sanitized(*arguments: object, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """This module run as a program under the sanitizers' library."""
    libraries = [] if arguments[0] == "fibers" else ["libasan.so", "libstdc++.so"]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(map(_library, libraries)),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join(map(str, (TESTS.parent, TESTS))),
    }
    command = [sys.executable, "-m", "support.sanitized", *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, encoding="utf-8", timeout=timeout, check=False
    )


def _library(name: str) -> str:
    """The file that g++ links under that name; the name itself where it has none."""
    command = ["g++", f"-print-file-name={name}"]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=60, check=True
    ).stdout.strip()


@cache
def is_installed() -> bool:
    """Whether g++ has the sanitizers' libraries."""
    return all(Path(_library(name)).is_absolute() for name in ("libasan.so", "libubsan.so"))


def _run_fuzz(kind: str, first: str, count: str) -> None:
    end = int(first) + int(count)
    for start in range(int(first), end, BATCH):
        print(f"{kind} from {start}", file=sys.stderr, flush=True)
        module, arguments = fuzz_program(kind, start, min(BATCH, end - start))
        for backward in (False, True):
            kernels.emulator(backward).compile(module).run(arguments)


def _run_fibers(kind: str, first: str, count: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        backend = EmulatorBackend(builder=FiberBuilder(Path(folder), _FIBER_FLAGS))
        for start in range(int(first), int(first) + int(count), BATCH):
            print(f"{kind} from {start} by fibers", file=sys.stderr, flush=True)
            module, arguments = fuzz_program(kind, start, min(BATCH, int(first) + int(count) - start))
            backend.compile(module).run(arguments)


def _run_programs(folder: str) -> None:
    """Those of a dump that can be run on one device with generated inputs."""
    for found in open_dump(Path(folder)).modules:
        for stage in (*found.stages, *found.others):
            print(stage.source, file=sys.stderr, flush=True)
            with suppress(HlotoolError):
                module = load_stage(found, stage)
                kernels.emulator().compile(module).run(list(generate_inputs(module, 1).values))


def _run_tests(*arguments: str) -> None:
    # Where hlotool is installed it brings a plugin of pytest, which would rather have been imported by it.
    ignored = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    sys.exit(pytest.main(["-x", "-q", "-s", "-p", "no:cacheprovider", "-W", ignored, *arguments]))


def _run_planted() -> None:
    """Each in a process of its own, behind a line with its number."""
    sources = [
        f"KERNEL(planted{n}, const float* p0, float* out0) {{ {body} }}\n"
        f'extern "C" void run_planted{n}(void** p, i64) {{ planted{n}((const float*)p[0], (float*)p[1]); }}\n'
        for n, body in enumerate(PLANTED.values())
    ]
    library = ctypes.CDLL(str(Builder(flags=FLAGS).compile(sources, [])))
    given, result = np.zeros(64, np.float32), np.zeros(64, np.float32)
    pointers = (ctypes.c_void_p * 2)(given.ctypes.data, result.ctypes.data)
    for number in range(len(PLANTED)):
        print(f"{MARK} {number}", file=sys.stderr, flush=True)
        if process := os.fork():
            print(f"status {os.waitpid(process, 0)[1]}", file=sys.stderr, flush=True)
        else:
            library[f"run_planted{number}"](pointers, 1)
            os._exit(0)


def main(arguments: Sequence[str]) -> None:
    """`fuzz` or `fibers` KIND FIRST COUNT, `planted`, `programs FOLDER`, or `tests` and options of pytest."""
    # For this process alone: compilers that it starts need no guard.
    os.environ.pop("LD_PRELOAD", None)
    kernels.flags = FLAGS
    commands: dict[str, Callable[..., None]] = {
        "fuzz": _run_fuzz,
        "fibers": _run_fibers,
        "planted": _run_planted,
        "programs": _run_programs,
        "tests": _run_tests,
    }
    commands[arguments[0]](*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
