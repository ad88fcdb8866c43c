"""The compilers that make kernels for a GPU: NVRTC through ctypes (version 12 or 13), and nvcc.

NVIDIA's libraries are found wherever they are installed: for the loader, in a toolkit, or as a wheel.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from hlotool.errors import BackendCrashed, BackendTimeout, BackendUnavailable, UsageError

#: Major versions of CUDA that are supported, the newest first.
MAJORS: Final = (13, 12)


def open_libraries(name: str, newest: int = MAJORS[0]) -> Iterator[ctypes.CDLL]:
    """A library in each version and place in which it loads, newer major versions of CUDA first.

    Args:
        name: such as `cublas`.
        newest: major version of CUDA; a driver runs none that is newer than itself.
    """
    seen = set()
    for file in (f"lib{name}.so.{major}" for major in MAJORS if major <= newest):
        for place in (file, *(str(path) for folder in _folders() for path in folder.glob(file))):
            try:
                library = ctypes.CDLL(place)
                # Opened by name when it is needed, which some versions only find where the loader looks.
                for part in Path(place).parent.glob(f"lib{name}-builtins.so.*") if place != file else ():
                    ctypes.CDLL(str(part))
            except OSError:
                continue
            # The loader finds by its name what was loaded from elsewhere before.
            if library._handle not in seen:
                seen.add(library._handle)
                yield library


def toolkits() -> list[Path]:
    """Where CUDA toolkits may be: as the environment says, and in the usual place."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    return [Path(home) for home in (*homes, "/usr/local/cuda") if home]


def _folders() -> Iterator[Path]:
    yield from (toolkit / "lib64" for toolkit in toolkits())
    spec = importlib.util.find_spec("nvidia")
    for wheels in spec.submodule_search_locations or () if spec is not None else ():
        yield from sorted(Path(wheels).glob("*/lib"))


#: No contraction of a * b + c, denormals kept, division and roots rounded: as HLO says, and as on the CPU.
OPTIONS: Final = ("-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")

#: Of the compiler's messages, how many characters an error keeps.
_KEPT = 4000


def refusal(version: str, log: str) -> BackendCrashed:
    """The error for a source that a compiler does not take, with the first reason of its log."""
    said = next((line for line in log.splitlines() if "error" in line), "no reason given")
    return BackendCrashed("cuda", f"{version} refused a generated kernel: {said}", log[:_KEPT])


#: What pip installs with NVRTC, by the major version of CUDA.
EXTRAS: Final = {13: "'hlotool[cuda]'", 12: "'hlotool[cuda12]'"}

#: The first driver of each. CUDA toolkit release notes, "Minimum Required Driver Version".
DRIVERS: Final = {13: "580", 12: "525"}

#: Seconds for one compilation.
_LIMIT = 600


class Compiler(Protocol):
    """Makes machine code from CUDA C++.

    Attributes:
        version: name and version, such as `NVRTC 13.0`.
        toolkit: the version as numbers.
        options: that it is given.
        architectures: that it knows, such as `sm_90`.
    """

    @property
    def version(self) -> str: ...

    @property
    def toolkit(self) -> tuple[int, int]: ...

    @property
    def options(self) -> tuple[str, ...]: ...

    @property
    def architectures(self) -> frozenset[str]: ...

    def compile(self, source: str, architecture: str) -> tuple[bytes, str]:
        """The cubin, and what the compiler said, with the lines of `ptxas -v`.

        Raises:
            BackendCrashed: it refuses the source, or dies.
            BackendTimeout: it takes too long.
        """


@cache
def find_compiler(name: str = "", architecture: str = "", driver: tuple[int, int] | None = None) -> Compiler:
    """A compiler that serves, NVRTC before nvcc and newer ones before older ones.

    Args:
        name: `nvrtc` or `nvcc`; either if empty.
        architecture: that it has to know, such as `sm_90`; any if empty.
        driver: the CUDA version of the driver that is to run the kernels; any if None.

    Raises:
        BackendUnavailable: there is none.
        UsageError: no compiler is called so.
    """
    if name not in ("", "nvrtc", "nvcc"):
        raise UsageError(f"backend cuda: there is no compiler {name!r}; there are nvrtc and nvcc")
    objections = []
    for compiler in installed_compilers(name):
        said = objection(compiler, architecture, driver)
        if not said:
            return compiler
        objections.append(said)
    if objections:
        raise BackendUnavailable("backend cuda: " + "; ".join(dict.fromkeys(objections)))
    wanted = {"": "NVRTC or nvcc", "nvrtc": "NVRTC", "nvcc": "nvcc"}[name]
    raise BackendUnavailable(
        f"backend cuda compiles kernels with {wanted}, which is not here: "
        f"pip install {EXTRAS[MAJORS[0]]} brings NVRTC; nvcc is looked for on the PATH and in CUDA_HOME"
    )


