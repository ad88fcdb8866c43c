"""Programs by way of a compiler for another device: what goes there, and what becomes of its answer."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.ahead import Compiler, use

from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendCrashed, BackendUnavailable, HlotoolError, Unsupported
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import find_tasks

PROGRAM = """HloModule m, entry_computation_layout={(f32[4]{0:S(5)}, f32[4]{0})->(f32[4]{0}, f32[4]{0:S(5)})}
ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  s = f32[4]{0} subtract(x, y)
  ROOT t = (f32[4]{0}, f32[4]{0}) tuple(s, x)
}"""


def replayed(path: Path) -> ModuleRecord:
    [task] = find_tasks([str(path)], RunOptions(backend="aot:v5e"), [])
    [row] = replay_module(task)
    return row


def backend(monkeypatch: pytest.MonkeyPatch, compiler: Compiler) -> AotBackend:
    use(monkeypatch, compiler)
    found = get_backend("aot:v5e")
    assert isinstance(found, AotBackend)
    return found


def test_memory_of_the_host_is_said_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """HLO says it in the entry's layout, which is lost on the way to StableHLO."""
    compiler = Compiler()
    values = [np.arange(4, dtype=np.float32), np.ones(4, np.float32)]
    first, second = backend(monkeypatch, compiler).compile(parse_module(PROGRAM)).run(values)
    np.testing.assert_array_equal(first, values[0] - 1)
    np.testing.assert_array_equal(second, values[0])
    [request] = compiler.requests
    assert request.parameters == ("pinned_host", "")
    assert request.results == ("", "pinned_host")
    assert (request.target.platform, request.target.topology) == ("tpu", "v5e:2x2")


def test_an_optimised_program_is_written_as_a_frontend_would(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PROGRAM.replace("HloModule m,", "HloModule m, is_scheduled=true,")
    compiler = Compiler()
    backend(monkeypatch, compiler).compile(parse_module(text))
    assert "is_scheduled" not in compiler.requests[0].text


def test_what_the_compiler_makes_is_judged_as_a_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In f64, too, and with the first wrong instruction: both texts are at hand."""
    use(monkeypatch, Compiler(lambda text: text.replace("subtract(", "add(")))
    (tmp_path / "m.hlo").write_text(PROGRAM, encoding="utf-8")
    row = replayed(tmp_path / "m.hlo")
    assert row.verdict.value == "wrong"
    assert "compiled by compiler 1.2 for TPU v5e" in (row.stage_tested or "")
    assert [leaf.verdict.value for leaf in row.leaves] == ["wrong", "identical"]
    use(monkeypatch, Compiler())
    assert replayed(tmp_path / "m.hlo").verdict.value == "identical"


def test_a_refusal_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuses(_: str) -> str:
        raise Unsupported("aot:v5e: UNIMPLEMENTED: no acos")

    use(monkeypatch, Compiler(refuses))
    (tmp_path / "m.hlo").write_text(PROGRAM, encoding="utf-8")
    error = replayed(tmp_path / "m.hlo").error
    assert error is not None
    assert error.message == f"{tmp_path / 'm.hlo'}: aot:v5e: UNIMPLEMENTED: no acos"


LAID_OUT = """HloModule m
ENTRY e {
  x = f32[3,2] parameter(0)
  y = f32[3,2] parameter(1)
  p = f32[3,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = (f32[3,3]{0,1}, f32[3,2]) tuple(p, x)
}"""


def test_results_in_a_layout_of_their_own_are_judged_by_what_the_compiler_makes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A TPU may round factors to bf16: where no text is at hand, such a product would be wrong."""

    def in_bf16(text: str) -> str:
        rounded = "bf16[3,2]{1,0:T(8,128)}"
        lines = text.replace("dot(%x, %y)", "dot(%a, %b)").splitlines()
        at = next(number for number, line in enumerate(lines) if " dot(" in line)
        lines[at:at] = [f"%a = {rounded} convert(%x)", f"%b = {rounded} convert(%y)"]
        return "\n".join(lines)

    use(monkeypatch, Compiler(in_bf16))
    (tmp_path / "m.hlo").write_text(LAID_OUT, encoding="utf-8")
    row = replayed(tmp_path / "m.hlo")
    assert row.verdict.value == "rounding"
    assert "compiled by compiler 1.2" in (row.stage_tested or "")


def test_of_a_dump_the_first_stage_is_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What another compiler made of the program says nothing of this one."""
    compiler = use(monkeypatch, Compiler())
    (tmp_path / "module_0000.m.before_optimizations.txt").write_text(PROGRAM, encoding="utf-8")
    other = PROGRAM.replace("subtract(", "add(").replace("HloModule m,", "HloModule m, is_scheduled=true,")
    (tmp_path / "module_0000.m.cpu_after_optimizations.txt").write_text(other, encoding="utf-8")
    assert replayed(tmp_path).verdict.value == "identical"
    assert "subtract(" in compiler.requests[0].text


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (BackendCrashed("aot:v5e", "signal 6: Check failed: !index.empty()"), "crashed"),
        (Unsupported("aot:v5e: INVALID_ARGUMENT: E1200: a tensor is returned"), "unsupported"),
        (BackendUnavailable("there is no compiler for tpu here"), "unsupported"),
    ],
)
def test_a_compiler_that_fails_is_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: HlotoolError, verdict: str
) -> None:
    def fails(_: str) -> str:
        raise error

    use(monkeypatch, Compiler(fails))
    (tmp_path / "m.hlo").write_text(PROGRAM, encoding="utf-8")
    row = replayed(tmp_path / "m.hlo")
    assert row.verdict.value == verdict
    assert row.error is not None
    assert str(error).split(":")[-1].strip() in row.error.message


@pytest.mark.xla
def test_a_missing_compiler_is_one_line() -> None:
    pytest.importorskip("jaxlib")
    if "TPU_LIBRARY_PATH" in os.environ or _has_libtpu():
        pytest.skip("the TPU's compiler is installed")
    with pytest.raises(BackendUnavailable, match=r"pip install 'hlotool\[tpu\]'"):
        _ = get_backend("aot:v5e").version


def _has_libtpu() -> bool:
    from importlib.util import find_spec

    return find_spec("libtpu") is not None


@pytest.mark.slow
@pytest.mark.skipif(
    not _has_libtpu(), reason="the TPU's compiler is not installed: pip install 'hlotool[tpu]'"
)
def test_the_real_compiler() -> None:
    made = get_backend("aot:v5e").made_of(parse_module(PROGRAM))  # type: ignore[attr-defined]
    assert made.is_scheduled
