"""Kernels compiled without a GPU: the compilers, what they say, what is kept, what can be missing."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hlotool.backends.cuda import OPTIONS as BACKEND_OPTIONS
from hlotool.backends.cuda import toolchain
from hlotool.backends.cuda.backend import Resources, compile_kernels, parse_resources
from hlotool.backends.cuda.codegen.elements import NotGenerated
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.partition import of_fusion, of_instruction
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.device import MAX_BLOCKS, open_device
from hlotool.backends.cuda.loading import CudaLoading
from hlotool.backends.cuda.toolchain import OPTIONS, Compiler, Nvcc, find_compiler, find_nvrtcs
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendCrashed, BackendTimeout, BackendUnavailable, UsageError
from hlotool.parser.reader import parse_module

_LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kfirst' for 'sm_90'
ptxas info    : Function properties for kfirst
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compiling entry function 'ksecond' for 'sm_90'
ptxas info    : Function properties for ksecond
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers
"""


def _kernels(*opcodes: str) -> list[Kernel]:
    lines = [f"  y{n} = f32[10] {opcode}(x)" for n, opcode in enumerate(opcodes)]
    text = "\n".join(
        [
            "HloModule m",
            "ENTRY main {",
            "  x = f32[10] parameter(0)",
            *lines,
            "  ROOT r = f32[10] copy(x)",
            "}",
        ]
    )
    instructions = parse_module(text).entry.instructions
    return [k for i in instructions if i.opcode in opcodes for k in of_instruction(i).kernels]


class _Recorder:
    """A compiler that notes what it is given."""

    options = ()

    def __init__(self, major: int = 13, *architectures: str) -> None:
        self.version = f"recorder {major}.0"
        self.toolkit = (major, 0)
        self.architectures = frozenset(architectures or ("sm_90",))
        self.sources: list[str] = []

    def compile(self, source: str, architecture: str) -> tuple[bytes, str]:
        self.sources.append(source)
        return b"cubin", ""


def test_what_ptxas_says() -> None:
    found = parse_resources(_LOG)
    assert found == {"kfirst": Resources(40, 4, 8, 16, 1024), "ksecond": Resources(12, 0, 0, 0, 0)}
    assert parse_resources("") == {}


def test_only_missing_kernels_are_compiled_and_all_at_once(tmp_path: Path) -> None:
    recorder = _Recorder()
    both = _kernels("negate", "abs")
    first = compile_kernels(both[:1], "sm_90", recorder, tmp_path)
    found = compile_kernels(_kernels("negate", "abs", "sine"), "sm_90", recorder, tmp_path)
    assert len(recorder.sources) == 2
    assert both[0].source not in recorder.sources[1]
    assert recorder.sources[1].count("KERNEL(k") == 2
    assert found[both[0].name] == first[both[0].name]
    assert {c.cubin.read_bytes() for c in found.values()} == {b"cubin"}
    assert compile_kernels([], "sm_90", recorder, tmp_path) == {}


def test_a_kernel_is_compiled_again_when_its_file_is_gone(tmp_path: Path) -> None:
    recorder, kernels = _Recorder(), _kernels("negate")
    [compiled] = compile_kernels(kernels, "sm_90", recorder, tmp_path).values()
    compiled.cubin.unlink()
    compile_kernels(kernels, "sm_90", recorder, tmp_path)
    next(compiled.cubin.parent.glob("k*.json")).write_text("{", encoding="utf-8")
    compile_kernels(kernels, "sm_90", recorder, tmp_path)
    assert len(recorder.sources) == 3


def test_an_architecture_that_the_compiler_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"recorder 13.0 compiles for sm_90, not for sm_50"):
        compile_kernels(_kernels("negate"), "sm_50", _Recorder(), tmp_path)


@pytest.fixture(params=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest) -> Compiler:
    try:
        return find_compiler(request.param)
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_compilers(compiler: Compiler, tmp_path: Path) -> None:
    found = compile_kernels(_kernels("negate", "sine"), "sm_90", compiler, tmp_path)
    assert all(0 < c.resources.registers < 256 and not c.resources.spill_stores for c in found.values())
    [cubin] = {c.cubin.read_bytes()[:4] for c in found.values()}
    assert cubin == b"\x7fELF"


def test_compilers_refuse(compiler: Compiler) -> None:
    with pytest.raises(BackendCrashed, match=r"refused a generated kernel: .*error.*nonsense") as caught:
        compiler.compile("nonsense f;", "sm_90")
    assert "nonsense" in caught.value.log


def _program(folder: Path, text: str) -> str:
    path = folder / "nvcc"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_compiler_that_dies(tmp_path: Path) -> None:
    dying = Nvcc(_program(tmp_path, "kill -SEGV $$"))
    with pytest.raises(BackendCrashed, match="refused a generated kernel: no reason given"):
        dying.compile("", "sm_90")


def test_a_compiler_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_LIMIT", 0.2)
    with pytest.raises(BackendTimeout, match="nvcc took more than"):
        Nvcc(_program(tmp_path, "exec sleep 5")).compile("", "sm_90")


def test_a_compiler_that_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="does not run"):
        Nvcc(str(tmp_path / "nvcc")).compile("", "sm_90")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Compiler]]:
    """The only compilers that are found, once a test has put them there."""
    found: list[Compiler] = []
    monkeypatch.setattr(toolchain, "find_nvrtcs", lambda: iter(found))
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    find_compiler.cache_clear()
    yield found
    find_compiler.cache_clear()


