"""`hlotool compile`: what is said of a compilation for another device, and how the command ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.ahead import Compiler, use
from support.shell import Shell

import hlotool
from hlotool.backends.aot.protocol import AheadResult
from hlotool.errors import (
    BackendCrashed,
    BackendOutOfMemory,
    BackendUnavailable,
    ExitCode,
    HlotoolError,
    Unsupported,
)
from hlotool.interface.api.compile import compile

PROGRAM = """HloModule m
ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  ROOT s = f32[4]{0} subtract(x, y)
}"""
#: As libtpu 0.0.42 writes it.
REPORT = """Memory Space: default (color=0)
Total bytes: 100 (100B)

Memory Space: vmem (color=1)
Total bytes: 1048576 (1.00MiB)

Memory Space: host (color=5)
Total bytes: 64 (64B)
"""
WARNING = (
    'W1129 07:14:13.852654   26569 host_offloader.cc:298] Found an instruction ("add.1") which does device'
    " compute in host memory space. Converting into host compute.\n"
    "W1129 07:14:13.937084   26569 llo_module.h:502] The log function has NOT been set for the LloModule.\n"
)
#: As libtpu 0.0.42 writes it of every program that is partitioned.
OF_ALL = "W1129 07:14:13.852654   26569 tpu_compiler.cc:1] Collective matmul V1 is enabled.\n"
#: As XLA:GPU of jaxlib 0.10.2 writes it: a loop, the kernels in it, and a copy.
THUNKS = """001: kCopy         [source | next=004 (3)] kCopy
002: kCustomKernel [source | next=004 (1)] loop_fusion grid: [1, 1, 1] threads: [10, 1, 1]
003: kWhile        [prev=002 (1) | sink        ]
body:
    004: kCustomKernel [source | sink] input_fusion grid: [1, 1, 1] threads: [1, 1, 1]
