"""Arrays in files without names: the same values, read-only, gone with their last reader; full disks."""

from __future__ import annotations

import gc
import os
import resource
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hlotool.ir import arrays
from hlotool.ir.arrays import LEAST, NoRoomOnDisk, OnDisk

COUNT = LEAST // 2


@pytest.mark.parametrize("dtype", [np.uint16, np.float64, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_values_are_the_same(dtype: np.dtype[np.generic]) -> None:
    rng = np.random.default_rng(7)
    array = rng.integers(0, 7, (3, COUNT)).astype(dtype)
    disk = OnDisk()
    ((kept, small), other) = disk.keep(((array, 3), array.T))
    assert kept.dtype == array.dtype
    assert kept.shape == array.shape
    assert kept.tobytes() == array.tobytes()
    assert other.tobytes() == array.T.tobytes()
    assert small == 3
    assert not kept.flags.writeable
    assert disk.size == 2 * array.nbytes


def test_what_is_there_stays_there() -> None:
    disk = OnDisk()
    kept = disk.keep(np.zeros(LEAST, np.uint8))
    assert disk.keep(kept) is kept
    assert disk.keep(kept.view()[5:]).base is not None
    assert disk.size == LEAST


def test_small_arrays_stay_in_memory() -> None:
    array = np.zeros(LEAST - 1, np.uint8)
    assert OnDisk().keep(array) is array


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has no name even while it is read, so that no end of the process can leave it."""
    monkeypatch.setattr(arrays.tempfile, "tempdir", str(tmp_path))
    kept = OnDisk().keep(np.ones(LEAST, np.uint8))
    assert list(tmp_path.iterdir()) == []
    assert int(kept.sum()) == LEAST
    descriptors = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    del kept
    gc.collect()
    assert not descriptors or len(os.listdir("/proc/self/fd")) <= descriptors


def test_a_full_disk_has_an_error_of_its_own() -> None:
    """A limit on the size of files stands for the end of a disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LEAST, hard))
    try:
        with pytest.raises(NoRoomOnDisk, match=r"no room for an array of 2 MiB in .*: File too large"):
            OnDisk().keep(np.zeros(2 * LEAST, np.uint8))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_memory_is_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays.tempfile, "tempdir", str(tmp_path))
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(arrays, "_MOUNTS", mounts)
    mounts.write_text("disk / ext4 rw 0 0\n")
    assert arrays.room_on_disk() > 0
    mounts.write_text(f"disk / ext4 rw 0 0\ntmpfs {tmp_path.resolve().parent} tmpfs rw 0 0\n")
    assert arrays.room_on_disk() == 0
