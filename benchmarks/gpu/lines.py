"""How processes that may die tell the suite what they found: lines of JSON, one as soon as there is one.

A process works through items (cases, batches, tests). It says `{"begin": ITEM}`, any number of
`{"item": ITEM, "found": {…}}`, `{"item": ITEM, "failed": WHY}` where it failed, and `{"done": ITEM}`; what
concerns no item is `{"about": {…}}`, and `{"spent": KIND, …}` is time. When it dies or falls silent, the item
it had begun failed, and another process goes on behind it.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

#: Characters kept of what a process printed before it died.
_TAIL = 2000

#: A variable with the process that collects: with that one others end, not with a tool in between.
_PARENT = "GPU_SUITE_COLLECTOR"
#: Seconds between two looks whether it lives.
_WATCH = 0.5
#: How a process ended that was at work when the time of its part was up: nothing is wrong with its item.
LATE = "its time was up"


class Reporter:
    """The side that finds: prints the lines; whatever else is printed goes to stderr."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        # A process that dies has no time to flush.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        parent = os.getppid()
        if os.environ.get(_PARENT) == str(parent):
            threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()

    def say(self, **about: object) -> None:
        """Something that concerns no item; what is a dictionary adds to an earlier one."""
        self._print(about=about)

    def begin(self, item: str) -> None:
        """What follows, a death included, concerns this item."""
        self._print(begin=item)

    def add(self, item: str, **found: object) -> None:
        """Something found."""
        self._print(item=item, found=found)

    def fail(self, item: str, why: str) -> None:
        """It went wrong."""
        self._print(item=item, failed=why)

    def done(self, item: str) -> None:
        """There is no more to find."""
        self._print(done=item)

    @contextmanager
    def spending(self, kind: str) -> Iterator[None]:
        """The block's seconds are of a kind of work: on the wall, and of processors, children included."""
        wall, cpu = time.perf_counter(), cpu_seconds()
        try:
            yield
        finally:
            self._print(spent=kind, wall=time.perf_counter() - wall, cpu=cpu_seconds() - cpu)

    def _print(self, **line: object) -> None:
        self._out.write(json.dumps(line, allow_nan=False) + "\n")
        self._out.flush()


def _leave_with(parent: int) -> None:
    """End this process, and what it started, when its parent was killed: who else would free the device?"""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os.killpg(0, signal.SIGKILL)


def cpu_seconds() -> float:
    """Seconds of processors that this process has used, and its children that are over."""
    return sum(os.times()[:4])


@dataclass
class Findings:
    """What was found so far.

    Attributes:
        about: what concerns no item.
        items: by item; under `failed` why it failed.
        done: items that were finished, in that order; each once.
        spent: seconds by kind of work, `wall` and `cpu`.
        title: of what fails here, among other things found of the same items.
    """

    about: dict[str, Any] = field(default_factory=dict)
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    spent: dict[str, dict[str, float]] = field(default_factory=dict)
    title: str = ""

    def take(self, line: Mapping[str, Any], current: str | None) -> str | None:
        """Take a line in; returns the item that the process is at."""
        for name, value in line.get("about", {}).items():
            known = self.about.get(name)
            self.about[name] = known | value if isinstance(known, dict) else value
        if "found" in line:
            self.items.setdefault(line["item"], {}).update(line["found"])
        if "failed" in line:
            self.fail(line["item"], line["failed"])
        if "spent" in line:
            clocks = self.spent.setdefault(line["spent"], {"wall": 0.0, "cpu": 0.0})
            for clock in clocks:
                clocks[clock] = round(clocks[clock] + line[clock], 6)
        if "done" in line:
            self.finish(line["done"])
            return None
        begun: str | None = line.get("begin", current)
        return begun

    def fail(self, item: str, why: str) -> None:
        """Note why an item failed; what failed of it before stays."""
        why = f"{self.title}: {why}" if self.title else why
        found = self.items.setdefault(item, {})
        found["failed"] = f"{found['failed']}; {why}" if found.get("failed") else why

    def finish(self, item: str) -> None:
        """An item is done."""
        if item not in self.done:
            self.done.append(item)


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
    """A process was over before its work: the message says how.

    Attributes:
        is_late: only because the time of its part was up.
    """

    def __init__(self, why: str, is_late: bool = False) -> None:
        super().__init__(why)
        self.is_late = is_late


