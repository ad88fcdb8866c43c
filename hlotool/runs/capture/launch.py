"""The user's program as a child, and what its processes that loaded XLA report of themselves.

The child has the terminal, gets the signals, and ends as it likes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Self

import msgspec

from hlotool.errors import UsageError
from hlotool.judge.verdicts import Verdict
from hlotool.runs.capture.process import VARIABLE, merged
from hlotool.runs.capture.records import ProcessRecord
from hlotool.runs.capture.stderr import Stderr
from hlotool.runs.records import CAPTURED, GENERATED, NO_RESULT, REALITY, ModuleRecord
from hlotool.system.cache import cache_folder

_HOOK = Path(__file__).with_name("hook")

#: What somebody may send to the command and means for the program. Those of a terminal's keys reach both, and
#: but for Ctrl-C they do what they do.
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")

#: What a title has before the name of a module, each with a number behind it.
_BEFORE_THE_NAME = ("process_", "module_")


@dataclass(frozen=True, slots=True)
class DumpWishes:
    """What the program shall write.

    Attributes:
        folder: absolute path of the folder for everything.
        snapshots: arguments and results of executions.
        passes: the program after every pass.
        only: regular expression of titles, None for all modules.
        record: what is looked for in executions within the program (`executions.Wishes`); None where XLA
            records them.
    """

    folder: Path
    snapshots: bool = True
    passes: bool = False
    only: str | None = None
    record: Mapping[str, object] | None = None

    @property
    def basic(self) -> list[str]:
        """Flags that every XLA knows."""
        return [f"--xla_dump_to={self.folder}", "--xla_dump_hlo_as_text"]

    @property
    def wanted(self) -> list[str]:
        """Flags that XLA may not know."""
        flags = ["--xla_dump_large_constants"]
        flags += ["--xla_dump_hlo_snapshots"] if self.snapshots and self.record is None else []
        flags += ["--xla_dump_hlo_pass_re=.*"] if self.passes else []
        return flags + ([f"--xla_dump_hlo_module_re={names}"] if (names := names_for_xla(self.only)) else [])


def names_for_xla(only: str | None) -> str:
    """The name filter with which XLA dumps nothing else; empty where it has to dump all for what `only` says.

    `only` is about whole titles, XLA's expression about names of modules as they are before they become parts
    of file names. So it is for words alone, and those that are about nothing but the name.
    """
    if only is None or not re.fullmatch(r"\w+(\|\w+)*", only):
        return ""
    words = only.split("|")
    if any(map(_may_be_about_numbers, words)):
        return ""
    return "|".join(word.replace("_", ".") for word in words)


def _may_be_about_numbers(word: str) -> bool:
    """Whether a word may stand in `process_12/module_0004.`."""
    stem = word.rstrip("0123456789")
    return any(name.endswith(stem) or word in name for name in _BEFORE_THE_NAME)


def environment_of(wishes: DumpWishes, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of the program.

    Raises:
        UsageError: XLA's flags cannot name the folder.
    """
    if re.search(r"\s", str(wishes.folder)):
        raise UsageError(f"{wishes.folder}: XLA takes no folder with blanks in its name")
    config = {
        "folder": str(wishes.folder),
        "cache": str(cache_folder() / "xla-flags"),
        "basic": wishes.basic,
        "wanted": wishes.wanted,
        "tf": ["--tf_xla_clustering_debug"],
        "record": wishes.record and {**wishes.record, "only": wishes.only or ""},
    }
    paths = [str(_HOOK), *filter(None, [given.get("PYTHONPATH")])]
    return {
        **given,
        "PYTHONPATH": os.pathsep.join(paths),
        "XLA_FLAGS": merged(given.get("XLA_FLAGS", ""), wishes.basic),
        # What is taken from a cache of compiled programs is not compiled, and so not dumped.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        VARIABLE: json.dumps(config),
    }


