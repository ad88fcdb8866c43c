"""Files that nobody reads half of: what was there stays until what comes is written."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hlotool.system.files import write_over, write_whole

resource = pytest.importorskip("resource")


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


@pytest.mark.parametrize("is_over", [True, False])
def test_a_disk_that_takes_no_more_leaves_what_was_there(tmp_path: Path, is_over: bool) -> None:
    file, content = tmp_path / "file", bytes(10_000)
    file.write_bytes(b"old")
    with pytest.raises(OSError, match="too large"), no_file_larger_than(5000):
        write_over(file, [content]) if is_over else write_whole(file, content)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_bytes() == b"old"


def test_pieces_that_end_early_leave_what_was_there(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"ne"
        raise KeyboardInterrupt

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_over(tmp_path / "file", pieces())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_over(link, [b"ne", b"w"])
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_over(tmp_path / "new", [b"new"])
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_other_names_of_a_file_see_what_is_new(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"old and longer")
    other.hardlink_to(one)
    write_over(one, [b"new"])
    assert other.read_bytes() == b"new"


def test_a_device_stays_one() -> None:
    write_over("/dev/null", [b"new"])
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["n" * 250, "plain"])
def test_what_cannot_be_replaced_is_written(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(*_: object) -> None:
        raise OSError(errno.EBUSY, "mounted")

    file = tmp_path / name
    file.write_bytes(b"old")
    if name == "plain":
        monkeypatch.setattr(os, "replace", replace)
    write_over(file, [b"new"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"new"}


def test_no_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_over(tmp_path / "none" / "file", [b"new"])
