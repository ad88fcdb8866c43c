"""Fixtures of the tests of object stores: a dump, and a web server of its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.programs import DOUBLE, SQUARE, SUM, write_module
from support.web_server import WebServer


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for each test, and no secrets of others."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HLOTOOL_STORE_ATTEMPTS", "2")
    monkeypatch.setenv("HLOTOOL_URL_SECRETS", "{}")
    return tmp_path / "cache"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump with an agreeing module, a wrong one in a folder below, and files that nobody needs."""
    root = tmp_path / "served"
    inner = root / "dump" / "host 1"
    inner.mkdir(parents=True)
    write_module(root / "dump", 0, DOUBLE, SUM)
    write_module(inner, 1, DOUBLE, SQUARE, "jit_g")
    (root / "dump" / "module_0000.jit_f.ir-with-opt.ll").write_text("not needed")
    (root / "dump" / ".git").mkdir()
    (root / "dump" / ".git" / "module_0009.jit_h.before_optimizations.txt").write_text("hidden")
    long_ago = 1_700_000_000
    for path in root.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    return root / "dump"


@pytest.fixture
def web(dump: Path) -> Iterator[WebServer]:
    """A server of the folder above the dump."""
    pytest.importorskip("aiohttp")
    server = WebServer(dump.parent)
    yield server
    server.close()
