"""Answers kept for later commands: by whom, for how long, and whatever happens to the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hlotool.system import cache
from hlotool.system.cache import Store
from hlotool.system.files import digest

KEYS = [digest(str(number)) for number in range(20)]


def test_what_is_put_is_got(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert store.get(KEYS[0]) is None
    store.put(KEYS[0], {"rows": [1, None, "a\nb"]})
    assert Store(tmp_path / "store").get(KEYS[0]) == {"rows": [1, None, "a\nb"]}
    store.put(KEYS[0], 2)
    assert store.get(KEYS[0]) == 2
    assert store.contents().entries == 1


def test_what_is_damaged_or_elsewhere_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for key in KEYS[:5]:
        store.put(key, "right")
    paths = [tmp_path / key[:2] / key[2:] for key in KEYS[:5]]
    paths[0].write_bytes(paths[0].read_bytes().replace(b"right", b"wrong"))
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    paths[2].write_bytes(b"")
    paths[3].write_bytes(paths[4].read_bytes())
    assert [store.get(key) for key in KEYS[:5]] == [None] * 4 + ["right"]
    monkeypatch.setattr(cache, "__version__", "0.0.0")
    assert store.get(KEYS[4]) is None


def test_the_oldest_give_way(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for age, key in enumerate(KEYS):
        store.put(key, "x" * 1000)
        os.utime(tmp_path / key[:2] / key[2:], (1e9 - age, 1e9 - age))
    size = store.contents().size
    assert store.prune(size).entries == 0
    removed = store.prune(size // 2)
    assert 10 <= removed.entries < 20
    assert store.contents().size <= size // 2
    assert [key for key in KEYS if store.get(key)] == KEYS[: 20 - removed.entries]
    assert store.clear().entries == 20 - removed.entries
    assert store.contents().entries == 0


def test_what_is_used_becomes_young(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEYS[0], 1)
    path = tmp_path / KEYS[0][:2] / KEYS[0][2:]
    os.utime(path, (1e9, 1e9))
    assert store.get(KEYS[0]) == 1
    assert path.stat().st_mtime > 1.5e9


def test_a_large_store_is_pruned_when_it_is_closed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for key in KEYS:
        store.put(key, "x" * 1000)
    store.close(limit=5000)
    assert store.contents().size <= 5000


def test_what_dead_processes_left_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEYS[0], 1)
    left = tmp_path / KEYS[0][:2] / f"{KEYS[0][2:]}.host.1.1"
    left.touch()
    assert store.contents().entries == 1
    assert left.exists()  # somebody may be about to rename it
    os.utime(left, (1e9, 1e9))
    store.contents()
    assert not left.exists()


def test_a_folder_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file")
    store.put(KEYS[0], 1)
    assert store.problem.startswith("verdicts cannot be kept for later runs: ")
    store.put(KEYS[1], 1)
    store.close()
    assert store.get(KEYS[0]) is None


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of files")
def test_a_full_disk_is_a_note_and_leaves_nothing_broken(tmp_path: Path) -> None:
    """A file that may not grow stands for a disk that is full."""
    script = f"""
import resource, signal
from pathlib import Path
from hlotool.system.cache import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(Path({str(tmp_path)!r}))
store.put({KEYS[0]!r}, "small")
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
store.put({KEYS[1]!r}, "x" * 5000)
print(store.problem)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert "verdicts cannot be kept for later runs" in ended.stdout
    store = Store(tmp_path)
    assert [store.get(key) for key in KEYS[:2]] == ["small", None]
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 1
