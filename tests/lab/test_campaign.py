"""A campaign from the command line: a wrong pass of a plug-in is found, named, and not found again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shell import Shell

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.lab.fuzz.attribution import blame_wrong
from hlotool.lab.fuzz.oracle import Question, judge_program
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions, RunOptions

#: A rewrite that is wrong wherever its pattern stands: that is in almost any program.
PLUG_IN = '''
from dataclasses import dataclass
from itertools import count
from typing import ClassVar
from hlotool.errors import Unsupported
from hlotool.ir.edit import editing

times = count()

@dataclass(frozen=True)
class Forget:
    """Take the first operand of an operation for its result."""

    name: ClassVar[str] = "forget-operand"

    def run(self, module, context):
        with editing(module.entry) as edit:
            for i in edit:
                if i.operands and i.shape == i.operands[0].shape and context.spend("operand"):
                    edit.replace(i, i.operands[0])

@dataclass(frozen=True)
class ForgetLater(Forget):
    """The same, but not where a process compiles for the first time."""

    name: ClassVar[str] = "forget-later"

    def run(self, module, context):
        if next(times):
            super().run(module, context)

@dataclass(frozen=True)
class Refuse(Forget):
    """Take no program."""

    name: ClassVar[str] = "refuse"

    def run(self, module, context):
        raise Unsupported(f"no program of {len(list(module.instructions()))} instructions")
'''


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a wrong pass, for this process and its workers."""
    info = tmp_path / "site" / "forgetful-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: forgetful\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[hlotool.passes]\nforget-operand = forgetful:Forget\nforget-later = forgetful:ForgetLater\n"
        "refuse = forgetful:Refuse\n"
    )
    (tmp_path / "site" / "forgetful.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(tmp_path / "site")
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def fuzz(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("fuzz", "fuzz-1.json", capsys)


@pytest.mark.usefixtures("plug_in")
def test_a_wrong_pass_is_found_named_and_known(tmp_path: Path, fuzz: Shell) -> None:
    """The bundle fails when it is run; the same campaign goes on without judging anything twice."""
    backend = ["--backend", "opt:passes=simplify-tuples+forget-operand+dce", "--integers", "--jobs", "1"]
    given = [*backend, "--out", tmp_path / "first", "--seed", "3"]
    record = fuzz.json(*given, "--programs", "3")
    found = [fault for fault in record["faults"] if fault["status"] == "new"]
    assert {fault["pass"] for fault in found} == {"forget-operand"}
    assert all(fault["triggers"] and fault["level"] == "pass" for fault in found)
    assert found[0]["instructions"] <= 3
    assert (Path(found[0]["bundle"]) / "issue.md").read_text().startswith("# pass forget-operand")
    assert record["exit_code"] == ExitCode.MISMATCH
    assert main(["repro", "verify", found[0]["bundle"]]) == ExitCode.MISMATCH
    fuzz.capsys.readouterr()

    again = fuzz.json(*given, "--programs", "3")
    assert again["tally"]["drawn"] == 3
    assert again["faults"] == record["faults"]

    other = [*given[:-1], "4", "--programs", "3"]
    assert fuzz(*other) == ExitCode.USAGE
    assert "another campaign" in fuzz.error


@pytest.mark.usefixtures("plug_in")
@pytest.mark.parametrize("name", ["forget-later", "simplify"])
def test_a_compiler_that_is_right_at_first_is_blamed(tmp_path: Path, name: str) -> None:
    """As XLA where it reads memory that nobody wrote, which is zero in a fresh process."""
    program = tmp_path / "p.hlo"
    program.write_text("HloModule m\nENTRY e {\n  x = s32[] constant(3)\n  ROOT r = s32[] negate(x)\n}\n")
    options = RunOptions(backend=f"opt:passes=simplify-tuples+{name}+dce")
    blame = blame_wrong(program, None, options, seconds=60.0)
    if name == "simplify":
        assert blame.problems[-1] == "bisection: every stage and the result agree"
    else:
        assert (blame.level, blame.pass_name) == ("pass", name)


@pytest.mark.usefixtures("plug_in")
def test_the_worker_that_judges_knows_the_cure() -> None:
    """A case of a frequent fault costs no process: it is asked at once what the pass has to do with it."""
    text = "HloModule m\nENTRY e {\n  x = s32[3] parameter(0)\n  ROOT r = s32[3] negate(x)\n}\n"
    wrong, right = (f"opt:passes=simplify-tuples+{name}dce" for name in ("forget-operand+", ""))
    options = ReplayOptions(backend=wrong)
    assert judge_program(Question(text, options, cures=(wrong, right))).cured == right
    assert judge_program(Question(text, options, cures=(wrong,))).cured == ""
    assert judge_program(Question(text, ReplayOptions(backend=right), cures=(right,))).cured == ""


def test_right_passes_have_no_faults(tmp_path: Path, fuzz: Shell) -> None:
    """`simplify` and `cse` are tested elsewhere on far more; here that nothing is reported of them."""
    given = ["--backend", "opt:passes=simplify+cse", "--out", tmp_path, "--seed", "5", "--jobs", "1"]
    record = fuzz.json(*given, "--programs", "18")
    assert record["faults"] == []
    assert record["tally"]["kinds"]["agree"] > 6
    assert record["tally"]["passes"]


@pytest.mark.usefixtures("plug_in")
def test_the_first_program_of_each_refusal_is_kept(tmp_path: Path, fuzz: Shell) -> None:
    """Reasons are told apart without their numbers, so that these programs are refused for one."""
    out = tmp_path / "out"
    record = fuzz.json("--backend", "opt:passes=refuse", "--out", out, "--jobs", "1", "--programs", "4")
    assert record["tally"]["kinds"] == {"refused": 4}
    assert len(record["tally"]["refused"]) == 1
    [kept] = (out / "refused").iterdir()
    assert parse_module(kept.read_text()).name.endswith(f"_{int(kept.stem)}")


@pytest.mark.slow
def test_a_cluster_judges_as_this_machine_does(tmp_path: Path, fuzz: Shell) -> None:
    """Most of the time goes into starting its workers."""
    pytest.importorskip("distributed")
    given = ["--backend", "opt:passes=simplify+cse", "--seed", "5", "--programs", "12"]
    here = fuzz.json(*given, "--out", tmp_path / "here", "--jobs", "1")
    there = fuzz.json(*given, "--out", tmp_path / "there", "--cluster", "local:2")
    assert there["tally"]["drawn"] == 12
    assert there["tally"]["kinds"] == here["tally"]["kinds"]
    assert there["tally"]["passes"] == here["tally"]["passes"]
    assert there["faults"] == []


def test_a_file_of_known_faults_must_be_one(tmp_path: Path, fuzz: Shell) -> None:
    (tmp_path / "k.toml").write_text('[[fault]]\nname = "x"\n')
    assert fuzz("--out", tmp_path, "--backend", "numpy", "--known", tmp_path / "k.toml") == ExitCode.USAGE
    assert "it would hide any other fault" in fuzz.error
