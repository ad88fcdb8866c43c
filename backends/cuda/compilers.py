"""The compilers that make kernels for a GPU: NVRTC, and nvcc."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from hlotool.errors import BackendCrashed, BackendTimeout, BackendUnavailable, UsageError

#: No contraction of a * b + c, denormals kept, division and roots rounded: as HLO says, and as on the CPU.
OPTIONS: Final = ("-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")

#: Seconds for one compilation.
_LIMIT = 600

#: Of the compiler's messages, how many characters an error keeps.
_KEPT = 4000


class Compiler(Protocol):
    """Makes machine code from CUDA C++.

    Attributes:
        version: name and version, such as `NVRTC 13.0`.
        architectures: that it knows, such as `sm_90`.
    """

    @property
    def version(self) -> str: ...

    @property
    def architectures(self) -> frozenset[str]: ...

    def compile(self, source: str, architecture: str) -> tuple[bytes, str]:
        """The cubin, and what the compiler said, with the lines of `ptxas -v`.

        Raises:
            BackendCrashed: it refuses the source, or dies.
            BackendTimeout: it takes too long.
        """


@cache
def find_compiler(name: str = "") -> Compiler:
    """A compiler by its name, `nvrtc` or `nvcc`; the first of them that is here if none is given.

    Raises:
        BackendUnavailable: it is not here.
        UsageError: there is none of that name.
    """
    if name not in ("", "nvrtc", "nvcc"):
        raise UsageError(f"backend cuda: there is no compiler {name!r}; there are nvrtc and nvcc")
    if name != "nvcc" and (nvrtc := find_nvrtc()) is not None:
        return nvrtc
    path = find_nvcc() if name != "nvrtc" else None
    if path is None:
        wanted = {"": "NVRTC or nvcc", "nvrtc": "NVRTC", "nvcc": "nvcc"}[name]
        raise BackendUnavailable(
            f"backend cuda compiles kernels with {wanted}, which is not here: "
            "pip install 'hlotool[cuda]' brings NVRTC; nvcc is looked for on the PATH and in CUDA_HOME"
        )
    return Nvcc(path)


def find_nvrtc() -> Nvrtc | None:
    """NVRTC, if its bindings are installed and find it."""
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        return None
    try:
        return Nvrtc()
    except (ImportError, OSError, RuntimeError):
        # The bindings can be imported without the library; then the first call fails.
        return None


def find_nvcc() -> str | None:
    """The path of nvcc, if there is one."""
    if path := shutil.which("nvcc"):
        return path
    places = [toolkit / "bin" / "nvcc" for toolkit in toolkits()]
    return next((str(place) for place in places if os.access(place, os.X_OK)), None)


def toolkits() -> list[Path]:
    """Where CUDA toolkits may be: as the environment says, and in the usual place."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    return [Path(home) for home in (*homes, "/usr/local/cuda") if home]


class Nvrtc:
    """The compiler as a library: packages cuda-bindings and nvidia-cuda-nvrtc."""

    def __init__(self) -> None:
        from cuda.bindings import nvrtc

        self._nvrtc: Any = nvrtc
        major, minor = self._call("nvrtcVersion")
        self.version = f"NVRTC {major}.{minor}"

    @cached_property
    def architectures(self) -> frozenset[str]:
        """See `Compiler`."""
        count = self._call("nvrtcGetNumSupportedArchs")[0]
        return frozenset(f"sm_{number}" for number in self._call("nvrtcGetSupportedArchs")[0][:count])

    def compile(self, source: str, architecture: str) -> tuple[bytes, str]:
        """See `Compiler`."""
        options = [f"-arch={architecture}", "--ptxas-options=-v", *OPTIONS]
        encoded = [option.encode() for option in options]
        program = self._call("nvrtcCreateProgram", source.encode(), b"kernels.cu", 0, [], [])[0]
        try:
            (status,) = self._nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
            log = self._text(program, "ProgramLog")
            if status.value:
                raise _refusal(self.version, log)
            return self._bytes(program, "CUBIN"), log
        finally:
            self._call("nvrtcDestroyProgram", program)

    def _text(self, program: Any, what: str) -> str:
        return self._bytes(program, what).rstrip(b"\0").decode(errors="replace")

    def _bytes(self, program: Any, what: str) -> bytes:
        found = bytearray(self._call(f"nvrtcGet{what}Size", program)[0])
        self._call(f"nvrtcGet{what}", program, found)
        return bytes(found)

    def _call(self, name: str, *arguments: object) -> tuple[Any, ...]:
        status, *results = getattr(self._nvrtc, name)(*arguments)
        if status.value:
            raise BackendCrashed("cuda", f"{name} failed: {status}")
        return tuple(results)


def _refusal(version: str, log: str) -> BackendCrashed:
    said = next((line for line in log.splitlines() if "error" in line), "no reason given")
    return BackendCrashed("cuda", f"{version} refused a generated kernel: {said}", log[:_KEPT])


class Nvcc:
    """The compiler as a program.

    Args:
        path: of nvcc.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @cached_property
    def version(self) -> str:
        """See `Compiler`."""
        found = re.search(r"release ([\d.]+)", self._run(["--version"]).stdout)
        return f"nvcc {found[1]}" if found else "nvcc"

    @cached_property
    def architectures(self) -> frozenset[str]:
        """See `Compiler`."""
        return frozenset(self._run(["--list-gpu-code"]).stdout.split())

    def compile(self, source: str, architecture: str) -> tuple[bytes, str]:
        """See `Compiler`."""
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "kernels.cu", Path(folder) / "kernels.cubin"
            given.write_text(source, encoding="utf-8")
            flags = [f"-arch={architecture}", "--cubin", "-Xptxas", "-v", *OPTIONS]
            done = self._run([*flags, "-o", str(made), str(given)])
            log = done.stdout + done.stderr
            if done.returncode:
                raise _refusal(self.version, log)
            return made.read_bytes(), log

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self._path, *arguments],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BackendTimeout("cuda", f"nvcc took more than {_LIMIT} seconds") from error
        except OSError as error:
            raise BackendUnavailable(f"backend cuda: {self._path} does not run: {error}") from error
