"""What executors cost by themselves: tasks that do nothing, in processes or on a cluster of this machine.

    python -m benchmarks.fleet.executors [--tasks 100000] [--cluster local:2] [--jobs 2] [--json]

Prints the time per task by the clock and of the first process, how far ahead of those that are over arguments
were drawn, and by how much the memory of the first process grew; nearly all wait as what they are drawn from.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import ROOT
from hlotool.runs.fleet.known import executor_of
from hlotool.system.executor import Done, Limits

#: Does next to nothing in a worker.
_FUNCTION = "hlotool.system.records:legible"


def main() -> None:
    """Run the tasks, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--cluster", help="as of `hlotool run`; processes without")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    figures = measure(given.cluster, given.tasks, given.jobs)
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value}")


def measure(cluster: str | None, tasks: int, jobs: int) -> dict[str, Any]:
    """Figures of one executor; its start is not among them."""
    drawn = done = ahead = failed = 0

    def arguments(count: int) -> Iterator[str]:
        nonlocal drawn, ahead
        for number in range(count):
            drawn += 1
            ahead = max(ahead, drawn - done)
            yield str(number)

    os.environ["PYTHONPATH"] = str(ROOT)
    with executor_of(cluster, Limits(jobs)) as executor:
        executor.start()
        executor.call_all(_FUNCTION, list(map(str, range(4 * jobs))))
        memory, used, began = _memory(), time.process_time(), time.perf_counter()
        for event in executor.run(_FUNCTION, arguments(tasks)):
            if isinstance(event, Done):
                done += 1
                failed += not isinstance(event.value, bytes)
        seconds, own = time.perf_counter() - began, time.process_time() - used
        grown = _memory() - memory
    return {
        "executor": cluster or f"{jobs} processes",
        "tasks": done,
        "failed": failed,
        "ms_per_task": round(1000 * seconds / tasks, 3),
        "ms_of_first_process_per_task": round(1000 * own / tasks, 3),
        "drawn_ahead": ahead,
        "memory_grown_mb": round(grown, 1),
        "memory_mb": round(_memory(), 1),
        "load": round(os.getloadavg()[0], 1),
    }


def _memory() -> float:
    """The largest size of the first process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
