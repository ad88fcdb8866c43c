"""Shards, samples, and records that become one again.

The expected record is that of the whole run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from support.programs import write_module
from support.renaming import renamed

import hlotool
from hlotool.errors import ExitCode, InputError, UsageError
from hlotool.interface.cli.main import main
from hlotool.runs.fleet.known import sample_of, shard_of
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.task import Task, find_tasks

TEXT = """\
HloModule jit_f

ENTRY %main.1 (x.1: f32[SIZE]) -> f32[SIZE] {
  %x.1 = f32[SIZE]{0} parameter(0)
  ROOT %y.2 = f32[SIZE]{0} OPCODE(%x.1, %x.1)
}
"""


def program(number: int, opcode: str = "add") -> str:
    return TEXT.replace("SIZE", str(number + 2)).replace("OPCODE", opcode)


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve programs on two hosts, the third of them wrong, the fifth not to be replayed."""
    dump = tmp_path_factory.mktemp("shards") / "dump"
    for host in ("a", "b"):
        folder = dump / host
        folder.mkdir(parents=True)
        for number in range(12):
            opcode = "multiply" if number == 3 else "add"
            before, after = program(number), program(number, opcode)
            if number == 5:
                after = after.replace("add(%x.1, %x.1)", 'custom-call(%x.1), custom_call_target="unknown"')
            if host == "b":
                before, after = renamed(before, host, number), renamed(after, host, number)
            write_module(folder, number, before, after, f"jit_{'even' if number % 2 == 0 else 'odd'}")
    return dump


def tasks(dump: Path) -> list[Task]:
    return find_tasks([str(dump)], RunOptions(), [])


def test_shards_are_disjoint_and_complete_and_keep_twins_together(dump: Path) -> None:
    every = tasks(dump)
    parts = [shard_of(every, number, 3).positions for number in (1, 2, 3)]
    assert sorted(position for part in parts for position in part) == list(range(24))
    assert all({(position + 12) % 24 for position in part} == set(part) for part in parts)
    assert sum(map(bool, parts)) > 1


def test_a_sample_has_all_functions_and_sizes(dump: Path) -> None:
    every = tasks(dump)
    chosen = sample_of(every, 6, 0)
    names = [every[position].module.name for position in chosen.positions]
    assert sorted(names) == ["jit_even"] * 3 + ["jit_odd"] * 3
    assert chosen == sample_of(every, 6, 0)
    assert chosen.positions != sample_of(every, 6, 1).positions
    assert chosen.notes == ["a sample of 6 of 24 modules (seed 0): the other 18 were not run"]
    assert sample_of(every, 24, 0).notes == []
    assert sample_of(every, 1, 0).notes[0].endswith("among them 1 functions as a whole")


def plain(record: dict[str, Any]) -> dict[str, Any]:
    record = dict(record, seconds=0, paths=[])
    record["modules"] = [dict(row, seconds=0) for row in record["modules"]]
    return record


@pytest.fixture(scope="module")
def records(dump: Path) -> list[str]:
    """Those of three shards; a run of each takes more than a second."""
    found = []
    for number in (1, 2, 3):
        with redirect_stdout(StringIO()) as printed:
            main(["run", str(dump), "--json", "--no-cache", "--shard", f"{number}/3", "--no-further-sets"])
        found.append(printed.getvalue())
    return found


@pytest.fixture
def shards(records: list[str], tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"shard-{number}.json" for number in (1, 2, 3)]
    for path, record in zip(paths, records):
        path.write_text(record)
    return paths


def test_the_records_of_all_shards_are_that_of_the_whole_run(
    dump: Path, shards: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", str(dump), "--json", "--no-cache", "--no-further-sets"])
    whole = json.loads(capsys.readouterr().out)
    assert main(["merge", *map(str, reversed(shards)), "--json"]) == code == ExitCode.MISMATCH
    assert plain(json.loads(capsys.readouterr().out)) == plain(whole)
    assert hlotool.merge(shards).exit_code is ExitCode.MISMATCH


def edited(path: Path, **changes: Any) -> Path:
    record = json.loads(path.read_text())
    record["options"].update(changes.pop("options", {}))
    record["versions"].update(changes.pop("versions", {}))
    path.write_text(json.dumps({**record, **changes}))
    return path


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda paths: paths[:2], r"missing: shard 3/3"),
        (lambda paths: [*paths, paths[1]], r"shard-2\.json: shard 2/3 is in .*shard-2\.json, too"),
        (lambda paths: [edited(paths[0], options={"shard": None}), *paths[1:]], "not of a shard"),
        (lambda paths: [paths[0], edited(paths[1], options={"seed": 7}), paths[2]], "other options"),
        (lambda paths: [paths[0], edited(paths[1], paths=["other"]), paths[2]], "of other modules"),
        (lambda paths: [paths[0], edited(paths[1], versions={"numpy": "1"}), paths[2]], "made with numpy 1"),
        (lambda paths: [paths[0], edited(paths[1], options={"shard": "2/4"}), paths[2]], "is one of 3"),
    ],
)
def test_what_are_not_the_shards_of_one_run(
    change: Callable[[list[Path]], Sequence[Path]], complaint: str, shards: list[Path]
) -> None:
    with pytest.raises(UsageError, match=complaint):
        hlotool.merge(list(change(shards)))


def test_what_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"schema": "hlotool.check/1"}')
    with pytest.raises(InputError, match="not what `hlotool run --json` prints"):
        hlotool.merge(path)
    with pytest.raises(InputError, match="No such file"):
        hlotool.merge(tmp_path / "absent.json")


def test_a_run_ends_after_enough_failures(dump: Path) -> None:
    found = hlotool.replay(str(dump), max_failures=1, jobs=1, cache=False, further_sets=False)
    assert found.exit_code is ExitCode.MISMATCH
    assert len(found.rows) < 24
    left = 24 - len(found.rows)
    assert f"ended after 1 failures: {left} modules were not run" in found.notes
    assert found.record.found == 24


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/2"])
def test_what_is_no_shard(text: str, dump: Path) -> None:
    with pytest.raises(UsageError, match="is no shard"):
        hlotool.replay(str(dump), shard=text)


def test_a_sample_is_not_of_a_shard(dump: Path) -> None:
    with pytest.raises(UsageError, match="give one"):
        hlotool.replay(str(dump), shard="1/2", sample=3)