"""


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("compile", "compile-1.json", capsys)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def test_memory_warnings_and_what_it_gives(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path, shell: Shell
) -> None:
    parts = {"argument": 32, "output": 16, "temp": 100}
    others = {"after_optimizations-memory-usage-report.txt": REPORT}
    use(monkeypatch, Compiler(others=others, memory=parts, log=WARNING))
    out = tmp_path / "dump"
    assert shell(program, "--for", "v5e", "--out", out) == ExitCode.AGREE
    assert "compiler 1.2 for TPU v5e" in shell.out
    assert "HBM 148 B of 15.8 GiB" in shell.out
    assert "VMEM 1 MiB of 128 MiB (0.8%)" in shell.out
    assert "host 64 B" in shell.out
    assert "offload-compute-on-host" in shell.out
    assert "LloModule" not in shell.out
    assert "✓ identical" in shell.out
    assert len(hlotool.replay(out).rows) == 1


def test_what_is_made_wrong_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, program: Path, shell: Shell
) -> None:
    use(monkeypatch, Compiler(lambda text: text.replace("subtract(", "add(")))
    assert shell(program, "--for", "v5e") == ExitCode.MISMATCH
    assert "✗ wrong" in shell.out
    assert "next: hlotool bisect" in shell.out
    use(monkeypatch, Compiler(lambda text: text.replace("subtract(", "add(")))
    assert shell(program, "--for", "v5e", "--no-run") == ExitCode.AGREE


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (
            Unsupported("aot:v5e: INVALID_ARGUMENT: E1200: CompileTime"),
            "refused",
            ExitCode.MISMATCH,
        ),
        (BackendCrashed("xla", "the process died of SIGABRT"), "crashed", ExitCode.BACKEND_FAILED),
        (BackendOutOfMemory("xla", "Ran out of memory"), "out of memory", ExitCode.BACKEND_FAILED),
    ],
)
def test_a_compiler_that_fails_is_a_row(
    monkeypatch: pytest.MonkeyPatch,
    program: Path,
    shell: Shell,
    error: HlotoolError,
    outcome: str,
    code: ExitCode,
) -> None:
    def fails(_: str) -> str:
        raise error

    use(monkeypatch, Compiler(fails))
    record = shell.json(program, "--for", "v5e")
    assert record["exit_code"] == code
    assert [row["outcome"] for row in record["programs"]] == [outcome]
    assert record["run"] is None


def test_a_compiler_that_is_missing(monkeypatch: pytest.MonkeyPatch, program: Path, shell: Shell) -> None:
    class Missing(Compiler):
        def call(self, function: str, argument: object, kind: type[object]) -> object:
            raise BackendUnavailable("there is no compiler for tpu here: pip install 'hlotool[tpu]'")

    use(monkeypatch, Missing())
    result = compile(program, target="v5e")
    assert [row.outcome for row in result] == ["unsupported"]
    assert result.exit_code is ExitCode.NOTHING_COMPARED
    for number in range(4):
        (program.parent / f"m{number}.hlo").write_text(PROGRAM, encoding="utf-8")
    shell(program.parent, "--for", "v5e")
    assert shell.out.count("✗ unsupported") == shell.out.count("because") == 1
    assert "✗ unsupported  5 programs" in shell.out
    assert "… 2 more (--verbose)" in shell.out


def test_many_programs_of_which_there_is_nothing_to_say_are_told_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shell: Shell
) -> None:
    for number in range(10):
        text = PROGRAM.replace("f32[4]", f"f32[{4 + number}]")
        text = text.replace("subtract(", "add(") if number == 3 else text
        (tmp_path / f"m{number}.hlo").write_text(text, encoding="utf-8")
    reports = {"after_optimizations-memory-usage-report.txt": REPORT}
    wrong = Compiler(lambda text: text.replace(" add(", " multiply("), others=reports, log=OF_ALL)
    use(monkeypatch, wrong)
    assert shell(tmp_path, "--for", "v5e") == ExitCode.MISMATCH
    assert "✓ compiles  9 programs" in shell.out
    assert "(--verbose lists them)" in shell.out
    assert "Collective matmul V1 is enabled. (9 programs)" in shell.out
    assert shell.out.count("memory") == 2
    assert "at most VMEM 1 MiB of 128 MiB (0.8%), in " in shell.out
    assert shell.out.count("✗ wrong") >= 1
    assert "10 programs for v5e: 10 compiles · 9 identical · 1 wrong" in shell.out
    shell(tmp_path, "--for", "v5e", "--verbose")
    assert shell.out.count("✓ compiles") == 10


def test_launches_of_a_gpu(monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
    """Of loops once; what else is executed is counted apart."""
    ptx = ".visible .entry loop_fusion(\n.visible .entry input_fusion(\n"
    use(monkeypatch, Compiler(others={"thunk_sequence.txt": THUNKS, "1.ptx": ptx}))
    [row] = compile(program, target="h100", run=False)
    assert row.launches is not None
    assert (row.launches.kernels, row.launches.launches, row.launches.calls) == (2, 2, 2)


def test_programs_of_a_dump_have_folders_of_their_own(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path
) -> None:
    compiler = use(monkeypatch, Compiler())
    other = tmp_path / "n.hlo"
    other.write_text(PROGRAM.replace("subtract(", "multiply("), encoding="utf-8")
    result = compile([program, other], target="v6e,topology=2x4", out=tmp_path / "out", passes=True)
    assert [row.verdict for row in result] == ["identical", "identical"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["program_0000", "program_0001"]
    assert compiler.requests[0].target.topology == "v6e:2x4"
    assert ("xla_dump_hlo_pass_re", ".*") in compiler.requests[0].flags


def test_what_a_compiler_makes_for_itself_has_no_verdict(
    monkeypatch: pytest.MonkeyPatch, program: Path
) -> None:
    """XLA:GPU dumps the passes of programs that it compiles on the way, under names of their own."""

    class Helped(Compiler):
        def call(self, function: str, argument: Any, kind: type[Any]) -> Any:
            answer = super().call(function, argument, kind)
            if isinstance(answer, AheadResult):
                name = "module_0002.helper.0000.p.after_pipeline-start.before_dce.txt"
                Path(answer.path).with_name(name).write_text(PROGRAM, encoding="utf-8")
            return answer

    use(monkeypatch, Helped())
    result = compile(program, target="h100", passes=True)
    assert [row.verdict for row in result] == ["identical"]
    assert result.run is not None
    assert [row.verdict.value for row in result.run.modules] == ["identical", "not compared"]


def test_stablehlo_goes_to_the_compiler_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By way of HLO it would lose which results are in the host's memory."""
    path = tmp_path / "m.mlir"
    path.write_text(
        "module @m {\n  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "    %0 = stablehlo.negate %a : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n"
    )
    compiler = use(monkeypatch, Compiler(lambda _: PROGRAM))
    [row] = compile(path, target="v5e", run=False)
    assert row.outcome == "compiles"
    assert compiler.requests[0].program.endswith(".mlir")


def test_another_compiler_of_this_machine(program: Path, tmp_path: Path, shell: Shell) -> None:
    """`opt:…` is a compiler, too, and needs no other package."""
    program.write_text(PROGRAM.replace("ROOT", "z = f32[4]{0} negate(x)\n  ROOT"), encoding="utf-8")
    out = tmp_path / "dump"
    assert shell(program, "--for", "opt:passes=dce", "--out", out) == ExitCode.AGREE
    assert "negate" not in next(out.glob("*after_optimizations.txt")).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--for", "v9"], "no such target; there are: v2"),
        (["--for", "numpy"], "does not show what it makes"),
        (["--for", "aot"], "for what?"),
        (["--for", "v5e", "--args", "f32[2]"], "--args are of a function"),
        (["--for", "v5e", "--args", "f32["], "is no shape"),
        (["--for", "v5e", "--out", "."], "there is something in it"),
    ],
)
def test_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, program: Path, shell: Shell, arguments: list[str], message: str
) -> None:
    use(monkeypatch, Compiler())
    monkeypatch.chdir(program.parent)
    with suppress(SystemExit):  # argparse ends the process itself
        assert shell(program, *arguments) == ExitCode.USAGE
    if not shell.error:
        shell.error = shell.capsys.readouterr().err
    assert message in shell.error
