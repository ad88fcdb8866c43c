"""The release of jaxlib with which a program went wrong: each in an environment of its own.

Environments are made by uv where it is there, else by venv and pip, and kept, about 600 MB each: the next
search has them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from hlotool.blame.searches import History, search_history
from hlotool.errors import BackendUnavailable, UsageError
from hlotool.judge.verdicts import Answer
from hlotool.runs.records import ModuleRecord
from hlotool.system.cache import Contents, cache_folder
from hlotool.system.records import CommandRecord, ErrorRecord, Record

#: Seconds that making an environment may take.
_TIMEOUT = 900.0
#: The first jaxlib that was built for NumPy 2; earlier ones do not say that they need an older one.
_NUMPY_2 = (0, 4, 31)
_READY = "ready"


class ReleaseRecord(Record, frozen=True, kw_only=True):
    """A release that was tried.

    Attributes:
        version: of jaxlib.
        verdict: the worst of the programs there; empty where there was none.
        reason: of that, or why there is none.
    """

    version: str
    verdict: str
    reason: str


class ReleasesRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool releases --json` prints.

    Attributes:
        paths: as given.
        known: all releases in the range, in order.
        tried: what was asked, in the order of the releases.
        last_right: the last release that is right before `first_wrong`; empty where none is known.
        first_wrong: the release with which it began; empty where none is wrong, or the first one is already.
        interpreter: of the environment with that one.
        inputs: as given; null for what the dump has, or for generated ones.
        notes: what else is to be said, such as that it was right, wrong and right again.
        error: why the whole command came to nothing.
        interrupted: the user stopped it; the same command goes on.
    """

    schema: Literal["hlotool.releases/1"] = "hlotool.releases/1"
    versions: dict[str, str]
    paths: list[str]
    known: list[str] = []
    tried: list[ReleaseRecord] = []
    last_right: str = ""
    first_wrong: str = ""
    interpreter: str = ""
    inputs: str | None = None
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0


def order_of(version: str) -> tuple[int, ...]:
    """The numbers of a version: `0.4.38` before `0.5.0`."""
    return tuple(map(int, re.findall(r"\d+", version)))


def releases_between(low: str, high: str) -> list[str]:
    """The releases of jaxlib that the package index has for this Python, from `low` to `high`.

    Raises:
        BackendUnavailable: pip cannot ask.
        UsageError: there are not at least two.
    """
    listed = _called([sys.executable, "-m", "pip", "index", "versions", "jaxlib"])
    found = re.search(r"Available versions: (.*)", listed)
    every = [version.strip() for version in found[1].split(",")] if found else []
    wanted = [
        v for v in every if order_of(low) <= order_of(v) <= order_of(high) and re.fullmatch(r"[\d.]+", v)
    ]
    if len(wanted) < 2:
        had = f"{every[-1]} to {every[0]}" if every else "none"
        raise UsageError(f"jaxlib {low}..{high}: not two releases; for this Python there are {had}")
    return sorted(wanted, key=order_of)


def environments() -> Contents:
    """The environments that are kept; no word of when they were of use."""
    folders = _environments()
    files = (file for folder in folders for file in folder.rglob("*") if not file.is_symlink())
    return Contents(len(folders), sum(file.stat().st_size for file in files if file.is_file()))


def remove_environments() -> Contents:
    """Remove them all; returns what was removed."""
    before = environments()
    for folder in _environments():
        shutil.rmtree(folder, ignore_errors=True)
    after = environments()
    return Contents(before.entries - after.entries, before.size - after.size)


def _environments() -> list[Path]:
    return list(_folder().glob("jaxlib-*"))


def _folder() -> Path:
    return cache_folder() / "environments"


def environment(version: str) -> Path:
    """The interpreter of an environment with a release of jaxlib, made where there is none.

    Raises:
        BackendUnavailable: it cannot be made; with what pip says.
    """
    tag = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = _folder() / f"jaxlib-{version}-py{tag}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if (folder / _READY).exists():
        return python
    # What is there was interrupted.
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The newest jax that goes with it: their versions are not always the same.
    wanted = [f"jaxlib=={version}", f"jax<={version}"]
    if order_of(version) < _NUMPY_2:
        wanted.append("numpy<2")
    uv = shutil.which("uv")
    if uv:
        _called([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        _called([uv, "pip", "install", "--quiet", "--python", str(python), *wanted])
    else:
        _called([sys.executable, "-m", "venv", str(folder)])
        _called([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
    (folder / _READY).touch()
    return python


def _called(command: Sequence[str]) -> str:
    """What a command prints; raises BackendUnavailable where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendUnavailable(f"{' '.join(command[:4])}: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it failed")
        raise BackendUnavailable(f"{' '.join(command[:5])} …: {said}")
    return done.stdout


def searched(
    known: Sequence[str],
    judged: Callable[[str], ModuleRecord | str],
    tried: dict[str, ReleaseRecord],
    exhaustive: bool = False,
    left: Callable[[int], None] = lambda points: None,
) -> History:
    """Where programs went wrong, in about log2(n) + 2 releases.

    Args:
        known: the releases, in order.
        judged: the gravest row of a release, or why there is none.
        tried: gets each release that was asked, so that an interruption leaves them.
        exhaustive: try each of them.
        left: called with the number of open releases before each halving.
    """

    def ask(number: int) -> Answer:
        row = judged(version := known[number])
        if isinstance(row, str):
            tried[version] = ReleaseRecord(version=version, verdict="", reason=row)
            return Answer.UNUSABLE
        tried[version] = ReleaseRecord(version=version, verdict=row.verdict.value, reason=row.reason)
        return row.verdict.answer

    return search_history(len(known), ask, exhaustive, left)


def told(known: Sequence[str], history: History) -> tuple[str, str, list[str]]:
    """The last right and the first wrong release, and what else is to be said."""
    turns = [f"{known[t.after]} is {'wrong' if t.breaks else 'right again'}" for t in history.transitions]
    notes = [f"it turned more than once: {', '.join(turns)}"] if len(turns) > 1 else []
    if history.breaks:
        last = history.breaks[-1]
        untried = [known[n] for n in range(last.before + 1, last.after)]
        if untried:
            notes.append(f"between the two, and of no use: {', '.join(untried)}")
        return known[last.before], known[last.after], notes
    if history.first is Answer.BAD and history.last is Answer.BAD:
        first = min(n for n, answer in history.answers.items() if answer is Answer.BAD)
        notes.append(f"{known[first]} is wrong already: begin earlier")
    elif history.first is Answer.BAD:
        notes.append("it was wrong and is right now: no release of the range broke it")
    elif history.first is Answer.UNUSABLE:
        notes.append("no release could be judged")
    else:
        tried = f"{len(history.answers)} of {len(known)}"
        left = "" if len(history.answers) == len(known) else f", of the {tried} that were tried (--every)"
        notes.append(f"no release of the range is wrong{left}")
    return "", "", notes
