"""Local copies: bounded, never of another version, and possible where the cache is not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hlotool.errors import DumpError, StoreError
from hlotool.system import store_copies
from hlotool.system.store_copies import Progress, copies_folder, opened, shrink
from hlotool.system.store_objects import look

fsspec = pytest.importorskip("fsspec")
URL = "memory://bucket/x.hlo"


@pytest.fixture
def store() -> Any:
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pipe("/bucket/x.hlo", b"first")
    return files


def read(version: str = "", limit: int = 100) -> bytes:
    with opened(URL, version, limit) as file:
        return file.read()


def test_a_copy_is_of_one_version(store: Any) -> None:
    version = look(URL).version
    assert read(version) == b"first"
    store.pipe("/bucket/x.hlo", b"second")
    # What was listed is what is read, as long as there is a copy of it.
    assert read(version) == b"first"
    assert read() == b"second"
    for copy in copies_folder().iterdir():
        copy.unlink()
    with pytest.raises(StoreError, match="has changed since it was listed"):
        read(version)


def test_a_change_while_it_is_read(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def get_file(path: str, target: str, **options: Any) -> None:
        Path(target).write_bytes(b"first")
        store.pipe("/bucket/x.hlo", b"other")

    monkeypatch.setattr(type(store), "get_file", staticmethod(get_file))
    with pytest.raises(StoreError, match="has changed while it was read"):
        read()
    assert not [path for path in copies_folder().iterdir() if not path.name.startswith("lock-")]


def test_more_than_is_read(store: Any) -> None:
    with pytest.raises(DumpError, match="has 5 bytes; this is not read"):
        read(limit=4)


def test_a_cache_that_cannot_be_written(store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "file"))
    assert read() == b"first"


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    for age, name in enumerate(("newest", "used", "old", "older", "dead.part", "lock-00")):
        path = tmp_path / name
        path.write_bytes(bytes(10))
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    shrink(tmp_path, 25)
    assert {path.name for path in tmp_path.iterdir()} == {"newest", "used", "lock-00"}
    shrink(tmp_path, 0, newest=tmp_path / "used")
    assert {path.name for path in tmp_path.iterdir()} == {"used", "lock-00"}


def test_the_folder_is_looked_through_while_copies_are_added(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOTOOL_STORE_CACHE", "12")
    monkeypatch.setattr(store_copies, "_ROOM", store_copies._Room())
    for text in (b"one..", b"two..", b"three", b"four."):
        store.pipe("/bucket/x.hlo", text)
        assert read() == text
    kept = [path.read_bytes() for path in copies_folder().iterdir() if not path.name.startswith("lock-")]
    assert len(kept) == 2
    assert b"four." in kept


def test_a_download_that_hardly_moves() -> None:
    progress = Progress(URL, 10**9, start=0.0)
    progress.add(10, now=59.0)
    # 61 s at less than 1 KiB a second.
    with pytest.raises(StoreError, match="20 bytes within 61 s"):
        progress.add(10, now=61.0)
    steady = Progress(URL, 10**9, start=0.0)
    for minute in range(1, 100):
        steady.add(70_000, now=61.0 * minute)
    with pytest.raises(StoreError):
        steady.add(1, now=61.0 * 101)


def test_a_download_that_never_ends() -> None:
    progress = Progress(URL, 100, start=0.0)
    progress.add(100, now=1.0)
    with pytest.raises(DumpError, match="more than 100 bytes"):
        progress.add(1, now=1.0)
