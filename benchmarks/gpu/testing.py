"""Tests, one line of JSON after the other, so that one that hangs or dies takes no other with it.

    python -m benchmarks.gpu.testing --list FOLDER
    python -m benchmarks.gpu.testing FOLDER TEST …

The first says `{"about": {"tests": {TEST: whether it must have the device alone}}}`, the second runs those
named.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import pytest

from benchmarks.gpu.cases import ROOT
from benchmarks.gpu.lines import Reporter
from benchmarks.gpu.work import PYTEST
from hlotool.backends.cuda.device import open_device

#: Characters kept of what a failed test says.
_KEPT = 1500


class _Lister:
    """Says which tests there are."""

    def __init__(self, report: Reporter) -> None:
        self._report = report

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        alone = {item.nodeid: item.get_closest_marker("alone") is not None for item in session.items}
        self._report.say(tests=alone)


class _Runner:
    """Runs some tests, and says how each went."""

    def __init__(self, wanted: Sequence[str], report: Reporter) -> None:
        self._wanted = frozenset(wanted)
        self._report = report
        self._outcome = "passed"

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._wanted]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._outcome = "passed"
        self._report.begin(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._outcome = report.outcome
        if report.failed:
            self._report.fail(report.nodeid, report.longreprtext[-_KEPT:])
        elif report.skipped:
            self._report.add(report.nodeid, said=str(report.longrepr)[-_KEPT:])
        if report.when == "call":
            self._report.add(report.nodeid, seconds=round(report.duration, 2))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._report.add(nodeid, outcome=self._outcome)
        self._report.done(nodeid)
        if self._outcome == "failed" and _is_lost():
            # The other tests get another process.
            os._exit(1)


def _is_lost() -> bool:
    """Whether this process has used the device, and cannot use it any more."""
    return bool(open_device.cache_info().currsize) and open_device(0).is_broken()


def main() -> None:
    """List tests, or run those named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true")
    parser.add_argument("folder")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    report = Reporter()
    os.chdir(ROOT)
    given = [*PYTEST, options.folder]
    if options.list:
        sys.exit(pytest.main([*given, "--collect-only"], [_Lister(report)]))
    # Tests that fail have said so.
    pytest.main(given, [_Runner(options.tests, report)])


if __name__ == "__main__":
    main()
