"""A test that hangs ends, and says so; one that has ended is not watched any more."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support import time_limit

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
import pytest
from support import time_limit

time_limit.LIMIT = 0.2

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with time_limit.watching(item):
        return (yield)
"""
TESTS = """
import threading

def test_that_ends():
    pass

def test_that_hangs():
    print("captured")
    threading.Event().wait()
"""


def test_a_test_that_hangs_ends_its_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_two.py").write_text(TESTS, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == time_limit.STATUS
    assert "test_two.py::test_that_hangs: no end within 0.2 s" in ended.stderr
    assert "in test_that_hangs" in ended.stderr
    assert "that_ends" not in ended.stderr


def test_a_busy_machine_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "usable_cores", lambda: 2)
    for load, share in ((0.0, 1.0), (2.0, 1.0), (8.0, 0.25)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0), raising=False)
        assert time_limit._share() == share


def test_each_test_is_watched(request: pytest.FixtureRequest) -> None:
    assert [thread.name for thread in threading.enumerate()].count("time limit") == 1