def test_no_compiler(installed: list[Compiler]) -> None:
    with pytest.raises(
        BackendUnavailable, match=r"NVRTC or nvcc.*pip install 'hlotool\[cuda\]' brings NVRTC"
    ):
        find_compiler()
    with pytest.raises(UsageError, match="there is no compiler 'clang'"):
        find_compiler("clang")


def test_the_newest_compiler_that_serves_driver_and_device(installed: list[Compiler]) -> None:
    new, old = _Recorder(13, "sm_75", "sm_90"), _Recorder(12, "sm_70", "sm_75", "sm_90")
    installed += [new, old]
    assert find_compiler() is find_compiler("nvrtc", "sm_90", (13, 0)) is new
    assert find_compiler("", "sm_90", (14, 0)) is new
    assert find_compiler("", "sm_90", (12, 2)) is old
    assert find_compiler("", "sm_70", (13, 0)) is old
    with pytest.raises(BackendUnavailable) as caught:
        find_compiler("", "sm_103", (12, 8))
    assert str(caught.value) == (
        "backend cuda: recorder 13.0 compiles for drivers of CUDA 13 (version 580) and newer, not for "
        "this one of CUDA 12.8: update the driver, or pip install 'hlotool[cuda12]' for NVRTC 12; "
        "recorder 12.0 compiles for sm_70, sm_75, sm_90, not for sm_103: a newer version does"
    )


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_a_library_that_is_no_nvrtc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"other": "int f(void) { return 0; }", "broken": "int nvrtcVersion(void) { return 7; }"}
    texts["broken"] += 'const char* nvrtcGetErrorString(int error) { return "broken"; }'
    for name, text in texts.items():
        command = ["gcc", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", str(tmp_path / name)]
        subprocess.run(command, input=text.encode(), check=True)
    opened = [ctypes.CDLL(str(tmp_path / name)) for name in texts]
    monkeypatch.setattr(toolchain, "open_libraries", lambda name: iter(opened))
    assert list(find_nvrtcs()) == []


def test_nvrtc_needs_to_be_told_that_lambdas_are_for_the_device(tmp_path: Path) -> None:
    found = next((n for n in find_nvrtcs() if n.toolkit < (13, 1)), None)
    if found is None:
        pytest.skip("there is no NVRTC here that minds")
    compile_kernels(_kernels("negate"), "sm_90", found, tmp_path / "told")
    found.options = OPTIONS
    with pytest.raises(BackendCrashed, match="without execution space annotations"):
        compile_kernels(_kernels("negate"), "sm_90", found, tmp_path / "not told")


def test_nvcc_is_found_on_the_path_and_in_the_toolkit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    path = _program(tmp_path / "bin", "exit")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert toolchain.find_nvcc() == path
    monkeypatch.setenv("CUDA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert toolchain.find_nvcc() == path


def test_no_pycuda(monkeypatch: pytest.MonkeyPatch) -> None:
    open_device.cache_clear()
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(BackendUnavailable, match=r"needs pycuda: pip install 'hlotool\[cuda\]'"):
        get_backend("cuda")


def test_options() -> None:
    with pytest.raises(UsageError, match="it knows: " + ", ".join(BACKEND_OPTIONS)):
        get_backend("cuda:fast")
    with pytest.raises(UsageError, match="device=first is no number"):
        get_backend("cuda:device=first")


def test_indices_and_grids_of_more_than_two_billion() -> None:
    text = """HloModule m
ENTRY main {
  x = s8[5000000000] parameter(0)
  ROOT y = s8[5000000000] negate(x)
}
"""
    [kernel] = of_instruction(parse_module(text).entry.root).kernels
    assert "typedef i64 Index;" in kernel.source
    assert "5000000000" in kernel.source
    assert kernel.grid < 1 << 31


def test_a_grid_has_so_many_blocks() -> None:
    text = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[2147483700,100000] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[2147483700] reduce(x, zero), dimensions={1}, to_apply=add
}
"""
    root = parse_module(text).entry.root
    program = of_instruction(root)
    assert any(kernel.grid > MAX_BLOCKS for kernel in program.kernels)
    loading = CudaLoading(SimpleNamespace(memory=None, precision=Precision.HLO, waits=False))  # type: ignore[arg-type]
    with pytest.raises(NotGenerated, match="more blocks than a grid can have"):
        loading.launch(root, program, [0, 1])


def test_long_chains_of_integers_compile_in_no_time(compiler: Compiler, tmp_path: Path) -> None:
    """Where locals are const, the front end's time doubles with every few of them: an hour for these."""
    lines = ["  v0 = u32[40] parameter(0)", "  w0 = u32[40] parameter(1)"]
    for n in range(100):
        lines += [f"  v{n + 1} = u32[40] xor(v{n}, w{n})", f"  w{n + 1} = u32[40] add(v{n + 1}, w{n})"]
    text = "\n".join(["HloModule m", "f {", *lines, "  ROOT r = u32[40] or(v100, w100)", "}"])
    text += "\nENTRY main {\n  x = u32[40] parameter(0)\n"
    text += "  ROOT y = u32[40] fusion(x, x), kind=kLoop, calls=f\n}\n"
    kernels = of_fusion(parse_module(text).entry.root.computation("calls")).kernels
    assert len(compile_kernels(kernels, "sm_90", compiler, tmp_path)) == 1