def collect(
    command: Callable[[list[str]], Sequence[str]],
    items: Sequence[str],
    findings: Findings,
    limits: Limits,
    environment: Mapping[str, str],
    save: Callable[[], None],
    processes: int = 1,
) -> str | None:
    """Have processes work through items, a new one behind each item that kills one.

    Args:
        command: starts a process for some items.
        items: to work through; what is done already is left out.
        findings: to add to.
        limits: of time.
        environment: of the processes.
        save: called after each line, so that nothing is lost; never twice at a time.
        processes: that work at the same time.

    Returns:
        why not all items were finished; None where they were.
    """
    pending = [item for item in items if item not in findings.done]
    crew = _Crew(command, findings, limits, environment, save)
    shares = [pending[n::processes] for n in range(min(processes, len(pending)))]
    with ThreadPoolExecutor(max(1, len(shares))) as pool:
        try:
            stops = [stop for stop in pool.map(crew.work, shares) if stop is not None]
        except BaseException:
            crew.stop()
            raise
    left = [item for item in pending if item not in findings.done]
    if not stops:
        return None
    late = f"no time left for {', '.join(left)}"
    return next((stop for stop in stops if stop != LATE), late)


class _Crew:
    """The processes of one `collect`; see there."""

    def __init__(
        self,
        command: Callable[[list[str]], Sequence[str]],
        findings: Findings,
        limits: Limits,
        environment: Mapping[str, str],
        save: Callable[[], None],
    ) -> None:
        self._command = command
        self._findings = findings
        self._limits = limits
        self._environment = environment
        self._save = save
        self._lock = threading.Lock()
        self._live: set[subprocess.Popen[str]] = set()
        self._is_over = False

    def stop(self) -> None:
        """End all processes; what they were at is not noted as failed."""
        self._is_over = True
        for process in list(self._live):
            end(process)

    def work(self, pending: list[str]) -> str | None:
        """Work through items, one process at a time; returns why not all were finished, LATE for time."""
        while pending and not self._is_over:
            if self._limits.wait <= 0:
                return LATE
            try:
                self._run(pending)
            except Stopped as stop:
                if stop.is_late:
                    return LATE
                before, pending = len(pending), [i for i in pending if i not in self._findings.done]
                if len(pending) == before:
                    return str(stop)
            else:
                return None
        return None

    def _run(self, pending: list[str]) -> None:
        """Take in what one process says; raises as `lines_of`, with the item noted that it died of."""
        current: str | None = None
        try:
            for line in lines_of(self._command(pending), self._limits, self._environment, self._live):
                with self._lock:
                    current = self._findings.take(json.loads(line), current)
                    self._save()
        except Stopped as stop:
            if current is not None and not stop.is_late and not self._is_over:
                with self._lock:
                    self._findings.fail(current, str(stop))
                    self._findings.finish(current)
                    self._save()
            raise


def lines_of(
    command: Sequence[str],
    limits: Limits,
    environment: Mapping[str, str],
    live: set[subprocess.Popen[str]] | None = None,
) -> Iterator[str]:
    """What a process prints, as it prints it; it is in `live` as long as it runs.

    Raises:
        Stopped: it failed, or was killed for being silent or late; with the end of what it wrote to stderr.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            env={**environment, _PARENT: str(os.getpid())},
            start_new_session=True,
        )
        assert process.stdout is not None
        live = set() if live is None else live
        live.add(process)
        read: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process.stdout, read), daemon=True)
        reader.start()
        try:
            while (line := read.get(timeout=max(0.0, limits.wait))) is not None:
                yield line
            if code := process.wait(timeout=30):
                raise Stopped(f"{_ending(code)}{_tail(errors)}")
        except (queue.Empty, subprocess.TimeoutExpired):
            is_late = time.monotonic() >= limits.end
            why = LATE if is_late else f"no news in {limits.silence:.0f} s"
            raise Stopped(f"{why}{_tail(errors)}", is_late) from None
        finally:
            live.discard(process)
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
