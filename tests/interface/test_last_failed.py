"""`--last-failed`: what failed in the last run of the same paths, by the rules of pytest's option."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.programs import BROKEN, DOUBLE, SQUARE, SUM, write_module

from hlotool import replay
from hlotool.errors import UsageError
from hlotool.interface.cli.main import main


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three modules, the second of which is miscompiled."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "dump"
    folder.mkdir()
    for number, after in enumerate([SUM, SQUARE, SUM]):
        write_module(folder, number, DOUBLE.replace("2)", f"2)  // {number}"), after)
    return folder


def record(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    main([*map(str, words), "--json"])
    return json.loads(capsys.readouterr().out)


def numbers(run: Any) -> list[int]:
    return [int(row["name"][7:11]) for row in run["modules"]]


def test_what_failed_is_run_again_and_what_is_mended_is_forgotten(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert numbers(record(capsys, "run", dump)) == [0, 1, 2]
    again = record(capsys, "run", dump, "--last-failed")
    assert numbers(again) == [1]
    assert again["exit_code"] == 1
    assert again["found"] == 3
    assert again["notes"] == [
        "1 of 3 modules failed in the last run of these paths: the others were not looked at"
    ]
    write_module(dump, 1, DOUBLE, SUM)
    assert record(capsys, "run", dump, "--last-failed")["exit_code"] == 0
    whole = record(capsys, "run", dump, "--last-failed")
    assert numbers(whole) == [0, 1, 2]
    assert whole["notes"] == ["all modules: in the last run of these paths none is known to have failed"]


def test_a_run_changes_only_what_is_known_of_what_it_looked_at(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(capsys, "run", dump)
    write_module(dump, 0, DOUBLE, SQUARE)
    assert numbers(record(capsys, "run", dump, "--only", "0000")) == [0]
    assert numbers(record(capsys, "run", dump, "--last-failed")) == [0, 1]
    # Of those that are wanted none failed: pytest runs all of them, too.
    assert numbers(record(capsys, "run", dump, "--last-failed", "--only", "0002")) == [2]


def test_the_same_paths_from_elsewhere(
    dump: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record(capsys, "run", dump)
    monkeypatch.chdir(dump.parent)
    assert numbers(record(capsys, "run", "dump", "--last-failed")) == [1]
    monkeypatch.chdir(dump)
    assert numbers(record(capsys, "run", os.curdir, "--last-failed")) == [1]
    other = dump.parent / "other"
    other.mkdir()
    write_module(other, 1, DOUBLE, SUM)
    assert numbers(record(capsys, "run", dump, other, "--last-failed")) == [0, 1, 2, 1]


def test_what_is_known_and_what_keeps_nothing(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline's findings fail no more, and `--no-cache` leaves nothing for later."""
    main(["run", str(dump), "--no-cache", "--record", str(dump.parent / "known.json")])
    capsys.readouterr()
    assert numbers(record(capsys, "run", dump, "--last-failed")) == [0, 1, 2]
    record(capsys, "run", dump, "--baseline", dump.parent / "known.json")
    assert numbers(record(capsys, "run", dump, "--last-failed")) == [0, 1, 2]


def test_what_else_is_a_failure(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_module(dump, 2, BROKEN, SUM)
    write_module(dump, 3, DOUBLE, None)
    record(capsys, "run", dump, "--fail-on", "not-compared")
    assert numbers(record(capsys, "run", dump, "--last-failed")) == [1, 2, 3]
    assert numbers(record(capsys, "run", dump, "--last-failed")) == [1, 2]


@pytest.mark.parametrize("other", [{"shard": "1/2"}, {"sample": 1}])
def test_one_choice_at_a_time(dump: Path, other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"--last-failed .*: give one"):
        replay(dump, last_failed=True, **other)


def test_check(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["--skip", "recompilation"]
    write_module(dump, 2, BROKEN, SUM)
    assert record(capsys, "check", dump, *rules)["modules"] == 3
    again = record(capsys, "check", dump, *rules, "--last-failed", "--show", "error")
    assert (again["modules"], again["exit_code"]) == (1, 2)
    assert again["notes"] == [
        "1 of 3 modules failed in the last run of these paths: the others were not looked at"
    ]
    write_module(dump, 2, DOUBLE, SUM)
    assert record(capsys, "check", dump, *rules, "--last-failed")["modules"] == 1
    assert record(capsys, "check", dump, *rules, "--last-failed")["modules"] == 3


def test_what_programs_show_together_takes_all_of_them(
    corpus: Path, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One program alone was compiled once."""
    twice = corpus / "tf" / "keras_fit"
    for options in ([], ["--last-failed"]):
        found = record(capsys, "check", twice, dump, "--only", "recompilation", *options)
        assert [one["message"].partition(" times")[0] for one in found["findings"]] == [
            "one_step_on_data was compiled 2",
            "f was compiled 3",
        ]
    assert found["notes"] == ["all modules: in the last run of these paths some failed together"]
