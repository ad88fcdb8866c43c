"""Time in which no processor was free is no time that a program took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hlotool.system.resources import MOST_STARVED, extended, seconds_starved

BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"

counted = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count it")


def test_a_limit_is_extended_by_the_time_of_starvation() -> None:
    assert extended(300.0, 0.0) == 300.0
    assert extended(300.0, 120.5) == 420.5
    assert extended(300.0, -1.0) == 300.0  # a child that ended took its count with it
    assert extended(1.0, 1e9) == 1.0 + MOST_STARVED


@counted
def test_processes_that_share_a_processor_starve() -> None:
    """Two that are always busy on one processor: each waits while the other runs."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        while any(seconds_starved(process.pid) < 0.1 for process in processes):
            time.sleep(0.01)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert seconds_starved(processes[0].pid) == 0.0  # it is gone


@counted
def test_descendants_count() -> None:
    """A process that sleeps while its children share a processor."""
    script = (
        f"import subprocess, sys\nfor _ in range(2): subprocess.Popen([sys.executable, '-c', {BUSY!r}])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script + "input()"], stdin=subprocess.PIPE, start_new_session=True
    ) as parent:
        try:
            while seconds_starved(parent.pid) < 0.2:
                time.sleep(0.01)
        finally:
            os.killpg(parent.pid, 9)
