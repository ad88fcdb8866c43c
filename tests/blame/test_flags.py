"""Which flags make a program wrong, and which make it right: the search, and XLA itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import hlotool
from hlotool.backends.registry import with_flags, without_flags
from hlotool.blame.bisection.records import BisectedModule
from hlotool.blame.flags import FlagSearch, given_flags
from hlotool.blame.steps import Silent
from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.interface.report.command_records import bisect_exit_code
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import InputsRecord, ModuleRecord
from hlotool.runs.task import Task
from hlotool.sources.file_names import parse_name
from hlotool.sources.locations import Source
from hlotool.sources.records import DumpFile, DumpModule
from hlotool.system.records import ErrorRecord

A, B, C = "xla_a=true", "xla_b=1", "disable=algsimp"


class Stub:
    """In the place of an oracle: a program is wrong where the set of flags says so."""

    def __init__(self, is_wrong: Callable[[set[str]], bool], refuses: str = "") -> None:
        self.is_wrong, self.refuses = is_wrong, refuses
        self.asked: list[str] = []
        self.given_inputs: set[str | None] = set()

    def call(self, key: str, text: str, function: str, question: Any) -> Any:
        if function.endswith(":compile_live"):
            return None
        self.asked.append(text)
        self.given_inputs.add(question.task.options.inputs if hasattr(question, "task") else None)
        flags = set(text.partition(":")[2].split(","))
        if self.refuses in flags:
            name = self.refuses.partition("=")[0]
            error = ErrorRecord(kind="BackendCrashed", message=f"No such option: '{name}'")
            row = ModuleRecord(path="", name="", verdict=Verdict.CRASHED, reason=error.message, error=error)
        else:
            verdict = Verdict.WRONG if self.is_wrong(flags) else Verdict.IDENTICAL
            inputs = InputsRecord(origin="generated", description="", file="further.npz")
            row = ModuleRecord(path="", name="", verdict=verdict, inputs=inputs)
        rows = [row] if function.endswith(":replay_module") else row
        return msgspec.to_builtins(rows)

    steps = type("Steps", (), {"listener": Silent()})()


def searched(stub: Stub, *flags: str, tmp_path: Path) -> Any:
    task = Task(DumpModule(None, "m", "m.hlo"), RunOptions())
    return FlagSearch(task, with_flags("xla:timeout=9", flags), stub, tmp_path).run()  # type: ignore[arg-type]


def test_flags_of_a_spec() -> None:
    """What is told to the compiler, and what says where it is, or how long it may take."""
    spec = with_flags("xla:gpu,timeout=9", [A, C, "disable=cse"])
    assert spec == "xla:gpu,timeout=9,xla_a=true,disable=algsimp+cse"
    assert without_flags(spec) == "xla:gpu,timeout=9"
    assert without_flags("xla") == "xla"


def test_flags_of_a_dump(tmp_path: Path) -> None:
    """Where the dump was written is no matter; the backend's own come last."""
    path = tmp_path / "module_0000.f.debug_options"
    path.write_text('xla_a: false\nxla_dump_to: "x"\nxla_isa: "AVX2"\nxla_list: "a, b"\n')
    file = DumpFile(path.name, Source(str(path)), parse_name(path.name))
    task = Task(DumpModule(0, "f", artefacts=(file,)), RunOptions())
    assert given_flags(task, f"xla:{A},{C}") == ["xla_a=true", "xla_isa=AVX2", C]


def test_the_smallest_sets_with_which_it_is_wrong(tmp_path: Path) -> None:
    stub = Stub(lambda flags: {A, B} <= flags or C in flags)
    found = searched(stub, A, "xla_x=2", B, C, tmp_path=tmp_path)
    assert sorted(found.wrong_with) == [[C], [A, B]]
    assert found.right_with == []
    assert stub.given_inputs == {None, "further.npz"}
    assert found.judged == len(stub.asked)
    assert bisect_exit_code([], [], [], [found]) == ExitCode.MISMATCH


def test_what_makes_it_right(tmp_path: Path) -> None:
    """Of the flags that XLA has of its own, only where it is wrong without any."""
    stub = Stub(lambda flags: "xla_cpu_max_isa=SSE4_2" not in flags)
    found = searched(stub, A, tmp_path=tmp_path)
    assert (found.wrong_with, found.right_with) == ([[]], [["xla_cpu_max_isa=SSE4_2"]])


def test_a_flag_that_is_not_known_is_left_out(tmp_path: Path) -> None:
    found = searched(Stub(lambda flags: A in flags, refuses=B), A, B, tmp_path=tmp_path)
    assert (found.refused, found.given, found.wrong_with) == ([B], [A], [[A]])


def test_what_is_right_with_all_of_them(tmp_path: Path) -> None:
    stub = Stub(lambda flags: False)
    found = searched(stub, A, B, tmp_path=tmp_path)
    assert (found.verdict, found.wrong_with, len(stub.asked)) == (Verdict.IDENTICAL, [], 1)
    modules: list[BisectedModule] = []
    assert bisect_exit_code([], modules, [], [found]) == ExitCode.AGREE


@pytest.mark.xla
def test_fast_math_of_xla(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """x - x is 0 under it, also where x is infinite."""
    path = tmp_path / "nan.hlo"
    path.write_text(
        "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  d = f32[8] subtract(x, x)\n"
        "  ROOT r = f32[8] negate(d)\n}\n"
    )
    values = tmp_path / "nan.npz"
    np.savez(values, arg_0=np.array([0, 1, 2, 0, np.inf, np.nan, 3, 4], np.float32))
    flags = "xla_llvm_disable_expensive_passes=true,xla_cpu_enable_fast_math=true"
    given = [str(path), "--flags", "--inputs", str(values), "--jobs", "1"]
    assert main(["bisect", *given, "--backend", f"xla:{flags}"]) == ExitCode.MISMATCH
    out = " ".join(capsys.readouterr().out.split())
    assert "wrong with xla_cpu_enable_fast_math=true alone" in out
    assert "next: hlotool bisect" in out
    assert "--backend xla:xla_cpu_enable_fast_math=true" in out
    record = hlotool.bisect(path, flags=True, inputs=values, jobs=1).record
    assert record.flags[0].verdict is Verdict.IDENTICAL
    assert record.exit_code == ExitCode.AGREE
