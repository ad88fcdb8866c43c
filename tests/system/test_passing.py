"""Folders for a while: gone when their process is, also when that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hlotool.system.executor import Limits
from hlotool.system.files import brief_folder, passing_folder, remove_left
from hlotool.system.pool import Pool

fcntl = pytest.importorskip("fcntl")

ROOT = Path(__file__).resolve().parents[2]
_MAKES = """
import os, sys
from hlotool.system.files import passing_folder
(passing_folder() / "file").write_text("x")
print("made", flush=True)
{end}
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def making(end: str) -> subprocess.Popen[str]:
    """A process that has made a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", _MAKES.format(end=end)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    return process


def test_at_an_end_in_order_nothing_is_left(temporary: Path) -> None:
    making("").communicate()
    assert list(temporary.iterdir()) == []


def test_what_was_killed_is_cleared_away_and_what_lives_is_not(temporary: Path) -> None:
    living, killed = making("sys.stdin.read()"), making("sys.stdin.read()")
    killed.kill()
    killed.communicate()
    assert len(list(temporary.iterdir())) == 2
    remove_left(living.pid)
    remove_left()
    [left] = temporary.iterdir()
    assert left.name.startswith(f"hlotool-of-{living.pid}-")
    assert len([file for file in left.rglob("file") if file.read_text() == "x"]) == 1
    living.communicate()
    assert list(temporary.iterdir()) == []


def test_what_is_not_locked_yet_is_left_alone(temporary: Path) -> None:
    (temporary / "hlotool-of-1-new").mkdir()
    (temporary / "hlotool-of-1-link").symlink_to(temporary)
    remove_left()
    assert len(list(temporary.iterdir())) == 2


def test_a_worker_that_is_killed_leaves_nothing(temporary: Path) -> None:
    with Pool(Limits(timeout=300)) as pool:
        [kept, lost] = pool.call_all("support.planted:leave_a_file", ["", "kill"])
        assert isinstance(kept.value, bytes)
        assert not isinstance(lost.value, bytes)
    assert list(temporary.iterdir()) == []


def test_a_fork_keeps_what_is_its_parents(temporary: Path) -> None:
    folder = passing_folder()
    with brief_folder() as brief:
        assert brief.is_dir()
        child = os.fork()
        if not child:
            own = passing_folder()
            os._exit(own.parent == folder.parent or not own.is_dir())
        assert os.waitpid(child, 0)[1] == 0
    assert folder.is_dir()
    assert not brief.exists()