def installed_compilers(name: str = "") -> Iterator[Compiler]:
    """All that are here, or all of one name, in the order in which they are preferred."""
    if name != "nvcc":
        yield from find_nvrtcs()
    if name != "nvrtc" and (path := find_nvcc()) is not None:
        yield Nvcc(path)


def objection(compiler: Compiler, architecture: str = "", driver: tuple[int, int] | None = None) -> str:
    """Why a compiler makes no kernels for an architecture or a driver, and what does; empty if it makes them.

    A driver runs what any minor version of its own major version made, and all older ones (CUDA compatibility
    guide). That a kernel is for a newer architecture than the driver knows cannot be: it has told it.
    """
    major = compiler.toolkit[0]
    if driver is not None and major > driver[0]:
        older = f", or pip install {EXTRAS[driver[0]]} for NVRTC {driver[0]}" if driver[0] in EXTRAS else ""
        return (
            f"{compiler.version} compiles for drivers of CUDA {major} (version {DRIVERS[major]}) and newer, "
            f"not for this one of CUDA {driver[0]}.{driver[1]}: update the driver{older}"
        )
    if architecture and architecture not in compiler.architectures:
        known = sorted(compiler.architectures, key=_number)
        is_old = bool(known) and _number(architecture) < _number(known[0])
        older = f"an older version does (pip install {EXTRAS[12]})" if major > 12 else "an older version does"
        which = older if is_old else "a newer version does"
        return f"{compiler.version} compiles for {', '.join(known)}, not for {architecture}: {which}"
    return ""


def _number(architecture: str) -> int:
    return int(re.sub(r"\D", "", architecture))


def find_nvcc() -> str | None:
    """The path of nvcc, if there is one."""
    if path := shutil.which("nvcc"):
        return path
    places = [toolkit / "bin" / "nvcc" for toolkit in toolkits()]
    return next((str(place) for place in places if os.access(place, os.X_OK)), None)


class Nvcc:
    """The compiler as a program.

    Args:
        path: of nvcc.
    """

    options = OPTIONS

    def __init__(self, path: str) -> None:
        self._path = path

    @cached_property
    def toolkit(self) -> tuple[int, int]:
        """See `Compiler`; zeros where it does not tell."""
        found = re.search(r"release (\d+)\.(\d+)", self._run(["--version"]).stdout)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @cached_property
    def version(self) -> str:
        """See `Compiler`."""
        major, minor = self.toolkit
        return f"nvcc {major}.{minor}" if major else "nvcc"

    @cached_property
    def architectures(self) -> frozenset[str]:
        """See `Compiler`."""
        return frozenset(self._run(["--list-gpu-code"]).stdout.split())

    def compile(self, source: str, architecture: str) -> tuple[bytes, str]:
        """See `Compiler`."""
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "kernels.cu", Path(folder) / "kernels.cubin"
            given.write_text(source, encoding="utf-8")
            flags = [f"-arch={architecture}", "--cubin", "-Xptxas", "-v", *self.options]
            done = self._run([*flags, "-o", str(made), str(given)])
            log = done.stdout + done.stderr
            if done.returncode:
                raise refusal(self.version, log)
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


# NVRTC, the compiler as a library, through ctypes: version 12 or 13, of a toolkit or of NVIDIA's wheels.
#
# NVRTC user guide; it needs neither a GPU nor a driver.


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
        return self._compile(source, [f"-arch={architecture}", "--ptxas-options=-v"], "CUBIN")

    def ptx(self, source: str, architecture: str) -> str:
        """PTX for an architecture, such as `sm_90`; errors as of `compile`."""
        virtual = architecture.replace("sm_", "compute_")
        return self._compile(source, [f"-arch={virtual}"], "PTX")[0].rstrip(b"\0").decode()

    def _compile(self, source: str, options: list[str], what: str) -> tuple[bytes, str]:
        """What the compiler makes of a source, and what it says."""
        options = [*options, *self.options]
        encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        program = ctypes.c_void_p()
        text = source.encode()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, b"kernels.cu", 0, None, None)
        try:
            status = self._library.nvrtcCompileProgram(program, len(options), encoded)
            log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if status:
                raise refusal(self.version, log)
            return self._bytes(program, what), log
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
