"""The `next:` lines that commands print while the tests run, to be executed at the end."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

_LINE = re.compile(r"^next: (.*)$", re.MULTILINE)
#: What is no command line: advice that names a placeholder.
ADVICE = re.compile(r"repeat the command with --debug|XLA_FLAGS=.* for the same program")


@dataclass(frozen=True, slots=True)
class Printed:
    """A command that was advised.

    Attributes:
        command: as printed.
        folder: the working directory.
        test: in which it was printed.
    """

    command: str
    folder: str
    test: str


#: In the order of printing; each once.
RECORDED: dict[tuple[str, str], Printed] = {}


def record(text: object, folder: object = None) -> None:
    """Keep the commands in what was printed."""
    if not isinstance(text, str) or "next: " not in text:
        return
    where = os.path.abspath(str(folder or os.getcwd()))
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    for command in _LINE.findall(text):
        if not ADVICE.match(command):
            RECORDED.setdefault((command, where), Printed(command, where, test))


def watch() -> None:
    """From now on keep what tests read of the output of commands, in this process and in others."""
    read, run = pytest.CaptureFixture.readouterr, subprocess.run

    def readouterr(self: pytest.CaptureFixture[Any]) -> Any:
        captured = read(self)
        record(captured.out)
        record(captured.err)
        return captured

    def recorded_run(*arguments: Any, **options: Any) -> Any:
        ended = run(*arguments, **options)
        record(ended.stdout, options.get("cwd"))
        record(ended.stderr, options.get("cwd"))
        return ended

    pytest.CaptureFixture.readouterr = readouterr  # type: ignore[method-assign]
    subprocess.run = recorded_run  # type: ignore[assignment]
