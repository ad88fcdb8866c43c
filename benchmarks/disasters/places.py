"""Other disasters: disks that are full or cannot be written, workers out of memory, clocks that jump.

Disks are small or read-only file systems in a namespace of their own (`unshare`); where the system does not
allow that, this is said and nothing is claimed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.disasters.kills import damaged
from benchmarks.disasters.subjects import SUBJECTS, End, Place, differences, without

#: Trials of each disaster: sizes of disks, moments.
TRIALS = 5
_DAY = 86400
#: What every one of the reports begins with, when it is whole, and how it ends.
_WHOLE = {"page.html": b"</html>", "junit.xml": b"</testsuites>", "found.sarif": b"}"}
_OLD = b"of an earlier run\n"

_IN_NAMESPACE = """
cd "$PLACE"
{before}
cd work
"$@" > ../first.json 2> ../first.err; echo $? > ../first.code
cd ..
mv notes notes.first 2> /dev/null
mkdir seen; cp -a cache work seen
{between}
cd work
"$@" > ../second.json 2> ../second.err; echo $? > ../second.code
cd ..
mkdir seen/after; cp -a cache work seen/after
"""


@dataclass(slots=True)
class Happened:
    """What became of commands.

    Attributes:
        trials: how often it happened.
        said: different things that the commands said about it.
        again: calls of workers in the second run, over all trials.
        faults: what must not be.
        impossible: why it could not happen here.
    """

    trials: int = 0
    said: list[str] = field(default_factory=list)
    again: int = 0
    faults: list[str] = field(default_factory=list)
    impossible: str = ""


def happened(name: str, folder: Path, seed: int) -> Happened:
    """Let a disaster happen a few times."""
    files = folder / "files"
    files.mkdir(parents=True)
    kind, subject_name = DISASTERS[name]
    subject = SUBJECTS[subject_name]
    subject.prepare(files, seed)
    whole = Place(folder / "undisturbed", files, subject, f"{os.getpid()}-{name}").run("first")
    found = Happened()
    if kind in (_full_cache, _full_work, _read_only) and not _has_namespaces():
        found.impossible = "unshare -rm is not allowed here"
        return found
    for number in range(TRIALS):
        place = Place(folder / "place", files, subject, f"{os.getpid()}-{name}-{number}")
        faults = list(kind(place, whole, found, random.Random(f"{name} {seed} {number}")))
        found.trials += 1
        found.faults += [f"{number}: {fault}" for fault in faults]
        if faults:
            shutil.copytree(place.folder, folder / f"trial-{number}", ignore_dangling_symlinks=True)
        shutil.rmtree(place.folder)
    return found


def _has_namespaces() -> bool:
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def _in_namespace(place: Place, before: str, between: str) -> tuple[End, End]:
    """Both runs, between which a file system changes."""
    script = _IN_NAMESPACE.format(before=before, between=between)
    environment = place.environment | {"PLACE": str(place.folder)}
    subprocess.run(["unshare", "-rm", "bash", "-c", script, "bash", *place.command], env=environment)
    codes = [int((place.folder / f"{name}.code").read_text()) for name in ("first", "second")]
    last = place.end("second", codes[1])
    with suppress(FileNotFoundError):
        (place.folder / "notes.first").rename(place.folder / "notes")
    return place.end("first", codes[0]), last


def _full_cache(place: Place, whole: End, found: Happened, chance: random.Random) -> Iterator[str]:
    """The cache is on a disk that becomes full, and then is not any more."""
    pages = chance.randrange(1, 24)
    first, second = _in_namespace(
        place, f"mount -t tmpfs -o size={4 * pages}k none cache", "mount -o remount,size=64m cache"
    )
    yield from _same(whole, first, found, aside=("notes",))
    yield from _same(whole, second, found)
    yield from damaged(place.folder / "seen/cache")
    yield from damaged(place.folder / "seen/after/cache")


def _full_work(place: Place, whole: End, found: Happened, chance: random.Random) -> Iterator[str]:
    """Results go to a disk that becomes full: what was there is still there, or its successor is whole."""
    old = "; ".join(f"printf '%s' '{_OLD.decode()}' > work/{name}" for name in _WHOLE)
    first, second = _in_namespace(
        place,
        f"mount -t tmpfs -o size={4 * chance.randrange(4, 90)}k none work; {old}",
        "mount -o remount,size=64m work",
    )
    if first.code != whole.code:
        found.said += [line for line in first.said.splitlines() if line not in found.said]
        if first.code != 2 or "cannot be written: No space left on device" not in first.said:
            yield f"ended with {first.code}: {first.said[-300:]}"
    yield from _same(whole, second, found)
    found.again += sum(second.calls.begun.values())
    for state in ("seen/work", "seen/after/work"):
        for name in _WHOLE:
            content = (place.folder / state / name).read_bytes()
            if content != _OLD and not content.rstrip().endswith(_WHOLE[name]):
                yield f"half of {name}: {len(content)} bytes in {state}"
    left = {path.name for path in (place.folder / "seen/work").iterdir()} - {*_WHOLE, "hlotool-inputs"}
    if left:
        yield f"left: {sorted(left)}"
    for path in (place.folder / "seen/work").glob("hlotool-inputs/*"):
        saved = place.folder / "seen/after/work/hlotool-inputs" / path.name
        if not saved.exists() or path.read_bytes() != saved.read_bytes():
            yield f"half of {path.name}"


def _read_only(place: Place, whole: End, found: Happened, chance: random.Random) -> Iterator[str]:
    """Folders cannot be written: the results', or the others."""
    choices = (("work",), ("cache",), ("tmp",), ("cache", "tmp"))
    names = choices[found.trials % len(choices)]
    before = [f"mount --bind {name} {name}; mount -o remount,ro,bind {name}" for name in names]
    first, second = _in_namespace(place, "; ".join(before), "; ".join(f"umount {name}" for name in names))
    if "work" in names:
        found.said += [line for line in first.said.splitlines() if line not in found.said]
        if first.code != 2 or "cannot be written" not in first.said or first.calls.begun:
            yield f"ended with {first.code}: {first.said[-300:]}"
    else:
        yield from _same(whole, first, found, aside=("notes",))
    yield from _same(whole, second, found)


