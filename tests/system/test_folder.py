"""The cache folder: where the user says, else where the platform keeps such things."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from hlotool.system.cache import cache_folder


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="places of the XDG base directory standard")
def test_else_the_place_of_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HLOTOOL_CACHE", raising=False)
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
