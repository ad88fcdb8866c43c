"""Processes that die, hang or run late lose their own item and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from benchmarks.gpu.lines import Findings, Limits, collect

ROOT = Path(__file__).resolve().parents[2]

#: A process that does with each item what its name says.
_WORKER = """
import os, sys, time
from benchmarks.gpu.lines import Reporter
report = Reporter()
report.say(started=True)
for item in sys.argv[1:]:
    if item == "early":
        sys.exit("cannot begin")
    report.begin(item)
    print("what libraries print is no line of ours")
    report.add(item, first=1)
    if item == "abort":
        os.abort()
    if item == "fail":
        sys.exit("it went wrong")
    if item == "hang":
        time.sleep(60)
    if item == "wrong":
        report.fail(item, "it computes something else")
    with report.spending("work"):
        report.add(item, second=2)
    report.done(item)
    if item == "leave":
        sys.exit("of no more use")
"""


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _collect(
    items: list[str],
    environment: dict[str, str],
    silence: float = 20,
    seconds: float = 60,
    processes: int = 1,
    findings: Findings | None = None,
) -> tuple[str | None, Findings, int]:
    """Why it ended, what was found, how often that was saved."""
    findings, saved = findings or Findings(), []

    def command(pending: list[str]) -> list[str]:
        return [sys.executable, "-c", textwrap.dedent(_WORKER), *pending]

    limits = Limits(time.monotonic() + seconds, silence)
    reason = collect(command, items, findings, limits, environment, lambda: saved.append(1), processes)
    return reason, findings, len(saved)


def test_all_is_found(environment: dict[str, str]) -> None:
    reason, findings, saved = _collect(["a", "b"], environment)
    assert reason is None
    assert findings.items == {"a": {"first": 1, "second": 2}, "b": {"first": 1, "second": 2}}
    assert findings.about == {"started": True}
    assert findings.done == ["a", "b"]
    assert saved == 11
    assert set(findings.spent) == {"work"}
    assert 0 < findings.spent["work"]["wall"] < 5


def test_a_death_costs_one_item(environment: dict[str, str]) -> None:
    reason, findings, _ = _collect(["a", "abort", "b", "fail", "c"], environment)
    assert reason is None
    assert [name for name in findings.items if findings.items[name].get("second")] == ["a", "b", "c"]
    assert findings.items["abort"]["first"] == 1
    assert findings.items["abort"]["failed"].startswith("died of SIGABRT: what libraries print")
    assert "ended with status 1" in findings.items["fail"]["failed"]
    assert "it went wrong" in findings.items["fail"]["failed"]


def test_a_process_that_leaves_between_items_is_replaced(environment: dict[str, str]) -> None:
    reason, findings, _ = _collect(["leave", "a"], environment)
    assert reason is None
    assert "failed" not in findings.items["leave"]
    assert findings.items["a"]["second"] == 2


def test_a_process_that_hangs_is_killed(environment: dict[str, str]) -> None:
    start = time.monotonic()
    reason, findings, _ = _collect(["hang", "a"], environment, silence=2)
    assert time.monotonic() - start < 30
    assert reason is None
    assert "no news in 2 s" in findings.items["hang"]["failed"]
    assert findings.items["a"]["second"] == 2


def test_time_is_up(environment: dict[str, str]) -> None:
    """What was at work then has not failed; it is left for another run, which begins with it."""
    reason, findings, _ = _collect(["a", "hang", "b"], environment, seconds=2)
    assert reason == "no time left for hang, b"
    assert findings.items == {"a": {"first": 1, "second": 2}, "hang": {"first": 1}}
    assert findings.done == ["a"]
    reason, findings, _ = _collect(["a", "hang", "b"], environment, silence=2, findings=findings)
    assert reason is None
    assert findings.done == ["a", "hang", "b"]
    assert findings.items["hang"]["failed"].startswith("no news in 2 s")


def test_what_failed_says_so_and_the_others_go_on(environment: dict[str, str]) -> None:
    known = Findings(title="speed", items={"wrong": {"failed": "smoke: no"}})
    reason, findings, _ = _collect(["wrong", "a"], environment, findings=known)
    assert reason is None
    assert findings.items["wrong"]["failed"] == "smoke: no; speed: it computes something else"
    assert findings.items["a"] == {"first": 1, "second": 2}


def test_several_processes_share_the_items(environment: dict[str, str]) -> None:
    items = ["hang", "a", "abort", "b", "c", "d"]
    start = time.monotonic()
    reason, findings, _ = _collect(items, environment, silence=5, processes=2)
    assert time.monotonic() - start < 50  # the one that hangs does so for 60 s
    assert reason is None
    assert sorted(findings.done) == sorted(items)
    assert {name for name, found in findings.items.items() if "failed" in found} == {"hang", "abort"}


def test_a_process_ends_with_its_parent(environment: dict[str, str]) -> None:
    """Killed, the parent cannot end it; what it started in turn ends, too."""
    child = "import os, subprocess; from benchmarks.gpu.lines import Reporter; "
    child += "Reporter().say(group=os.getpid()); subprocess.run(['sleep', '50'])"
    parent = "import sys, time; from benchmarks.gpu.lines import Limits, lines_of; import os; "
    parent += "limits = Limits(time.monotonic() + 50, 50); live = set(); "
    parent += "lines = lines_of([sys.executable, '-c', sys.argv[1]], limits, os.environ, live); "
    parent += "print(next(lines), flush=True); next(lines)"
    process = subprocess.Popen(
        [sys.executable, "-c", parent, child], env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stdout is not None
    group = json.loads(process.stdout.readline())["about"]["group"]
    assert _is_alive(group)
    process.kill()
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 20
    while _is_alive(group) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _is_alive(group)


def _is_alive(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_that_cannot_begin_ends_it(environment: dict[str, str]) -> None:
    reason, findings, _ = _collect(["early", "a"], environment)
    assert reason is not None
    assert "cannot begin" in reason
    assert findings.items == {}


def test_numbers_that_json_has_no_word_for_are_errors(environment: dict[str, str]) -> None:
    script = "from benchmarks.gpu.lines import Reporter\nReporter().add('x', bad=float('inf'))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.returncode
    assert done.stdout == ""
