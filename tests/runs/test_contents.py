"""What is known of files without reading them: a changed file is never taken for the one that was read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hlotool
from hlotool.errors import DumpError
from hlotool.runs.fleet import contents as under_test
from hlotool.runs.fleet.contents import Contents
from hlotool.sources.locations import Source
from hlotool.system.cache import Store
from hlotool.system.files import digest
from hlotool.system.pool import Pool

pytestmark = pytest.mark.skipif(os.name != "posix", reason="nothing is kept without times of change")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as unchanged for long as soon as they are written."""
    monkeypatch.setattr(under_test, "_RACY", -60.0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read from now on."""
    found: list[str] = []
    read = Source.read_bytes

    def noted(source: Source) -> bytes:
        found.append(source.path)
        return read(source)

    monkeypatch.setattr(Source, "read_bytes", noted)
    return found


def key_of(store: Store, path: Path, name: str = "ab12") -> str:
    """The key of a file's content, as a command finds it."""
    contents = Contents(store, name)
    found = contents.of(Source(str(path))).facts.key
    contents.close()
    return found


@pytest.mark.usefixtures("settled")
def test_what_was_read_is_not_read_again(tmp_path: Path, reads: list[str]) -> None:
    store, path = Store(tmp_path / "store"), tmp_path / "a.txt"
    path.write_bytes(b"sharding={replicated} {...}")
    assert key_of(store, path) == digest(b"sharding={replicated} {...}")
    contents = Contents(store, "ab12")
    content = contents.of(Source(str(path)))
    assert (content.facts.is_elided, content.facts.speaks_of_devices) == (True, True)
    assert len(reads) == 1
    assert content.read() == path.read_bytes()
    assert len(reads) == 2
    assert key_of(store, path, "cd34") == content.facts.key  # another command has another index
    assert len(reads) == 3


@pytest.mark.usefixtures("settled")
def test_a_change_without_trace_in_size_and_time_is_noticed(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "store"), tmp_path / "a.txt"
    path.write_bytes(b"first")
    status = path.stat()
    assert key_of(store, path) == digest(b"first")
    path.write_bytes(b"other")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert key_of(store, path) == digest(b"other")
    replaced = tmp_path / "b.txt"
    replaced.write_bytes(b"third")
    os.utime(replaced, ns=(status.st_atime_ns, status.st_mtime_ns))
    replaced.rename(path)
    assert key_of(store, path) == digest(b"third")


def test_nothing_is_kept_of_a_file_that_has_just_changed(tmp_path: Path, reads: list[str]) -> None:
    store, path = Store(tmp_path / "store"), tmp_path / "a.txt"
    path.write_bytes(b"first")
    for count in (1, 2):
        key_of(store, path)
        assert len(reads) == count


@pytest.mark.usefixtures("settled")
def test_a_change_while_it_is_read_is_not_kept(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, path = Store(tmp_path / "store"), tmp_path / "a.txt"
    path.write_bytes(b"first")
    read = Source.read_bytes

    def changed_then(source: Source) -> bytes:
        content = read(source)
        path.write_bytes(b"a longer one")
        return content

    with monkeypatch.context() as patch:
        patch.setattr(Source, "read_bytes", changed_then)
        assert key_of(store, path) == digest(b"first")
    assert key_of(store, path) == digest(b"a longer one")


@pytest.mark.usefixtures("settled")
def test_a_content_that_is_gone_is_not_another_one(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "store"), tmp_path / "a.txt"
    path.write_bytes(b"first")
    key_of(store, path)
    known = Contents(store, "ab12").of(Source(str(path)))
    path.write_bytes(b"other")
    with pytest.raises(DumpError, match="changed while it was in use"):
        known.read()


@pytest.mark.usefixtures("settled")
def test_an_index_forgets_files_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")
    monkeypatch.setattr(under_test, "_OTHERS", 0)
    paths = [tmp_path / f"{number}.txt" for number in range(3)]
    for path in paths:
        path.write_text(path.name)
        key_of(store, path)
    assert set(store.get("ab12")) == {str(paths[2])}  # two others are more than the one that was seen
    monkeypatch.setattr(under_test, "_OTHERS", 5)
    key_of(store, paths[0])
    assert set(store.get("ab12")) == {str(paths[2]), str(paths[0])}


@pytest.mark.usefixtures("settled")
def test_without_a_store_everything_is_read(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"first")
    for _ in range(2):
        assert Contents().of(Source(str(path))).read() == b"first"
    assert len(reads) == 2


@pytest.mark.usefixtures("settled")
def test_no_worker_starts_for_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "small.hlo"
    path.write_text("HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)\n}\n")
    started = []
    add = Pool._add_worker
    monkeypatch.setattr(Pool, "_add_worker", lambda pool: [started.append(pool), add(pool)])
    first, again = (hlotool.replay(path) for _ in range(2))
    assert len(started) == 1
    assert again.record.remembered is not None
    assert again.rows == first.rows
    hlotool.replay(path, cache=False)
    assert len(started) == 2
