"""Results: the report of the command, its record, the ways to look at both; nothing that failed is hidden."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support.programs import DOUBLE, PAIR, SQUARE, SUM, UNKNOWN_CALL, write_module

import hlotool
from hlotool.errors import DumpError, ExitCode, InputDataError, Unsupported, UsageError
from hlotool.interface.api.replay import ReplayResult
from hlotool.interface.cli.main import main
from hlotool.judge.verdicts import Verdict


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy module and a wrong one, in a folder whose name is markup."""
    folder = tmp_path_factory.mktemp("dumps") / "<img src=x onerror=alert(2)>"
    folder.mkdir()
    write_module(folder, 0, DOUBLE, SUM)
    write_module(folder, 1, DOUBLE, SQUARE, "jit_g")
    return folder


@pytest.fixture(scope="module")
def found(dump: Path) -> ReplayResult:
    return hlotool.replay(dump, seed=3)


def without_times(record: dict[str, object]) -> str:
    """A record as text, without what another run measures otherwise."""
    plain = json.dumps(record, sort_keys=True)
    return "".join(part.partition(",")[2] for part in plain.split('"seconds": '))


def test_replay_is_the_command(dump: Path, found: ReplayResult, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(dump), "--seed", "3", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert found.exit_code == code == ExitCode.MISMATCH
    assert without_times(found.to_dict()) == without_times(printed)
    assert [row.verdict for row in found] == [Verdict.IDENTICAL, Verdict.WRONG]
    assert found.verdict is Verdict.WRONG
    assert [row.name for row in found.wrong] == ["module_0001.jit_g"]
    assert repr(found) == "<ReplayResult: 1 identical, 1 wrong>"


def test_the_report_is_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.hlo", tmp_path / "other.hlo"
    one.write_text(DOUBLE)
    other.write_text(SUM)
    found = hlotool.diff(one, other)
    assert main(["diff", str(one), str(other)]) == found.exit_code == ExitCode.MISMATCH
    assert capsys.readouterr().out == f"{found}\n"
    assert found.report(verbose=True) != found.report(quiet=True)


def test_hostile_names_are_text_in_html(found: ReplayResult) -> None:
    shown = found._repr_html_()
    assert "<img" not in shown
    assert "&lt;img src=x" in shown
    assert shown.startswith("<pre")
    assert "<span style=" in shown


def test_in_a_notebook_reports_are_what_they_are_elsewhere(
    found: ReplayResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich, which knows the shell by the name of its class, displays there what it should write."""
    text, html = str(found), found._repr_html_()
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr("builtins.get_ipython", lambda: shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as ipykernel does
    assert "\x1b" not in text
    assert (str(found), found._repr_html_()) == (text, html)


def test_no_truth_value(found: ReplayResult) -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        assert found


def test_a_frame_needs_pandas(found: ReplayResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Unsupported, match="pip install pandas"):
        found.to_frame()


def test_a_frame_has_the_rows(found: ReplayResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas takes a list of dictionaries; a stand-in shows what it gets."""
    stand_in = ModuleType("pandas")
    stand_in.DataFrame = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    assert [(row["name"], row["verdict"]) for row in found.to_frame()] == [
        ("module_0000.jit_f", "identical"),
        ("module_0001.jit_g", "wrong"),
    ]


def test_arrays_are_read_when_they_are_asked_for(dump: Path, found: ReplayResult, tmp_path: Path) -> None:
    x = np.float32([1, 2, 3, 4])
    saved = hlotool.replay(dump, only="jit_g", inputs=[x], save_outputs=tmp_path / "out")
    [leaf] = saved.rows[0].leaves
    expected, actual = saved.arrays(leaf)
    assert isinstance(expected, np.memmap)
    np.testing.assert_array_equal(expected, [2, 4, 6, 8])
    np.testing.assert_array_equal(actual, [1, 4, 9, 16])
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(InputDataError, match="no such file"):
        saved.arrays(leaf)
    with pytest.raises(UsageError, match="save_outputs"):
        found.arrays(found.rows[0].leaves[0])


def test_programs_in_memory() -> None:
    module = hlotool.parse(SQUARE)
    [row] = hlotool.replay(module)
    assert row.verdict is Verdict.NOT_COMPARED
    assert hlotool.diff(module, module).is_same
    assert not hlotool.diff(module, hlotool.parse(DOUBLE)).is_same
    assert hlotool.prove(module, hlotool.parse(DOUBLE)).relation.value == "unequal"


def test_opt_leaves_the_module_as_it_is() -> None:
    module = hlotool.parse(SUM)
    before = module.to_text()
    found = hlotool.opt(module, passes="simplify,dce")
    assert module.to_text() == before
    assert str(found) == found.content.decode().rstrip("\n") == found.module.to_text().rstrip("\n")
    assert len(found.rows) == 2
    with pytest.raises(UsageError, match="emit='xml'"):
        hlotool.opt(module, emit="xml")


def test_extract_gives_a_program_and_its_arguments(tmp_path: Path) -> None:
    module = hlotool.parse(PAIR)
    name = next(
        i.name for i in module.entry.instructions if i.opcode not in ("parameter", "constant", "tuple")
    )
    found = hlotool.extract(module, name)
    assert len(found.arguments) == len(found.module.entry.parameters)
    assert hlotool.run(found.module, found.arguments)
    assert found.record.output == ""
    assert not list(tmp_path.glob("*.hlo"))
    assert "HloModule" in str(found)


def test_reduce_needs_a_failure() -> None:
    with pytest.raises(UsageError, match="what fails"):
        hlotool.reduce(hlotool.parse(DOUBLE))


def test_reduce_gives_what_is_left(tmp_path: Path) -> None:
    fails = f"{sys.executable} -c \"import sys; sys.exit('multiply' in open(sys.argv[1]).read())\""
    text = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  a = f32[4] add(x, x)\n"
    text += "  b = f32[4] multiply(a, a)\n  ROOT c = f32[4] subtract(b, a)\n}\n"
    found = hlotool.reduce(hlotool.parse(text), check=fails)
    assert found.exit_code is ExitCode.MISMATCH
    assert [i.opcode for i in found.module.entry.instructions if i.opcode != "parameter"] == ["multiply"]
    assert "next:" not in str(found)


def test_explain_and_the_lists() -> None:
    assert hlotool.explain("E1200").rows[0].id
    assert hlotool.explain("nothing of the kind").exit_code is ExitCode.NOTHING_COMPARED
    assert len(hlotool.list_messages().rows) > 20
    assert {rule.id for rule in hlotool.list_rules()} >= {"invalid-hlo"}
    assert {found.name for found in hlotool.list_passes()} >= {"dce", "cse"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"only": "("}, "only='\\('"),
        ({"seed": -1}, "seed=-1"),
        ({"timeout": 0}, "timeout=0"),
        ({"jobs": 2000}, "jobs=2000"),
        ({"rtol": -1e-3}, "rtol=-0.001"),
        ({"input_range": (2, 1)}, "input_range"),
        ({"inputs": "missing.npz"}, "no such file"),
        ({"memory_limit": "8X"}, "memory_limit='8X'"),
        ({"elided": "guess"}, "elided='guess'"),
        ({"fail_on": ["zero"]}, "fail_on"),
        ({"budget": "5y"}, "budget='5y'"),
        ({"output_rtol": {"first": 1e-3}}, "output_rtol"),
        ({"compare": ["numpy"]}, "nothing to compare it with"),
    ],
)
def test_impossible_arguments(dump: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hlotool.replay(dump, **arguments)  # type: ignore[arg-type]


def test_a_text_is_a_list_as_on_a_command_line(dump: Path) -> None:
    [row] = chosen = hlotool.replay(dump, only="jit_f", stages="before*,*after*", fail_on="nan,inf")
    assert row.verdict is Verdict.IDENTICAL
    assert chosen.record.options.fail_on == ("nan", "inf")
    assert chosen.record.options.stages == ("before*", "*after*")


def test_what_is_missing_is_an_error(tmp_path: Path) -> None:
    for function in (hlotool.replay, hlotool.bisect, hlotool.check, hlotool.inspect, hlotool.reduce):
        with pytest.raises(DumpError):
            function(tmp_path / "missing")  # type: ignore[operator]


ELIDED = """HloModule elided
ENTRY e {
  x = f32[4]{0} parameter(0)
  c = f32[4]{0} constant({...})
  ROOT y = f32[4]{0} add(x, c)
}
"""
#: exp(100) is infinite in f32: infinity by infinity is NaN, and the same function written otherwise is 1.
QUOTIENT = """HloModule jit_f
ENTRY e {
  x = f32[4]{0} parameter(0)
  e = f32[4]{0} exponential(x)
  c = f32[] constant(1)
  b = f32[4]{0} broadcast(c), dimensions={}
  s = f32[4]{0} add(e, b)
  ROOT y = f32[4]{0} divide(e, s)
}
"""
LOGISTIC = "HloModule jit_f\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} logistic(x)\n}\n"


def test_bisect_says_what_it_could_not_judge(tmp_path: Path) -> None:
    write_module(tmp_path, 0, ELIDED, ELIDED)
    write_module(tmp_path, 1, UNKNOWN_CALL, UNKNOWN_CALL, "jit_g")
    write_module(tmp_path, 2, QUOTIENT, LOGISTIC, "jit_h")
    searched = hlotool.bisect(tmp_path, inputs=[np.full(4, 100, np.float32)])
    assert not searched.culprits
    assert not searched.healthy
    assert [module.verdict for module in searched.modules] == ["unsupported", "unsupported", "range"]
    assert searched.exit_code not in (ExitCode.AGREE, ExitCode.MISMATCH)
    assert all(module.reason and module.reason in str(searched) for module in searched.modules)


def test_bisect_names_the_culprit_and_writes_nothing(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dump.parent)
    before = sorted(dump.parent.rglob("*"))
    searched = hlotool.bisect(dump)
    [culprit] = searched
    assert culprit.module == "module_0001.jit_g"
    assert searched.healthy == ["module_0000.jit_f"]
    assert searched.exit_code is ExitCode.MISMATCH
    assert searched.arguments(culprit)
    assert sorted(dump.parent.rglob("*")) == before


def test_interrupts_are_raised(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hlotool.interface.api.calls import Course

    class Impatient(Course):
        def working(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hlotool.replay(dump, course=Impatient())
    Impatient.keeps_interrupts = True
    stopped = hlotool.replay(dump, course=Impatient())
    assert stopped.exit_code is ExitCode.INTERRUPTED
    assert stopped.record.interrupted
