"""One worker process, seen from its parent: start, send, listen, kill, and what its end means."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import IO

import msgspec
from msgspec import Struct

from hlotool.errors import BackendCrashed, BackendFailed, BackendOutOfMemory, BackendTimeout
from hlotool.system.resources import extended, seconds_starved
from hlotool.system.user_input import size_text
from hlotool.system.worker import (
    BOOT,
    BOOT_ELSEWHERE,
    CALL_MARK,
    Answer,
    Call,
    WorkerOptions,
    is_worker,
    read_answer,
    skip_to_greeting,
    write_message,
)

_logger = logging.getLogger(__name__)

#: Lines of a dead worker's output that go into its report.
LOG_LINES = 20
#: Bytes of output that are kept per worker.
LOG_BYTES = 1 << 16

#: POSIX only; elsewhere no process can die of it.
_SIGKILL: int = getattr(signal, "SIGKILL", 9)

#: Seconds for a process that closed its channel to end by itself.
_LAST_WORDS = 5.0
#: Seconds by which a deadline moves on at least.
_SHORTEST_DELAY = 0.05

#: What libraries write before they abort because an allocation failed.
_ALLOCATION_FAILURES = (
    *("std::bad_alloc", "MemoryError", "Cannot allocate memory", "RESOURCE_EXHAUSTED"),
    "OpenBLAS error: Memory allocation still failed",
)


#: What is said before an abort: by absl's LOG(FATAL) and CHECK (`F0000 00:00:1700000000.0 12 file.cc:34] …`),
#: by LLVM, by the C++ runtime. Stack traces follow, so that it need not be among the last lines.
_COMPLAINT = re.compile(r"^F\d{4} .*?(\S+:\d+)\] (.*)|^(LLVM ERROR: .*)|^(terminate called .*)", re.MULTILINE)


class Log:
    """The last LOG_BYTES of what a worker wrote, and of that what it wrote since its last call began."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._lock = threading.Lock()

    def append(self, part: bytes) -> None:
        """Add output, dropping the oldest beyond the bound."""
        with self._lock:
            self._parts.append(part)
            self._size += len(part)
            while self._size - len(self._parts[0]) >= LOG_BYTES:
                self._size -= len(self._parts.popleft())

    def tail(self) -> str:
        """The last LOG_LINES lines, but for Python's list of imported libraries behind a stack trace."""
        lines = [line for line in self._text().splitlines() if not line.startswith("Extension modules: ")]
        return "\n".join(lines[-LOG_LINES:]).rstrip("\n")

    def complaint(self) -> str:
        """The line in which a library says why it ends the process; empty when none does."""
        found = _COMPLAINT.search(self._text())
        return " ".join(filter(None, found.groups())).strip() if found else ""

    def _text(self) -> str:
        with self._lock:
            written = b"".join(self._parts)
        return written.rpartition(CALL_MARK)[2].decode("utf-8", errors="backslashreplace")


class MemoryBound(Struct, frozen=True):
    """What a call may take.

    Attributes:
        size: in bytes, 0 for no limit.
        is_share: not set by the user, but a share of what was free when the call began.
    """

    size: int
    is_share: bool = False

    def __str__(self) -> str:
        if not self.size:
            return "the machine gives"
        shown = size_text(self.size)
        if not self.is_share:
            return f"the limit of {shown}"
        return f"its share of {shown} of what was free (--memory-limit sets another limit)"


