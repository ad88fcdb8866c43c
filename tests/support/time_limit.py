"""A test that hangs ends its process: named, with the stacks of all threads. Under `-n` the others go on.

Seconds count as far as there are processors for everybody who wants one: a busy machine, on which a test
takes twenty times as long, is no hang.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hlotool.system.resources import usable_cores
from support.budget import HUNG

#: Seconds for a test of the quick suite, of which the slowest takes less than a minute on an idle machine.
LIMIT = float(HUNG)
#: A slow one may take as many times as long.
SLOW = 12
#: The status of a process that was ended: none of pytest's own.
STATUS = 70


#: The clock as it was before any test: some replace it.
_now = time.monotonic


@contextmanager
def watching(item: pytest.Item) -> Iterator[None]:
    """End the process if the block takes too long."""
    over = threading.Event()
    limit = LIMIT * (SLOW if item.get_closest_marker("slow") else 1)
    thread = threading.Thread(target=_watch, args=(item, limit, over), name="time limit", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(item: pytest.Item, limit: float, over: threading.Event) -> None:
    counted, last = 0.0, _now()
    while not over.wait(min(10.0, limit / 4)):
        now = _now()
        counted, last = counted + (now - last) * _share(), now
        if counted > limit:
            _end(item, limit)


def _share() -> float:
    """How much of a processor somebody gets who wants one."""
    waiting = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return min(1.0, usable_cores() / max(waiting, 1e-9))


def _end(item: pytest.Item, limit: float) -> None:
    capture = item.config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    stream = sys.__stderr__
    if stream is not None:
        print(f"\n{item.nodeid}: no end within {limit:g} s of an idle machine", file=stream, flush=True)
        faulthandler.dump_traceback(stream, all_threads=True)
    os._exit(STATUS)
