"""Programs by others: an archive is judged, and what fails is told apart; the same command goes on."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from lab.test_campaign import plug_in
from msgspec.structs import replace
from support.shell import Shell

from hlotool.errors import ExitCode
from hlotool.interface.report.html.page import page
from hlotool.interface.report.lab_records import FaultRecord
from hlotool.interface.report.records import RunRecord
from hlotool.interface.report.triage_records import Outcome, TriagedRecord, TriageRecord
from hlotool.judge.verdicts import Verdict
from hlotool.lab.collection import Judged, triaged
from hlotool.lab.readmes import accused_in, flags_in
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.sources.records import DumpModule

__all__ = ["plug_in"]

#: A pass that forgets operands gets the first three wrong, and finds nothing in the fourth.
TEXT = "HloModule {name}\nENTRY e {{\n  x = {type}[3] parameter(0)\n  ROOT r = {type}[3] {opcode}\n}}\n"
PROGRAMS = {
    "cpu/0a/0a.ir": ("s32", "add(x, x)"),
    "cpu/0b/0b.hlo": ("s32", "add(x, x)"),
    "gpu/0c/0c.ir": ("s32", "negate(x)"),
    "gpu/0d/0d.txt": ("s32", "reverse(x), dimensions={}"),
}


@pytest.fixture
def triage(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("triage", "triage-1.json", capsys)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "ir.zip"
    with zipfile.ZipFile(path, "w") as file:
        for number, (name, (kind, opcode)) in enumerate(PROGRAMS.items()):
            file.writestr(f"ir/{name}", TEXT.format(name=f"m{number}", type=kind, opcode=opcode))
            file.writestr(f"ir/{Path(name).parent}/README.md", "`--xla_disable_hlo_passes=algsimp` helps.\n")
        file.writestr("ir/cpu/0e/0e.hlo", "HloModule broken\nENTRY e {\n  x = s32[3] what(0\n}\n")
    return path


@pytest.mark.usefixtures("plug_in")
def test_an_archive_is_judged_and_told_apart(tmp_path: Path, archive: Path, triage: Shell) -> None:
    backend = "opt:passes=simplify-tuples+forget-operand+dce"
    given = [archive, "--test", backend, "--out", tmp_path / "out", "--jobs", "1", "--each", "30"]
    given += ["--only", r"/0[a-e]\."]
    record = triage.json(*given)
    outcomes = {Path(p["path"]).name: p["outcome"] for p in record["programs"]}
    assert outcomes == {
        "0a.ir": "wrong", "0b.hlo": "wrong", "0c.ir": "wrong", "0d.txt": "same", "0e.hlo": "unjudged"
    }  # fmt: skip
    faults = {fault["number"]: fault for fault in record["faults"] if fault["number"]}
    assert {fault["pass"] for fault in faults.values()} == {"forget-operand"}
    by_program = {Path(p["path"]).name: p["fault"] for p in record["programs"]}
    assert by_program["0a.ir"] == by_program["0b.hlo"] != by_program["0c.ir"]
    assert [p["accused"] for p in record["programs"]].count("algsimp") == 4
    assert record["exit_code"] == ExitCode.MISMATCH
    assert all(fault["triggers"] and Path(fault["bundle"], "issue.md").exists() for fault in faults.values())
    causes = [cause for cause in record["run"]["causes"] if cause["pass_name"]]
    assert [cause["count"] for cause in causes] == [1, 2]

    again = triage.json(*given)
    assert again["faults"] == record["faults"]
    assert triage(*given) == ExitCode.MISMATCH
    assert "5 programs: 1 the same, 3 of 2 faults, 1 not judged" in triage.out
    assert f"next: hlotool repro verify {tmp_path}" in " ".join(triage.out.split())


def test_dumps_are_compared_without_a_compiler(tmp_path: Path, corpus: Path, triage: Shell) -> None:
    """The pass is the one that was planted, and the pair of programs around it is the bundle."""
    paths = [corpus / "planted" / "int8_dot_rounding", corpus / "jax" / "int8_dot", tmp_path / "nothing.hlo"]
    record = triage.json(*paths, "--out", tmp_path / "out", "--jobs", "1")
    assert any("nothing.hlo" in note for note in record["notes"])
    assert record["counts"].get("wrong") == 1
    [fault] = [fault for fault in record["faults"] if fault["number"]]
    assert fault["kind"] == "wrong"
    assert fault["level"] == "pass"
    assert Path(fault["program"]).is_file()
    assert fault["triggers"]


README = """# IR 0a
```bash
export XLA_FLAGS='--xla_cpu_enable_fast_math=true --xla_llvm_disable_expensive_passes --xla_dump_to=/etc
  --xla_gpu_cuda_data_dir=x --xla_no_such_flag=1 --xla_disable_hlo_passes=cse'
run_hlo_module --platform=CPU 0a.ir
export XLA_FLAGS='--xla_disable_hlo_passes=algsimp'
```
"""


def test_what_a_readme_says() -> None:
    """Flags that name files, or write some, are not taken from a stranger."""
    assert flags_in(README) == [
        "xla_cpu_enable_fast_math=true",
        "xla_llvm_disable_expensive_passes=true",
        "xla_no_such_flag=1",
    ]
    assert accused_in(README) == "cse"
    assert flags_in("run it with XLA_FLAGS=--xla_a=1 python f.py") == ["xla_a=1"]
    assert (flags_in("nothing"), accused_in("nothing")) == ([], "")


@pytest.mark.xla
def test_programs_under_the_flags_of_their_readmes(tmp_path: Path, triage: Shell) -> None:
    """Under fast math a difference of equal numbers is 0, also of infinite ones."""
    text = "HloModule m\nENTRY e {\n  c = f32[2] constant({inf, 1})\n  x = f32[2] parameter(0)\n"
    text += "  y = f32[2] add(x, c)\n  d = f32[2] subtract(y, y)\n  ROOT r = f32[2] negate(d)\n}\n"
    for name, readme in (("0a", README), ("0b", "no flags")):
        (tmp_path / "ir" / name).mkdir(parents=True)
        (tmp_path / "ir" / name / f"{name}.ir").write_text(text)
        (tmp_path / "ir" / name / "README.md").write_text(readme)
    given = [tmp_path / "ir", "--test", "xla", "--jobs", "1", "--minutes", "0.001"]
    plain = triage.json(*given, "--out", tmp_path / "plain")
    assert [p["outcome"] for p in plain["programs"]] == ["same", "same"]
    found = triage.json(*given, "--out", tmp_path / "out", "--readme-flags")
    assert [p["verdict"] for p in found["programs"]] == ["wrong", "identical"]
    assert "xla_cpu_enable_fast_math=true" in found["programs"][0]["backend"]
    assert "flags of READMEs that are not known: xla_no_such_flag=1" in found["notes"]
    assert found["pending"] <= 1


def row(verdict: Verdict, path: str, twin_of: str = "") -> ModuleRecord:
    return ModuleRecord(path=path, name=path, verdict=verdict, twin_of=twin_of)


def judged(verdict: Verdict, path: str, is_on_backend: bool = True, twin_of: str = "") -> Judged:
    return Judged(Task(DumpModule(None, path), RunOptions()), [row(verdict, path, twin_of)], is_on_backend)


@pytest.mark.parametrize(
    ("verdict", "on_backend", "of_dump"),
    [
        (Verdict.IDENTICAL, "same", "same"),
        (Verdict.ROUNDING, "legal", "legal"),
        (Verdict.SEMANTICS, "legal", "legal"),
        (Verdict.UNSTABLE, "sensitive", "sensitive"),
        (Verdict.STRUCTURAL, "wrong", "wrong"),
        (Verdict.CRASHED, "crashed", "unjudged"),
        (Verdict.TIMEOUT, "crashed", "unjudged"),
        (Verdict.NOT_COMPILED, "crashed", "crashed"),
        (Verdict.OUT_OF_MEMORY, "unjudged", "unjudged"),
    ],
)
def test_what_became_of_a_program(verdict: Verdict, on_backend: Outcome, of_dump: Outcome) -> None:
    """In the stages of a dump it is our interpreter that dies, unless the compiler did."""
    assert judged(verdict, "a").outcome == on_backend
    assert judged(verdict, "a", is_on_backend=False).outcome == of_dump


def test_a_failure_that_is_none_a_second_time_is_in_doubt() -> None:
    programs = [
        judged(Verdict.WRONG, "a"),
        judged(Verdict.WRONG, "b", twin_of="a"),
        judged(Verdict.CRASHED, "c"),
        judged(Verdict.WRONG, "d"),
    ]
    faults = [
        FaultRecord(number=2, status="new", kind="wrong", index=0),
        FaultRecord(status="unconfirmed", kind="crashed", index=2),
        FaultRecord(status="excused", kind="wrong", index=3),
    ]
    found = list(triaged(programs, faults))
    assert [(p.outcome, p.fault) for p in found] == [
        ("wrong", 2),
        ("wrong", 2),
        ("unjudged", 0),
        ("doubtful", 0),
    ]
    assert not programs[1].fails


def record_of(*programs: tuple[Outcome, int], faults: dict[int, str]) -> TriageRecord:
    listed = [
        TriagedRecord(path=str(n), name=str(n), outcome=outcome, verdict=Verdict.WRONG, fault=fault)
        for n, (outcome, fault) in enumerate(programs)
    ]
    counts: dict[Outcome, int] = {}
    for program in listed:
        counts[program.outcome] = counts.get(program.outcome, 0) + 1
    rows = [row(Verdict.WRONG, program.path) for program in listed]
    return TriageRecord(
        versions={},
        paths=["ir.zip"],
        folder="out",
        programs=listed,
        faults=[FaultRecord(number=n, status="new", kind="wrong", known=k) for n, k in faults.items()],
        counts=counts,
        run=RunRecord(versions={}, paths=["ir.zip"], options=RunOptions(), modules=rows, exit_code=1),
    )


def test_the_line_that_says_all() -> None:
    record = record_of(
        *[("legal", 0)] * 212, *[("wrong", 1)] * 100, *[("wrong", 2)] * 18, *[("crashed", 3)] * 7,
        faults={1: "", 2: "its-name", 3: ""},
    )  # fmt: skip
    line = "337 programs: 212 legal differences, 118 of 2 faults (1 known), 7 crashes of 1 fault"
    assert record.headline == line
    assert line in page(record)
    open_ = record_of(("wrong", 1), ("wrong", 0), ("same", 0), ("doubtful", 0), faults={1: ""})
    assert open_.headline == "4 programs: 1 the same, 2 of 1 fault (1 not looked into), 1 in doubt"
    alone = record_of(("wrong", 0), ("crashed", 0), ("legal", 0), faults={})
    assert alone.headline == "3 programs: 1 legal difference, 1 wrong, 1 crash"
    assert replace(alone, programs=[], counts={}).headline == "0 programs: nothing"
