"""Tasks that behave badly in a worker process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from hlotool.errors import BackendCrashed, BackendTimeout
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.system.worker import hand_over


def double(value: int) -> int:
    return 2 * value


def leave_a_file(end: str) -> str:
    """Something temporary, and the end of the process if asked for."""
    from hlotool.system.files import passing_folder

    (passing_folder() / "file").write_text("x", encoding="utf-8")
    return act(end)


def process_id(_: Any) -> int:
    return os.getpid()


def act(what: str) -> str:
    """One of several misdeeds, by name; anything else is answered at once."""
    misdeed = _MISDEEDS.get(what)
    return misdeed() if misdeed else f"fine {what}"


def _segfault() -> str:
    print("about to crash", file=sys.stderr, flush=True)
    ctypes.string_at(0)
    return "unreachable"


def _abort() -> str:
    os.write(2, b"F0000 planted check failed\n")
    os.abort()


def _fatal() -> str:
    """As absl does it: the reason, then a stack trace that is longer than what is kept of the log."""
    os.write(2, b"F0000 00:00:1763700000.123456    4242 shape.h:397] Check failed: has_layout() \n")
    os.write(2, b"".join(b"    @     0x7f0000 frame %d\n" % i for i in range(30)))
    os.abort()


def _llvm() -> str:
    os.write(2, b"LLVM ERROR: Unsupported op\n")
    os.abort()


def _hang() -> str:
    time.sleep(60)
    return "too late"


def _raise() -> str:
    raise ValueError("planted exception")


def _break() -> str:
    """As a backend does whose device is of no more use in this process."""
    raise BackendCrashed("device", "an illegal memory access", here=True)


def _overrun() -> str:
    """The same because a kernel ran for too long."""
    raise BackendTimeout("device", "the launch timed out", here=True)


def _allocate() -> str:
    return str(len(bytearray(1 << 34)))


def _bad_alloc() -> str:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def _kill() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


def _exit() -> str:
    os._exit(7)


def _print() -> str:
    print("stray output of a library")
    os.system("echo stray output of a child")
    sys.stdout.flush()
    return "printed"


def _scribble() -> str:
    """Garbage on every channel there is, the private one included."""
    for descriptor in range(3, 32):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"\xff" * 64)
    return _hang()


def _chatter() -> str:
    for i in range(100_000):
        print(f"line {i}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


_MISDEEDS = {
    "segfault": _segfault,
    "abort": _abort,
    "fatal": _fatal,
    "llvm": _llvm,
    "hang": _hang,
    "raise": _raise,
    "break": _break,
    "overrun": _overrun,
    "allocate": _allocate,
    "bad_alloc": _bad_alloc,
    "kill": _kill,
    "exit": _exit,
    "print": _print,
    "chatter": _chatter,
    "scribble": _scribble,
}


def rows(task: Task) -> list[ModuleRecord]:
    """Stands in for the replay of a module whose name may be a misdeed."""
    act(task.module.name)
    return [
        ModuleRecord(path=task.path, name=task.module.title, verdict=Verdict.AGREE, reason=str(os.getpid()))
    ]


def noted_replay(task: Task) -> list[ModuleRecord]:
    """A replay that is noted in a file beside the folder of the dump."""
    from hlotool.runs.run import replay_module

    with Path(task.path).parent.with_name("notes").open("a") as notes:
        notes.write(f"{task.module.title}\n")
    return replay_module(task)


def cut_short(task: Task) -> list[ModuleRecord]:
    """A replay that does something bad at a step that comes after a verdict: `PLANTED` is `step misdeed`."""
    from hlotool.runs import run

    step, misdeed = os.environ["PLANTED"].split()

    def ends(*_: object, **__: object) -> Any:
        return act(misdeed)

    setattr(run, {"sets": "on_further_sets", "divergence": "with_divergence"}[step], ends)
    return run.replay_module(task)


def find_and(what: str) -> str:
    """Two things are handed over, and then comes a misdeed."""
    hand_over({"found": 1})
    hand_over({"found": 2})
    return act(what)