class WorkerProcess:
    """A running worker.

    Answers arrive in the queue given at construction as `(worker, answer)`; `(worker, None)` says that the
    process is gone, and comes exactly once.

    Args:
        events: gets the answers.
        options: how it is set up.
        environment: its variables.
        interpreter: path of a Python interpreter with packages of its own; empty for this one.

    Attributes:
        task: number of the task it works on, None when idle or not ready yet.
        is_ready: it finished its imports.
        memory: what its call may take.
        so_far: what its call has found, piece by piece in MessagePack.
        deadline: `time.monotonic()` at which it has had its time, infinite when nothing is timed.
    """

    def __init__(
        self,
        events: queue.SimpleQueue[tuple[WorkerProcess, Answer | None]],
        options: WorkerOptions,
        environment: Mapping[str, str],
        interpreter: str = "",
    ) -> None:
        self.task: int | None = None
        self.is_ready = False
        self.deadline = float("inf")
        self.so_far: list[bytes] = []
        self.log = Log()
        self._began = time.monotonic()
        self._time_limit: float | None = None
        self._starved = 0.0
        self._is_timed_out = False
        self.memory = MemoryBound(options.memory_limit)
        # Ctrl-C goes to the first parent alone, and a kill reaches the worker's own workers too.
        self._is_leader = not is_worker()
        self._process = subprocess.Popen(
            _command(options, interpreter),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=self._is_leader,
            pass_fds=() if options.log is None else (options.log.descriptor,),
        )
        _logger.info("worker %d started: %s", self._process.pid, " ".join(options.preload))
        self._drain = threading.Thread(target=self._drain_log, name="worker log", daemon=True)
        self._drain.start()
        threading.Thread(target=self._receive, args=(events,), name="worker answers", daemon=True).start()

    def send(
        self, task: int, function: str, argument: object, timeout: float | None, memory_share: int = 0
    ) -> bool:
        """Start a call that may take `memory_share` bytes (0: any); False when the worker is dead."""
        if memory_share:
            self.memory = MemoryBound(memory_share, is_share=True)
        call = Call(function, pickle.dumps(argument), memory_share)
        try:
            write_message(self._pipe(self._process.stdin), call)
        except OSError:
            return False
        _logger.debug(
            "worker %d: task %d of %s, %s s", self._process.pid, task, function, timeout or "no limit of"
        )
        self.task = task
        self.so_far = []
        self.limit_time(timeout)
        return True

    def limit_time(self, seconds: float | None) -> None:
        """What it does from now on may take `seconds`, but for those in which it starves (None: for ever)."""
        self._began = time.monotonic()
        self._starved = 0.0 if seconds is None else seconds_starved(self._process.pid)
        self._time_limit = seconds
        self.deadline = float("inf") if seconds is None else self._began + seconds

    def put_off(self) -> bool:
        """Move the deadline on by the time for which no processor was free; False where it has come for good.

        A limit is about the program, and not about what else the machine has to do.
        """
        starved = seconds_starved(self._process.pid) - self._starved
        self.deadline = self._began + extended(self._time_limit or 0.0, starved)
        _logger.debug("worker %d: starved for %.1f s", self._process.pid, starved)
        return self.deadline > time.monotonic() + _SHORTEST_DELAY

    @property
    def elapsed(self) -> float:
        """Seconds since its call (or its start) began."""
        return time.monotonic() - self._began

    def finish(self) -> None:
        """Its call is answered; it is free for another one."""
        self.task = None
        self.deadline = float("inf")

    def time_out(self) -> None:
        """Kill it because it took longer than its limit."""
        self._is_timed_out = True
        _logger.info("worker %d: no answer within %g s", self._process.pid, self._time_limit or 0.0)
        self.deadline = float("inf")
        self.kill()

    def kill(self) -> None:
        """End the process and its children at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._is_leader and hasattr(os, "killpg"):
                os.killpg(self._process.pid, _SIGKILL)
            else:
                self._process.kill()

    def close(self) -> None:
        """Kill it and wait until it is gone; what it had for a while goes with it."""
        from hlotool.system.files import remove_left

        self.kill()
        self._process.wait()
        remove_left(self._process.pid)
        self._drain.join(timeout=1)
        with contextlib.suppress(OSError):
            self._pipe(self._process.stdin).close()

    @property
    def is_killed(self) -> bool:
        """Whether a signal ended the process, and it was not sent from here because time was up."""
        code = self._process.poll()
        return code is not None and code < 0 and not self._is_timed_out

    def epitaph(self, backend: str) -> BackendFailed:
        """Why the process ended; its channel is closed, so that its end is near."""
        try:
            # Killed now, it could not be told from a process that somebody else killed.
            self._process.wait(timeout=_LAST_WORDS)
        except subprocess.TimeoutExpired:
            self.close()
            return BackendCrashed(backend, "the process lost its channel and was killed", self.log.tail())
        self.close()
        log = self.log.tail()
        if self._is_timed_out:
            message = f"no answer within {self._time_limit:g} s; the process was killed"
            return BackendTimeout(backend, message, log)
        code = self._process.returncode
        _logger.info("worker %d %s", self._process.pid, _end_of(code))
        if code == -_SIGKILL:
            message = "killed by SIGKILL from outside, most likely by the system's out-of-memory killer"
            return BackendOutOfMemory(backend, message, log)
        if any(sign in log for sign in _ALLOCATION_FAILURES):
            return out_of_memory(backend, self.memory, log=log)
        complaint = self.log.complaint()
        message = f"the process {_end_of(code)}"
        return BackendCrashed(backend, f"{message}: {complaint}" if complaint else message, log)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe

    def _receive(self, events: queue.SimpleQueue[tuple[WorkerProcess, Answer | None]]) -> None:
        with self._pipe(self._process.stdout) as stream:
            if skip_to_greeting(stream):
                while answer := read_answer(stream):
                    events.put((self, answer))
        events.put((self, None))

    def _drain_log(self) -> None:
        with self._pipe(self._process.stderr) as stream:
            while part := os.read(stream.fileno(), 1 << 14):
                self.log.append(part)


def _command(options: WorkerOptions, interpreter: str) -> list[str]:
    """What starts a worker: in this interpreter with the same search path, or in another one with its own."""
    setup = msgspec.json.encode(options).decode()
    if not interpreter:
        return [sys.executable, "-c", BOOT, setup, *sys.path]
    files = [sys.modules[name].__file__ for name in ("hlotool", "msgspec")]
    return [interpreter, "-c", BOOT_ELSEWHERE, setup, *filter(None, files)]


def out_of_memory(backend: str, bound: MemoryBound, detail: str = "", log: str = "") -> BackendOutOfMemory:
    """The error of a call that wanted more memory than it may have."""
    message = f"needs more memory than {bound}"
    return BackendOutOfMemory(backend, f"{message}: {detail}" if detail else message, log)


def _end_of(code: int) -> str:
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"