class Program:
    """A program that starts with its `with` block and gets the signals of this process until the end of that.

    Ctrl-C on a terminal reaches the program anyway; it is passed on where it came to this process alone. What
    to do about a signal is for the program to decide.

    Args:
        command: its name and arguments.
        environment: its variables.
        own_stdout: it writes to this process's stdout; otherwise to its stderr.

    Attributes:
        seconds: that it took, once it has ended.

    Raises:
        UsageError: there is no such command, or, on entry, it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], own_stdout: bool = True
    ) -> None:
        executable = shutil.which(command[0])
        if executable is None:
            raise UsageError(f"{command[0]}: no such command")
        self.command = list(command)
        self.seconds = 0.0
        self._executable = executable
        self._environment = dict(environment)
        self._stdout = None if own_stdout else 2
        self._stderr = Stderr()
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._handlers = ExitStack()
        self._waiter = threading.Thread(target=self._wait, name="end of the program", daemon=True)

    def __enter__(self) -> Self:
        sys.stdout.flush()
        self._handlers.enter_context(_handlers(("SIGINT", *_FORWARDED), self._forward))
        try:
            self._process = subprocess.Popen(
                [self._executable, *self.command[1:]],
                env=self._environment,
                stdout=self._stdout,
                stderr=self._stderr.descriptor,
            )
        except OSError as error:
            self._handlers.close()
            raise UsageError(f"{self.command[0]}: cannot be started: {error.strerror}") from error
        finally:
            self._stderr.start()
        for number in self._early:
            self._send(number)
        self._waiter.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._handlers.close()

    def ended(self, timeout: float) -> bool:
        """Whether it has ended, for which `timeout` seconds are waited."""
        self._waiter.join(timeout)
        return not self._waiter.is_alive()

    @property
    def last_words(self) -> str:
        """The end of what it wrote to stderr, once it has ended."""
        return self._stderr.text()

    @property
    def status(self) -> int:
        """How it ended, as `subprocess` has it: negative for a signal."""
        assert self._process is not None, "the program was never started"
        status = self._process.returncode
        assert status is not None, "the program is still running"
        return status

    def _wait(self) -> None:
        assert self._process is not None
        start = time.monotonic()
        self._process.wait()
        self.seconds = time.monotonic() - start

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT or not _is_in_front():
            self._send(number)

    def _send(self, number: int) -> None:
        if self._process is None:
            self._early.append(number)
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


def _is_in_front() -> bool:
    """Whether a terminal sends what is typed there to this process and its children."""
    for descriptor in (0, 1, 2):
        with suppress(OSError, AttributeError):
            return os.tcgetpgrp(descriptor) == os.getpgrp()
    return False


@contextmanager
def _handlers(names: Iterable[str], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle signals, of those that the system has, until the end of the block."""
    before = {}
    for name in names:
        number = getattr(signal, name, None)
        # What is ignored, as a hangup under nohup, the program ignores, too.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(ValueError):  # not the main thread: it is for others to handle
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def read_processes(folder: Path) -> list[ProcessRecord]:
    """The processes that dumped below `folder`, in the order in which they loaded XLA."""
    found = []
    for path in sorted(folder.glob("process_*.json"), key=os.path.getmtime):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=ProcessRecord))
        except (OSError, msgspec.MsgspecError):
            continue
    return found


def notes_on(
    processes: Sequence[ProcessRecord],
    rows: Sequence[ModuleRecord],
    wishes: DumpWishes,
    given: Mapping[str, str],
    status: int = 0,
    last_words: str = "",
) -> Iterator[str]:
    """What the user should know of how the dump came about.

    Args:
        processes: that loaded XLA.
        rows: of what they compiled.
        wishes: what they were to write.
        given: the variables of the user.
        status: the exit status of the program.
        last_words: the end of what it wrote to stderr.
    """
    kept = set(merged(given.get("XLA_FLAGS", ""), wishes.basic, wishes.wanted).split())
    for flag in given.get("XLA_FLAGS", "").split():
        if flag.startswith("-") and flag not in kept:
            yield f"XLA_FLAGS: {flag} gives way to what this command needs"
    yield from dict.fromkeys(text for process in processes for text in _unknown(process))
    if not processes:
        yield (
            "no process of the program was seen to load JAX, TensorFlow or PyTorch/XLA"
            " (Python with -I, -S or -E is not seen)"
        )
    elif not rows and status:
        from hlotool.checks.explain.recognition import recognize  # not before the program is on its way

        found = recognize(last_words)
        why = (
            f"{found[-1].entry.title} (hlotool explain {found[-1].entry.id})"
            if found
            else ("its messages say why, if it died before XLA began to compile")
        )
        yield f"XLA was loaded, nothing was dumped, and the program failed: {why}"
    elif not rows:
        yield "XLA was loaded and nothing dumped: nothing was compiled, or the program sets XLA_FLAGS late"
    if wishes.snapshots and rows:
        yield from _not_captured(rows)
        yield from _without_result(rows)


def _unknown(process: ProcessRecord) -> Iterator[str]:
    packages = " and ".join(" ".join(filter(None, package)) for package in process.packages.items())
    for flag in process.unknown:
        yield f"{packages} was not given {flag}: not supported there (or the check timed out)"


def _not_captured(rows: Sequence[ModuleRecord]) -> Iterator[str]:
    rows = [row for row in rows if row.verdict is not Verdict.NOT_COMPILED]
    made = {row.name for row in rows if row.inputs is not None and row.inputs.origin == GENERATED}
    if made:
        yield (
            f"of {len(made)} of {len({row.name for row in rows})} modules no execution was captured: not"
            " executed, or XLA writes none here or for several devices; their inputs are generated"
        )


def _without_result(rows: Sequence[ModuleRecord]) -> Iterator[str]:
    captured = {row.name for row in rows if row.inputs is not None and row.inputs.origin == CAPTURED}
    lacking = captured - {row.name for row in rows if row.stage_tested == REALITY}
    if lacking:
        yield (
            f"of {len(lacking)} of {len({row.name for row in rows})} modules the arguments were captured and"
            f" the result was not: {NO_RESULT}"
        )
