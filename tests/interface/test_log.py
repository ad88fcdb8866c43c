"""The log: silent unless asked for, then on stderr, that of worker processes included."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.budget import HUNG

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import build_parser
from hlotool.system.logs import LEVELS

REPOSITORY = Path(__file__).resolve().parents[2]
MODULE = "HloModule small\nENTRY e {\n  x = f32[9] parameter(0)\n  ROOT y = f32[9] add(x, x)\n}\n"
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3} (\d+) (\w+) +(hlotool\.[\w.]+): (.+)")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "small.hlo"
    path.write_text(MODULE, encoding="utf-8")
    return path


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hlotool", *words],
        cwd=REPOSITORY,
        env={k: v for k, v in os.environ.items() if k != "HLOTOOL_LOG"} | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=HUNG,
        check=False,
    )


def test_without_being_asked_there_is_no_log(module: Path) -> None:
    assert run("run", module).stderr == ""


def test_processes_and_files_are_logged_wherever_they_are_used(module: Path) -> None:
    # What another test has replayed would not be handed to a worker.
    ended = run("run", module, "--json", "--no-cache", "--log", "debug")
    assert ended.returncode == ExitCode.NOTHING_COMPARED
    assert json.loads(ended.stdout)["schema"] == "hlotool.run/1"
    found = [LINE.fullmatch(line) for line in ended.stderr.splitlines()]
    lines = [match.groups() for match in found if match]
    assert len(lines) == len(found)
    messages = [message for *_, message in lines]
    assert any(re.match(r"worker \d+ started", message) for message in messages)
    assert any(re.match(r"worker \d+: task 0 of .*, 300(\.0)? s", message) for message in messages)
    readers = {process for process, *_, message in lines if message == f"read {module}"}
    parents = {process for process, *_, message in lines if "started" in message}
    assert readers - parents, "the worker reads the module, and says so in the same log"


def test_a_level_says_how_much(module: Path) -> None:
    ended = run("run", module, "--log", "info")
    assert " INFO " in ended.stderr
    assert " DEBUG " not in ended.stderr


def test_the_environment_asks_too(module: Path) -> None:
    assert " INFO " in run("run", module, HLOTOOL_LOG="info").stderr
    wrong = run("run", module, HLOTOOL_LOG="loud")
    assert wrong.returncode == ExitCode.USAGE
    assert "HLOTOOL_LOG=loud: it is one of debug, info, warning" in wrong.stderr


def test_time_limits_are_logged(tmp_path: Path) -> None:
    slow = tmp_path / "slow.hlo"
    slow.write_text(
        "HloModule slow\nc { p = (s64[]) parameter(0) ROOT t = pred[] constant(true) }\n"
        "b { p = (s64[]) parameter(0) n = s64[] get-tuple-element(p), index=0\n"
        "  k = s64[] constant(1) o = s64[] add(n, k) ROOT r = (s64[]) tuple(o) }\n"
        "ENTRY e { z = s64[] constant(0) i = (s64[]) tuple(z)\n"
        "  ROOT w = (s64[]) while(i), condition=c, body=b }\n",
        encoding="utf-8",
    )
    ended = run("run", slow, "--timeout", "1", "--log", "info")
    assert ended.returncode == ExitCode.BACKEND_FAILED
    assert re.search(r"worker \d+: no answer within 1 s", ended.stderr)


def test_a_library_user_hears_nothing_by_default() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("hlotool").handlers)


def test_the_option_knows_the_levels() -> None:
    for level in LEVELS:
        assert build_parser().parse_args(["run", "x", "--log", level]).log == level
