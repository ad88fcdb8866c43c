"""Parts of the suite judge what their processes left: the processes here are scripts that leave just that."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import parts
from benchmarks.gpu.parts import Settings, Work

ROOT = Path(__file__).resolve().parents[2]

_FUZZ = """
import sys, time
from benchmarks.gpu.lines import Reporter
report = Reporter()
for item in sys.argv[1:]:
    report.begin(item)
    if item in {bad}:
        report.add(item, failed="BackendCrashed: it died")
    elif item == "{slow}":
        time.sleep(60)
    else:
        report.add(item, fusions=12, differing={differing})
    report.done(item)
"""


def _work(seconds: float, batches: int = 1) -> Work:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    settings = Settings("cuda", 1, 1, None, batches=batches, environment=environment)
    return Work(settings, {}, time.monotonic() + seconds, lambda: None)


def _scripted(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Whatever is started: a script gets what follows the options."""

    def command(module: str, *arguments: object) -> list[str]:
        return [sys.executable, "-c", script, *map(str, arguments[2:])]

    monkeypatch.setattr(parts, "main_command", command)


def _fuzz(monkeypatch: pytest.MonkeyPatch, seconds: float = 30, **script: Any) -> dict[str, Any]:
    given = {"bad": [], "slow": "", "differing": {}, **script}
    _scripted(monkeypatch, _FUZZ.format(**given))
    work = _work(seconds, batches=3)
    parts.fuzz(work)
    return work.part


def test_random_fusions_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch)
    assert (part["state"], part["reason"]) == ("passed", "36 fusions, equal to the bit")


def test_random_fusions_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch, differing={"5": 2})
    assert part["state"] == "failed"
    assert part["differing"] == {"0": {"5": 2}, "1": {"5": 2}, "2": {"5": 2}}
    assert "results in 3 batches differ" in part["reason"]


def test_the_end_of_the_time_is_no_failure_of_random_fusions(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch, seconds=2, slow="1")
    assert (part["state"], part["reason"]) == ("passed", "12 fusions, equal to the bit")


def test_a_batch_that_failed_counts_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch, seconds=2, bad=["0"], slow="2")
    assert part["state"] == "failed"
    assert "it died" in part["reason"]


@pytest.mark.parametrize(
    ("body", "state", "reason"),
    [
        ("assert True", "passed", "1 passed"),
        ("assert False", "failed", "1 failed"),
        ("pytest.skip('no GPU')", "skipped", "1 skipped"),
        ("time.sleep(60)", "unfinished", "its time was up"),
    ],
)
def test_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, state: str, reason: str) -> None:
    (tmp_path / "test_it.py").write_text(
        f"import pytest, time\ndef test_it():\n    {body}\n", encoding="utf-8"
    )
    monkeypatch.setattr(parts, "_TESTS", tmp_path)
    work = _work(4 if state == "unfinished" else 60)
    parts.tests(work)
    assert work.part["state"] == state
    assert reason in work.part["reason"]


def test_no_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parts, "_TESTS", tmp_path / "none")
    work = _work(10)
    parts.tests(work)
    assert work.part == {"state": "skipped", "reason": "there is no tests/gpu"}


def test_sanitizers_only_watch_a_gpu() -> None:
    work = _work(10)
    parts.sanitizers(work)
    assert work.part["state"] == "skipped"