def _out_of_memory(place: Place, whole: End, found: Happened, chance: random.Random) -> Iterator[str]:
    """The system's killer takes a worker at work: one row, and the second run has that, too."""
    process = place.start("first")
    notes = place.folder / "notes"
    wanted = chance.randrange(1, max(2, sum(whole.calls.begun.values()) - 2))
    victim = 0
    while process.poll() is None and not victim:
        lines = [line.split() for line in notes.read_text().splitlines()] if notes.exists() else []
        last = {line[3]: line[0] for line in lines}
        busy = sorted(pid for pid, what in last.items() if what == "B")
        if sum(line[0] == "B" for line in lines) >= wanted and busy:
            victim = int(chance.choice(busy))
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        time.sleep(0.001)
    first = place.end("first", process.wait())
    if first.record is None:
        yield f"ended with {first.code}: {first.said[-300:]}"
        return
    other = [
        now["reason"]
        for now, usual in zip(first.record["modules"], whole.record["modules"])
        if without(now) != without(usual)
    ]
    found.said += [reason for reason in other if reason not in found.said]
    if len(other) > 1:
        yield f"{len(other)} rows: {other}"
    second = place.run("second")
    yield from _same(whole, second, found)
    found.again += sum(second.calls.begun.values())


def _clock_during(place: Place, whole: End, found: Happened, chance: random.Random) -> Iterator[str]:
    """The clock jumps while a command runs, and is right again for the next one."""
    days = chance.choice((-1, 1))
    place.more["DISASTER_CLOCK"] = f"{time.monotonic() + chance.uniform(0, 10)}:{days * _DAY}"
    first = place.run("first")
    del place.more["DISASTER_CLOCK"]
    yield from _same(whole, first, found)
    second = place.run("second")
    yield from _same(whole, second, found)
    yield from _known(second, found)


def _clock_between(place: Place, whole: End, found: Happened, chance: random.Random) -> Iterator[str]:
    """The clock jumps between two runs, or what lies on the disk has dates of other clocks."""
    yield from _same(whole, place.run("first"), found)
    off = chance.choice((-1, 1)) * _DAY
    if chance.random() < 0.5:
        place.more["DISASTER_CLOCK"] = f"0:{off}"
    else:
        for path in place.folder.rglob("*"):
            with suppress(OSError):
                os.utime(path, (time.time() + off, time.time() + off))
    second = place.run("second")
    yield from _same(whole, second, found)
    yield from _known(second, found)


def _known(second: End, found: Happened) -> Iterator[str]:
    """Nothing that lasts was executed again; a difference with inputs of its own is not kept."""
    found.again += sum(second.calls.begun.values())
    if sum(second.calls.begun.values()) > 2:
        yield f"{sum(second.calls.begun.values())} calls, though everything was known"


def _same(whole: End, end: End, found: Happened, aside: Sequence[str] = ()) -> Iterator[str]:
    """Faults of a run that should find what the undisturbed one finds."""
    if end.record is None or end.code != whole.code:
        yield f"ended with {end.code}: {end.said[-300:]}"
        return
    notes: list[Any] = end.record.get("notes", [])
    found.said += [note for note in notes if note not in whole.record["notes"] and note not in found.said]
    yield from differences(without(whole.record, aside), without(end.record, aside))


_Kind = Callable[[Place, End, Happened, random.Random], Iterator[str]]

#: What happens, and to which command.
DISASTERS: dict[str, tuple[_Kind, str]] = {
    "full cache": (_full_cache, "run"),
    "full cache of bisect": (_full_cache, "bisect"),
    "full disk of results": (_full_work, "run"),
    "read-only": (_read_only, "run"),
    "worker out of memory": (_out_of_memory, "run"),
    "worker's child out of memory, on a cluster": (_out_of_memory, "run --cluster local:2"),
    "clock jumps": (_clock_during, "run"),
    "clock jumps, on a cluster": (_clock_during, "run --cluster local:2"),
    "clock jumps between runs": (_clock_between, "run"),
}
