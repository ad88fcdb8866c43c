"""The `next:` lines that commands print while the tests run, to be executed at the end.

What HLOTOOL_TESTS_NEXT_LINES names keeps them beyond the session, whose folders have to be kept as well:

    HLOTOOL_TESTS_NEXT_LINES=lines.jsonl python -m pytest --basetemp=folder
    PYTHONPATH=.:tests python -m support.next_lines lines.jsonl

The second command may be ended and repeated: it goes on where it stopped (`lines.jsonl.ends`).
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hlotool.errors import ExitCode

_LINE = re.compile(r"^next: (.*)$", re.MULTILINE)
#: What is no command line: advice that names a placeholder.
ADVICE = re.compile(r"repeat the command with --debug|XLA_FLAGS=.* for the same program")

#: Longest that a line is watched. One that is at work by then has found its files and understood its options.
_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Printed:
    """A command that was advised.

    Attributes:
        command: as printed.
        folder: the working directory.
        test: in which it was printed.
        pythonpath: what that test set: a stand-in for a package may lie there.
    """

    command: str
    folder: str
    test: str
    pythonpath: str


#: What this process saw already.
_seen: set[tuple[str, str]] = set()
#: Names the file that all processes of a session write to (`pytest -n` starts several).
_FILE = "HLOTOOL_TESTS_NEXT_LINES"


def recorded() -> list[Printed]:
    """What all processes of this session saw until now, each once."""
    return _each_once(_read())


def _each_once(lines: Iterable[Printed]) -> list[Printed]:
    return list({(printed.command, printed.folder): printed for printed in lines}.values())


def _read() -> Iterator[Printed]:
    yield from _lines_of(Path(os.environ[_FILE]))


def _lines_of(path: Path) -> Iterator[Printed]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield Printed(**json.loads(line))


def record(text: object, folder: object = None, test: str = "") -> None:
    """Keep the commands in what was printed: by the test that runs, or by one that ended."""
    if not isinstance(text, str) or "next: " not in text:
        return
    where = os.path.abspath(str(folder or os.getcwd()))
    test = test or os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    for command in _LINE.findall(text):
        if not ADVICE.match(command) and (command, where) not in _seen:
            _seen.add((command, where))
            printed = Printed(command, where, test, os.environ.get("PYTHONPATH", ""))
            line = json.dumps(asdict(printed)) + "\n"
            # One write of less than a page at the end of a file: processes do not tear each other's lines.
            with Path(os.environ[_FILE]).open("ab", buffering=0) as file:
                file.write(line.encode())


@dataclass(frozen=True, slots=True)
class Ends:
    """How the commands ended that were executed.

    Attributes:
        count: of commands.
        at_work: how many were ended by us: to repeat with ten times the time limit is advised for programs
            that never end, too.
        failures: why others are no use.
    """

    count: int
    at_work: int
    failures: list[str]


def execute(lines: Iterable[Printed], cache: Path) -> Ends:
    """Execute commands where they were printed, two at a time; `cache` becomes hlotool's folder of caches."""
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(partial(_execute, cache=cache), lines))
    failures = [end for end in ends if end]
    return Ends(len(ends), ends.count(None), failures)


def _execute(printed: Printed, cache: Path) -> str | None:
    """Why a line is no use; empty where it is, whatever it says of the program; None while it is at work."""
    program, *arguments = shlex.split(printed.command)
    where = f"{printed.test}: {printed.command}"
    if program != "hlotool":
        return f"{where}: no command of ours"
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "hlotool", *arguments],
            cwd=printed.folder,
            env=os.environ | {"HLOTOOL_CACHE": str(cache), "PYTHONPATH": printed.pythonpath},
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        return f"{where}: {error}"
    told = ended.stdout[-500:] + ended.stderr[-500:]
    is_broken = "Traceback" in told or "internal error" in told
    if ended.returncode == ExitCode.USAGE or is_broken:
        return f"{where}: exit {ended.returncode}: {told}"
    return ""


def watch() -> None:
    """From now on keep what tests read of the output of commands, in this process and in others."""
    if _FILE not in os.environ:
        descriptor, os.environ[_FILE] = tempfile.mkstemp(prefix="hlotool-next-lines-", suffix=".jsonl")
        os.close(descriptor)
        atexit.register(Path(os.environ[_FILE]).unlink, missing_ok=True)
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


def main() -> int:
    """Execute the lines of a file that were not executed yet; how many, and which are no use."""
    path = Path(sys.argv[1])
    done = path.with_name(path.name + ".ends")
    done.touch()
    ends = {tuple(key): end for key, end in map(json.loads, done.read_text(encoding="utf-8").splitlines())}
    lines = [line for line in _each_once(_lines_of(path)) if (line.command, line.folder) not in ends]
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(2) as pool, done.open("a") as kept:
        for line, end in zip(lines, pool.map(partial(_execute, cache=Path(cache)), lines), strict=True):
            kept.write(json.dumps([[line.command, line.folder], end]) + "\n")
            kept.flush()
            ends[line.command, line.folder] = end
    print("\n".join(filter(None, ends.values())))
    at_work = sum(end is None for end in ends.values())
    failed = sum(bool(end) for end in ends.values())
    print(f"{len(ends)} lines, {failed} failed, {at_work} were ended while they were at work")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
