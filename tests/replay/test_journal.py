"""The journal of an interrupted run."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from hlotool.backends.cache import cache_folder
from hlotool.findings.verdict import Verdict
from hlotool.replay.journal import Journal, digest
from hlotool.replay.records import ModuleRecord


def row(name: str) -> ModuleRecord:
    return ModuleRecord(path="p", name=name, verdict=Verdict.AGREE, seconds=0.5)


def test_rows_are_found_again(tmp_path: Path) -> None:
    journal = Journal("c", tmp_path)
    journal.add("k1", [row("a"), row("b")])
    journal.add("k2", [])
    journal.close()
    assert Journal("c", tmp_path).read() == {"k1": [row("a"), row("b")], "k2": []}


def test_a_line_cut_short_is_dropped_and_written_past(tmp_path: Path) -> None:
    journal = Journal("c", tmp_path)
    journal.add("k1", [row("a")])
    journal.close()
    content = journal.path.read_bytes()
    journal.path.write_bytes(content + content[:30])
    again = Journal("c", tmp_path)
    again.add("k2", [row("b")])
    again.close()
    assert Journal("c", tmp_path).read() == {"k1": [row("a")], "k2": [row("b")]}


def test_a_finished_command_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal("c", tmp_path)
    journal.add("k", [row("a")])
    journal.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_note_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    journal = Journal("c", tmp_path / "file")
    journal.add("k", [row("a")])
    assert "journal cannot be written" in journal.problem
    journal.remove()


def test_garbage_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(b'\xff\xfe\n{"key": 3}\nnull\n')
    assert Journal("c", tmp_path).read() == {}


def test_boundaries_count() -> None:
    assert digest([b"ab", b"c"]) != digest([b"a", b"bc"])
    assert digest([b"ab", b"c"]) == digest(iter([b"ab", b"c"]))


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("HLOTOOL_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "hlotool"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "hlotool"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="homes are elsewhere")
def test_without_a_home_the_cache_is_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HLOTOOL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    occupied = tmp_path / "file"
    occupied.touch()
    monkeypatch.setenv("HOME", str(occupied))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private = tmp_path / f"hlotool-{os.getuid()}"
    assert cache_folder() == private
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    # Whoever else can write there could put libraries into it.
    private.chmod(0o777)
    other = cache_folder()
    assert other != private
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
