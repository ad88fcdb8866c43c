"""Keys of contents: what changes is noticed, whatever the file system says of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from hlotool.system.files import digest, path_fingerprint

ROOT = Path(__file__).resolve().parents[2]


def test_boundaries_count() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a") == digest(b"a")


def rewrite(path: Path, content: bytes) -> None:
    """New content of the same size, in the same file, with the time of change that it had."""
    before = path.stat()
    assert len(content) == before.st_size
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (
        before.st_mtime_ns,
        before.st_size,
        before.st_ino,
    )


def elsewhere(path: Path) -> str:
    """The fingerprint as another process sees it."""
    program = (
        "import sys; from pathlib import Path; from hlotool.system.files import path_fingerprint\n"
        "print(path_fingerprint(Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()


def test_changed_content_with_an_unchanged_time_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "in.npz"
    file.write_bytes(b"one")
    before = path_fingerprint(file)
    assert elsewhere(file) == before
    rewrite(file, b"two")
    assert elsewhere(file) != before
    rewrite(file, b"one")
    assert elsewhere(file) == before


def test_a_changed_time_alone_is_no_change(tmp_path: Path) -> None:
    file = tmp_path / "in.npz"
    file.write_bytes(b"one")
    before = path_fingerprint(file)
    os.utime(file, (0, 0))
    assert path_fingerprint(file) == before


def test_a_folder_is_its_files_with_their_relative_names(tmp_path: Path) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    deep = tmp_path / "a" / "deep" / "x.npz"
    deep.write_bytes(b"one")
    seen = {path_fingerprint(tmp_path)}
    deep.write_bytes(b"three")
    seen.add(path_fingerprint(tmp_path))
    deep.rename(tmp_path / "a" / "x.npz")
    seen.add(path_fingerprint(tmp_path))
    (tmp_path / "empty").write_bytes(b"")
    seen.add(path_fingerprint(tmp_path))
    assert len(seen) == 4
    (tmp_path / "empty").unlink()
    assert path_fingerprint(tmp_path) in seen


def test_an_archive_is_its_bytes(tmp_path: Path) -> None:
    member = tmp_path / "m"
    keys = []
    for content in (b"one", b"two", b"one"):
        member.write_bytes(content)
        os.utime(member, (0, 0))
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            archive.add(member, "m")
        keys.append(path_fingerprint(tmp_path / "a.tar"))
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]


def test_what_is_missing_has_a_key_of_its_own(tmp_path: Path) -> None:
    missing = path_fingerprint(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"")
    assert path_fingerprint(tmp_path / "x") != missing


def test_a_file_is_read_once_per_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x")
    key = path_fingerprint(file)
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("read again"))
    assert path_fingerprint(file) == key
