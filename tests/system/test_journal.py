"""Journals: what was finished is never asked again, whatever cut the search short."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.blame.searches import minimize, search_history
from hlotool.blame.steps import Steps
from hlotool.judge.verdicts import Answer
from hlotool.system import cache
from hlotool.system.cache import Journal
from hlotool.system.files import digest


class Crash(BaseException):
    """The process dies here."""


def planted_search(steps: Steps, computed: list[str], crash_at: int) -> tuple[object, object]:
    """A bisection and a reduction; the process dies when it begins step `crash_at`."""

    def compute(key: str, value: object) -> object:
        if len(computed) == crash_at:
            raise Crash
        computed.append(key)
        return value

    def ask(point: int) -> Answer:
        value = steps.ask(f"h{point}", "", lambda: compute(f"h{point}", "bad" if point > 20 else "good"))
        return Answer(value)

    def first_failing(candidates: list[tuple[int, ...]]) -> int | None:
        for position, kept in enumerate(candidates):
            key = digest(*map(str, kept))
            if steps.ask(key, "", lambda k=kept, n=key: compute(n, {3, 17} <= set(k))):
                return position
        return None

    return search_history(50, ask).breaks, minimize(range(24), first_failing)


def test_a_crash_at_any_step_changes_nothing(tmp_path: Path) -> None:
    whole: list[str] = []
    expected = planted_search(Steps(), whole, -1)
    for crash_at in range(len(whole)):
        path = tmp_path / f"{crash_at}.jsonl"
        computed: list[str] = []
        with pytest.raises(Crash):
            planted_search(Steps(Journal(path)), computed, crash_at)
        later: list[str] = []
        resumed = Steps(Journal(path))
        assert planted_search(resumed, later, -1) == expected
        assert computed + later == whole
        assert (resumed.recalled, resumed.computed) == (crash_at, len(whole) - crash_at)


@given(st.binary(max_size=40), st.integers(0, 200))
def test_torn_and_foreign_lines_are_passed_over(noise: bytes, cut: int) -> None:
    path = Path(tempfile.gettempdir(), f"hlotool-journal-test-{os.getpid()}")
    journal = Journal(path)
    try:
        journal.add("one", {"a": [1, "zwei"]})
        journal.add("two", None)
        journal.close()
        content = path.read_bytes()
        path.write_bytes(content[: len(content) - cut] + noise)
        again = Journal(path)
        again.add("three", 3)
        again.close()
        found = Journal(path).read()
        assert found["three"] == 3
        assert found.get("one", {"a": [1, "zwei"]}) == {"a": [1, "zwei"]}
        assert set(found) <= {"one", "two", "three"}
    finally:
        journal.remove()


def test_a_full_disk_stops_the_journal_and_not_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(Journal(tmp_path / "j"))
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:5]) if len(data) > 30 else _full())
    steps.ask("key", "", lambda: "x" * 100)
    assert steps.ask("key", "", lambda: pytest.fail("asked twice")) == "x" * 100
    assert "No space left" in steps.problem
    monkeypatch.undo()
    assert Journal(tmp_path / "j").read() == {}


def _full() -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    journal = Journal(tmp_path / "file" / "j")
    journal.add("a", 1)
    assert "the journal cannot be written" in journal.problem
    journal.remove()


def test_a_finished_command_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.add("a", 1)
    journal.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_torn_last_line_is_dropped_and_written_past(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for key in ("one", "two"):
        journal = Journal(path)
        journal.add(key, [key])
        journal.close()
        content = path.read_bytes()
        path.write_bytes(content + content[-30:-4])
    assert Journal(path).read() == {"one": ["one"], "two": ["two"]}


def test_answers_of_another_version_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = Journal(tmp_path / "j")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "__version__", "0.0.0")
        older.add("old", 1)
        older.close()
        assert older.read() == {"old": 1}
    newer = Journal(tmp_path / "j")
    assert newer.read() == {}
    newer.add("new", 2)
    newer.close()
    assert newer.read() == {"new": 2}


@pytest.mark.parametrize("value", [float("inf"), -0.0, "a\nb\ud800", [None, True, {"k": 1 << 70}]])
def test_values_come_back_as_they_were(value: object, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.add("k", value)
    journal.close()
    assert repr(journal.read()) == repr({"k": value})


_VICTIM = """
import sys, time
from pathlib import Path
from hlotool.system.cache import Journal
journal = Journal(Path(sys.argv[1]))
for n in range(100000):
    journal.add(str(n), n)
    print(n, flush=True)
"""


def test_what_was_added_survives_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "j"
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert victim.stdout is not None
    victim.stdout.readline()
    time.sleep(0.05)
    victim.send_signal(signal.SIGKILL)
    printed = [int(line) for line in victim.stdout.read().split()]
    victim.stdout.close()
    victim.wait()
    kept = Journal(path).read()
    assert set(map(str, printed)) <= set(kept)
    assert all(kept[key] == int(key) for key in kept)
