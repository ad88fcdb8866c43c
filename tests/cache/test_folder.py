"""The cache folder: where the user says, else where the platform keeps such things."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hlotool.cache.folder import cache_folder


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
