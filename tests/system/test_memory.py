"""What a call may take of the machine's memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hlotool.errors import BackendOutOfMemory
from hlotool.system import pool, resources
from hlotool.system.executor import Done, Limits
from hlotool.system.pool import Pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is free")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for `/`: 8 GiB free, the process in the control group `/a` of either version."""
    files = {
        "meminfo": "MemTotal:       16777216 kB\nMemFree:           12345 kB\nMemAvailable:    8388608 kB\n",
        "cgroup": "4:cpu,memory:/a\n0::/a\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(resources, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(resources, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(resources, "_GROUP_ROOT", tmp_path / "groups")
    return tmp_path


def _group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True)
    for name, value in files.items():
        (folder / name.replace("__", ".")).write_text(f"{value}\n")


def test_what_the_system_calls_available(system: Path) -> None:
    assert resources.free_memory() == 8 << 30


@pytest.mark.parametrize("folder", ["groups/a", "groups"])
def test_a_container_has_less(folder: str, system: Path) -> None:
    _group(
        system / folder,
        memory__max=4 << 30,
        memory__current=2 << 30,
        memory__stat=f"inactive_file {1 << 30}",
    )
    assert resources.free_memory() == 3 << 30  # pages of files that nobody needs are given back


def test_so_it_has_under_version_1(system: Path) -> None:
    _group(system / "groups/memory/a", memory__limit_in_bytes=1 << 30, memory__usage_in_bytes=1 << 29)
    assert resources.free_memory() == 1 << 29


def test_a_group_without_a_limit_bounds_nothing(system: Path) -> None:
    _group(system / "groups/a", memory__max="max", memory__current=1 << 30)
    assert resources.free_memory() == 8 << 30


def test_nobody_knows(system: Path) -> None:
    (system / "meminfo").unlink()
    assert resources.free_memory() is None
    assert resources.share_of_free(1) == 0


def _outcomes(limits: Limits, *arguments: str) -> list[Done]:
    with Pool(limits, backend="planted") as started:
        return started.call_all("support.planted:act", arguments)


def test_by_default_a_call_gets_a_share_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def share(sharers: int) -> int:
        asked.append(sharers)
        return 1 << 30

    monkeypatch.setattr(pool, "share_of_free", share)
    before, huge, after = _outcomes(Limits(jobs=1), "before", "allocate", "after")
    assert isinstance(before.value, bytes)
    assert isinstance(after.value, bytes)
    assert isinstance(huge.value, BackendOutOfMemory)
    assert huge.value.message.startswith(
        "needs more memory than its share of 1 GiB of what was free (--memory-limit sets another limit)"
    )
    assert set(asked) == {1}


def test_calls_that_run_beside_each_other_share(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(pool, "share_of_free", lambda sharers: asked.append(sharers) or 0)
    _outcomes(Limits(jobs=2), "a", "b", "c")
    assert asked[0] == 2
    asked.clear()
    _outcomes(Limits(jobs=4), "alone")
    assert asked == [1]


def test_no_limit_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "share_of_free", lambda sharers: 1 << 20)
    (done,) = _outcomes(Limits(jobs=1, memory=0), "fine")
    assert isinstance(done.value, bytes)
