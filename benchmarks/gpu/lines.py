"""How processes that may die tell the suite what they found: lines of JSON, one as soon as there is one.

A process works through items (cases, batches). It says `{"begin": ITEM}`, any number of
`{"item": ITEM, "found": {…}}` and `{"done": ITEM}`; what concerns no item is `{"about": {…}}`. When it dies
or falls silent, the item it had begun failed, and another process goes on behind it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

#: Characters kept of what a process printed before it died.
_TAIL = 2000


#: Why an item failed that was begun too late.
LATE = "its time was up"


class Reporter:
    """The side that finds: prints the lines; whatever else is printed goes to stderr."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        # A process that dies has no time to flush.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]

    def say(self, **about: object) -> None:
        """Something that concerns no item."""
        self._print(about=about)

    def begin(self, item: str) -> None:
        """What follows, a death included, concerns this item."""
        self._print(begin=item)

    def add(self, item: str, **found: object) -> None:
        """Something found."""
        self._print(item=item, found=found)

    def done(self, item: str) -> None:
        """There is no more to find."""
        self._print(done=item)

    def _print(self, **line: object) -> None:
        self._out.write(json.dumps(line, allow_nan=False) + "\n")
        self._out.flush()


@dataclass
class Findings:
    """What was found so far.

    Attributes:
        about: what concerns no item.
        items: by item.
        done: items that were finished.
    """

    about: dict[str, Any] = field(default_factory=dict)
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of processes.

    Attributes:
        end: when all must be over, on the clock `time.monotonic`.
        silence: seconds without a line after which a process is given up.
    """

    end: float
    silence: float

    @property
    def wait(self) -> float:
        """Seconds to wait for the next line."""
        return min(self.silence, self.end - time.monotonic())


class Stopped(Exception):
    """A process was over before its work: the message says how."""


def collect(
    command: Callable[[list[str]], Sequence[str]],
    items: Sequence[str],
    findings: Findings,
    limits: Limits,
    environment: Mapping[str, str],
    save: Callable[[], None],
) -> str | None:
    """Have processes work through items, a new one behind each item that kills one.

    Args:
        command: starts a process for some items.
        items: to work through.
        findings: to add to.
        limits: of time.
        environment: of the processes.
        save: called after each line, so that nothing is lost.

    Returns:
        why not all items were begun; None where they were.
    """
    pending = list(items)
    while pending:
        if limits.wait <= 0:
            return f"no time left for {', '.join(pending)}"
        current: str | None = None
        before = len(findings.done)
        try:
            for line in lines_of(command(pending), limits, environment):
                current = _take(json.loads(line), findings, current)
                save()
        except Stopped as stop:
            if current is not None:
                findings.items.setdefault(current, {})["failed"] = str(stop)
                findings.done.add(current)
                save()
            elif len(findings.done) == before:
                return str(stop)
        else:
            return None
        pending = [item for item in pending if item not in findings.done]
    return None


def _take(line: dict[str, Any], findings: Findings, current: str | None) -> str | None:
    """Take a line in; returns the item that the process is at."""
    findings.about.update(line.get("about", {}))
    if "item" in line:
        findings.items.setdefault(line["item"], {}).update(line["found"])
    if "done" in line:
        findings.done.add(line["done"])
        return None
    begun: str | None = line.get("begin", current)
    return begun


def lines_of(command: Sequence[str], limits: Limits, environment: Mapping[str, str]) -> Iterator[str]:
    """What a process prints, as it prints it.

    Raises:
        Stopped: it failed, or was killed for being silent or late; with the end of what it wrote to stderr.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            env=environment,
            start_new_session=True,
        )
        assert process.stdout is not None
        read: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process.stdout, read), daemon=True)
        reader.start()
        try:
            while (line := read.get(timeout=max(0.0, limits.wait))) is not None:
                yield line
            if code := process.wait(timeout=30):
                raise Stopped(f"{_ending(code)}{_tail(errors)}")
        except (queue.Empty, subprocess.TimeoutExpired):
            why = LATE if time.monotonic() >= limits.end else f"no news in {limits.silence:.0f} s"
            raise Stopped(f"{why}{_tail(errors)}") from None
        finally:
            end(process)
            reader.join()
            process.stdout.close()


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(source: IO[str], target: queue.Queue[str | None]) -> None:
    for line in source:
        target.put(line)
    target.put(None)


def _ending(code: int) -> str:
    return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def _tail(errors: IO[str]) -> str:
    errors.flush()
    errors.seek(0)
    text = errors.read()[-_TAIL:].strip()
    return f": {text}" if text else ""


def main_command(module: str, *arguments: object) -> list[str]:
    """Runs a module of this package in a process of its own."""
    return [sys.executable, "-m", f"benchmarks.gpu.{module}", *map(str, arguments)]
