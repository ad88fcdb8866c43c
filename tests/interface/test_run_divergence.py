"""`hlotool run` names the first diverging instruction of a module that differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.programs import DOUBLE, SQUARE, SUM, write_module

from hlotool.interface.cli.main import main
from hlotool.runs import divergence_row
from hlotool.system.resources import UNITS_PER_SECOND


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    return folder


def rows(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    main(["run", *map(str, arguments), "--json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["modules"]
    return found


def test_the_users_line_comes_first(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_module(dump, 0, DOUBLE, SQUARE)
    main(["run", str(dump)])
    text = capsys.readouterr().out
    assert "--> model.py:7\n" in text
    assert "actual     %y = f32[4]{0} multiply(%x, %x)  (line 5)" in text
    assert text.index("model.py:7") < text.index("%y = ")


def test_agreement_has_none(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_module(dump, 0, DOUBLE, SUM)
    [row] = rows(capsys, dump, "--first-divergence")
    assert (row["divergence"], row["divergence_missing"]) == (None, "")


def test_it_can_be_turned_off(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_module(dump, 0, DOUBLE, SQUARE)
    [row] = rows(capsys, dump, "--no-first-divergence")
    assert (row["verdict"], row["divergence"], row["divergence_missing"]) == ("wrong", None, "")
    main(["run", str(dump), "--no-first-divergence"])
    # `bisect` has no such option.
    assert capsys.readouterr().out.splitlines()[-1] == f"next: hlotool bisect {dump}"


def test_replicas_are_compared_device_by_device(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = "HloModule jit_f, replica_count=2"
    texts = [text.replace("HloModule jit_f", header) for text in (DOUBLE, SQUARE)]
    summed = [
        text.replace("ROOT y", "z").replace(
            "\n}", "\n  ROOT r = f32[4]{0} collective-permute(z), source_target_pairs={{0,1},{1,0}}\n}"
        )
        for text in texts
    ]
    write_module(dump, 0, *summed)
    [row] = rows(capsys, dump, "--first-divergence")
    divergence = row["divergence"]
    assert divergence["finding"] == "wrong"
    assert divergence["source"]["instruction"] == "z"
    assert divergence["device"] == 0


def test_a_slow_comparison_is_not_searched_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    from support.run_records import module

    from hlotool.judge.verdicts import Verdict
    from hlotool.runs.options.kept import ReplayOptions

    monkeypatch.setattr(divergence_row, "_obstacle", lambda *_: "")
    row = module("m", Verdict.WRONG)
    unused: Any = None
    later = divergence_row.with_divergence(
        row, ReplayOptions(), unused, unused, unused, 60 * UNITS_PER_SECOND
    )
    missing = "the comparison takes about 60 s: only looked for with --first-divergence"
    assert later.divergence_missing == missing


def test_a_bug_in_the_search_does_not_cost_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    from support.run_records import module

    from hlotool.judge.verdicts import Verdict
    from hlotool.runs.options.kept import ReplayOptions

    def broken(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(divergence_row, "_obstacle", lambda *_: "")
    monkeypatch.setattr(divergence_row, "_search", broken)
    unused: Any = None
    row = divergence_row.with_divergence(
        module("m", Verdict.WRONG), ReplayOptions(), unused, unused, unused, work=0
    )
    assert row.verdict is Verdict.WRONG
    assert "please report: KeyError: 'oops'" in row.divergence_missing
