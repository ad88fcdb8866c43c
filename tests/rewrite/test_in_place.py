"""Programs that do not fit four times over run as they are, before they get smaller sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hlotool
from hlotool.errors import BackendOutOfMemory
from hlotool.ir.arrays import NoRoomOnDisk
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale import in_place as place
from hlotool.rewrite.scale.in_place import in_place
from hlotool.rewrite.scale.limits import Limits
from hlotool.runs import scaling
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.run import replay_module
from hlotool.runs.task import find_tasks

TEXT = """HloModule big

ENTRY e {
  x = f32[512,512] parameter(0)
  y = f32[512,512] parameter(1)
  a = f32[512,512] OPERATION(x)
  b = f32[512,512] multiply(a, y)
  c = f32[512,512] add(b, x)
  ROOT r = f32[512,512] reverse(c), dimensions={0}
}
"""
#: Two arguments and a result: 3 MiB; a comparison takes 12 MiB, one execution without arguments 1 MiB,
#: and drawing an argument a little more.
LIMIT = "5M"
GOOD = (Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "module_0001.big.before_optimizations.txt").write_text(TEXT.replace("OPERATION", "tanh"))
    (folder / "module_0001.big.cpu_after_optimizations.txt").write_text(TEXT.replace("OPERATION", "tanh"))
    return folder


def with_fault(dump: Path) -> None:
    path = dump / "module_0001.big.cpu_after_optimizations.txt"
    path.write_text(path.read_text().replace("tanh(x)", "sine(x)"))


def rows(dump: Path, **options: object) -> list[object]:
    [task] = find_tasks([str(dump)], RunOptions(**options), [])
    return replay_module(task)


def test_it_runs_at_full_size_and_says_how(dump: Path) -> None:
    found = hlotool.replay(str(dump), scale=LIMIT, cache=False)
    [row] = found.rows
    assert row.verdict is Verdict.IDENTICAL
    assert row.scaled is None
    assert row.in_place is not None
    assert row.in_place.on_disk == 3 << 20
    assert row.in_place.limit == 5 << 20
    assert row.leaves[0].total == 1 << 18
    assert row.inputs.sets == []
    assert "ran within  5 MiB: 3 MiB of arguments and results on disk, no extra inputs" in str(found)


def test_a_fault_is_found_there(dump: Path) -> None:
    with_fault(dump)
    [row] = rows(dump, scale=LIMIT)
    assert row.verdict is Verdict.WRONG
    assert row.in_place is not None
    assert "sine(" in row.divergence.text


def test_results_are_those_of_a_run_with_all_the_memory(dump: Path, tmp_path: Path) -> None:
    plain = hlotool.replay(str(dump), cache=False, save_outputs=str(tmp_path / "plain"))
    tight = hlotool.replay(str(dump), scale=LIMIT, cache=False, save_outputs=str(tmp_path / "tight"))
    assert plain.rows[0].in_place is None
    assert tight.rows[0].in_place is not None
    pairs = [
        (one, tmp_path / "tight" / one.relative_to(tmp_path / "plain"))
        for one in (tmp_path / "plain").rglob("*.npy")
    ]
    assert len(pairs) == 2
    for one, other in pairs:
        assert np.load(one).tobytes() == np.load(other).tobytes()


def test_given_arguments_are_held_on_disk_and_results_of_the_hardware_compared(
    dump: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((512, 512)).astype(np.float32) for _ in range(2))
    np.savez(tmp_path / "input.npz", x=x, y=y)
    real = (np.tanh(x.astype(np.float64)) * y + x)[::-1].astype(np.float32)
    np.savez(tmp_path / "output.npz", real)
    given = {name: str(tmp_path / f"{name[:-1]}.npz") for name in ("inputs", "outputs")}
    found = hlotool.replay(str(dump), scale=LIMIT, **given, cache=False).rows
    assert [row.verdict in GOOD for row in found] == [True, True]
    assert all(row.in_place is not None and row.scaled is None for row in found)
    assert found[-1].in_place.on_disk >= 4 << 20


@pytest.mark.parametrize(
    "failure", [MemoryError("no"), BackendOutOfMemory("numpy", "no", here=True), NoRoomOnDisk("no")]
)
def test_what_does_not_run_that_way_gets_smaller_sizes(
    failure: Exception, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    class Failing(scaling.Fitted):
        def keep(self, value: object) -> object:
            if self.in_place is not None:
                calls.append(value)
                raise failure
            return value

    monkeypatch.setattr(scaling, "Fitted", Failing)
    [row] = rows(dump, scale=LIMIT)
    assert calls
    assert row.in_place is None
    assert row.scaled is not None
    assert row.verdict is Verdict.IDENTICAL
    assert any(note.startswith("as it is, it did not run: ") and "no" in note for note in row.notes)


def test_never_means_not_even_then(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "memory_left", lambda: 5 << 20)
    [row] = rows(dump, scale="never")
    assert row.in_place is not None
    assert row.verdict is Verdict.IDENTICAL


@pytest.mark.parametrize(
    ("memory", "seconds", "room", "runs"),
    [
        (5 << 20, 300.0, 1 << 40, True),
        (1 << 19, 300.0, 1 << 40, False),  # one execution does not fit
        (5 << 20, 1e-3, 1 << 40, False),  # it would take too long
        (5 << 20, 300.0, 2 << 20, False),  # no room on the disk
    ],
)
def test_where_it_is_possible(
    memory: int, seconds: float, room: int, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "room_on_disk", lambda: room)
    module = parse_module(TEXT.replace("OPERATION", "tanh"))
    found = in_place({"a": module, "b": module}, Limits(memory, seconds))
    assert (found is not None) is runs


def test_the_plan_is_shown_and_nothing_runs(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hlotool.interface.cli.main import main

    text = "HloModule broken\n\nENTRY e { x = f32[2] nothing() }\n"
    (dump / "module_0002.broken.before_optimizations.txt").write_text(text)
    assert main(["run", str(dump), "--scale", "64K", "--show-scale", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    plan, broken = record["plans"]
    assert record["schema"] == "hlotool.scale/1"
    assert record["memory"] == 64 << 10
    assert {size["old"] for size in plan["scaled"]["sizes"]} == {512}
    assert plan["scaled"]["scaled_memory"] < plan["scaled"]["memory"] == plan["memory"]
    assert plan["in_place"] is None
    assert plan["unseen"]
    assert "nothing" in broken["note"]
    assert broken["scaled"] is None


def test_plans_are_those_that_a_replay_follows(dump: Path) -> None:
    for scale in ("64K", LIMIT, "512=7", "never"):
        [plan] = hlotool.show_scale(str(dump), scale=scale).rows
        [row] = rows(dump, scale=scale)
        assert plan.scaled == row.scaled
        assert (plan.in_place is None) is (row.in_place is None)
        if plan.in_place is not None:
            assert plan.in_place == row.in_place


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["run", "{dump}", "--scale", LIMIT], "runs within  5 MiB: 3 MiB of arguments and results on disk"),
        (["run", "{dump}"], "runs   as it is"),
        (["bisect", "{dump}", "--scale", LIMIT], "scaled      512 → "),
        (["prove", "{dump}", "--scale", LIMIT], "scaled      512 → "),
        (["prove", "{before}", "{after}", "--scale", LIMIT], "scaled      512 → "),
        (["reduce", "{before}", "--scale", LIMIT], "scaled      512 → "),
    ],
)
def test_every_command_with_scale_shows_it(
    command: list[str], shown: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hlotool.interface.cli.main import main

    before, after = sorted(dump.iterdir(), key=lambda path: "after" in path.name)
    words = [word.format(dump=dump, before=before, after=after) for word in command]
    assert main([*words, "--show-scale"]) == 0
    assert shown in capsys.readouterr().out


def test_plans_are_no_findings(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hlotool.interface.cli.main import main

    assert main(["run", str(dump), "--show-scale", "--format", "csv"]) == 2
    assert "--show-scale finds nothing for --format" in capsys.readouterr().err
