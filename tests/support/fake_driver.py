"""A folder with a stand-in for a GPU: the driver, cuBLAS, NVRTC, and an `nvcc` that is g++.

The real pycuda runs on it, and so everything of the backend `cuda` but the hardware: with the folder's `lib`
in LD_LIBRARY_PATH and its `bin` first in PATH, in a process of its own, since the loader reads the former
when a process starts.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hlotool.backends.cuda_emu.backend import FLAGS

_SOURCE = Path(__file__).with_name("fake_driver.c")

#: Further libraries, by what they are made of.
_LIBRARIES = {"fake_cublas.c": "libcublas.so.13", "fake_nvrtc.c": "libnvrtc.so.13"}

#: Of a call that the stand-in does not know. CUDA driver API: CUDA_ERROR_NOT_SUPPORTED.
_NOT_SUPPORTED = 801

#: Says what nvcc says, and compiles with g++. ptxas's lines are made up, one for each kernel.
_NVCC = """#!/bin/bash
case " $* " in
  *" --version "*) echo "Cuda compilation tools, release 13.0, stand-in"; exit;;
  *" --list-gpu-code "*) printf 'sm_%s\\n' 75 90 100; exit;;
esac
while [ $# -gt 1 ]; do case "$1" in -o) made=$2; shift;; esac; shift; done
g++ {flags} -o "$made" "$1" || exit
grep -o 'KERNEL(k[0-9a-f]*' "$1" | cut -c8- | while read -r name; do
  echo "ptxas info : Compiling entry function '$name' for 'sm_90'"
  echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
  echo "ptxas info : Used 24 registers, 1024 bytes smem"
done >&2
"""


def missing() -> str:
    """What is missing here to run pycuda on the stand-in; nothing if empty."""
    if _extension() is None:
        return "pycuda is not installed"
    return next((f"there is no {tool}" for tool in ("gcc", "g++", "nm") if shutil.which(tool) is None), "")


def _extension() -> Path | None:
    """pycuda's compiled part, found without importing it."""
    spec = importlib.util.find_spec("pycuda")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("_driver*.so"), None)


def build(folder: Path) -> None:
    """Make `lib/lib….so.…` and `bin/nvcc` in a folder."""
    extension = _extension()
    assert extension is not None
    library, tools = folder / "lib", folder / "bin"
    library.mkdir()
    tools.mkdir()
    compiled, rest = library / "driver.o", library / "rest.c"
    _run("gcc", "-w", "-O1", "-fPIC", "-c", str(_SOURCE), "-o", str(compiled))
    # pycuda binds all symbols when it is loaded.
    left = _symbols(extension, "--undefined-only", "U") - _symbols(compiled, "--defined-only", "T")
    rest.write_text(
        "".join(f"int {name}(void) {{ return {_NOT_SUPPORTED}; }}\n" for name in sorted(left)),
        encoding="utf-8",
    )
    soname = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    _run("gcc", "-w", *soname, str(compiled), str(rest), "-ldl", "-o", str(library / "libcuda.so.1"))
    for source, name in _LIBRARIES.items():
        made = ["-o", str(library / name), f"-Wl,-soname,{name}"]
        _run("gcc", "-w", "-O2", "-shared", "-fPIC", str(_SOURCE.with_name(source)), *made)
    (tools / "nvcc").write_text(_NVCC.format(flags=" ".join(FLAGS)), encoding="utf-8")
    (tools / "nvcc").chmod(0o755)


def _symbols(file: Path, which: str, kind: str) -> set[str]:
    dynamic = [] if file.suffix == ".o" else ["-D"]
    listed = _run("nm", *dynamic, which, str(file))
    return set(re.findall(rf"^[\s0-9a-f]* {kind} (cu[A-Z]\w*)$", listed, re.MULTILINE))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """Variables of a process that finds the stand-in; `settings` are the driver's own (see its source)."""
    root = str(Path(__file__).resolve().parents[2])
    search = {
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([root, str(Path(root) / "tests")]),
        "HLOTOOL_CACHE": str(folder / "cache"),
    }
    return {**os.environ, **search, **settings}


def run_case(folder: Path, name: str, **settings: str) -> Any:
    """What a case of `support.cuda_cases` returns, in a process that finds the stand-in."""
    done = subprocess.run(
        [sys.executable, "-m", "support.cuda_cases", name],
        env=environment(folder, **settings),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
