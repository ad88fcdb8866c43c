"""Commands that are killed at a random moment, and then given again."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.disasters.subjects import Calls, End, Place, Subject, differences, without
from hlotool.system import cache as journal
from hlotool.system import cache as sealed
from hlotool.system import cache as store

#: Seconds after which a process that outlives the command is an orphan, on the busiest machine.
_PATIENCE = 300.0
#: Whom the kill hits: the process that the user started, or all at once, as when a machine goes down.
HITS = ("main", "all")


@dataclass(slots=True)
class Kills:
    """What became of a command that was killed again and again.

    Attributes:
        trials: how often.
        hit: of these, how often it had not ended by then.
        kept: answers that the journals held after the kills.
        calls: of workers in an undisturbed run.
        again: calls that were over before the kill and were made again, though not more than can have been
            on their way: nobody had their answers.
        orphans: processes that lived on.
        left: files that lay about after the second run, by name, that an undisturbed run does not leave.
        faults: what must not be, with the number of the trial.
    """

    trials: int = 0
    hit: int = 0
    kept: int = 0
    calls: int = 0
    again: int = 0
    orphans: int = 0
    left: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def killed(subject: Subject, folder: Path, trials: Iterable[int], seed: int) -> Kills:
    """Run a command undisturbed, and then kill it at moments that are drawn from that time.

    Args:
        subject: the command.
        folder: gets everything; trials with faults stay there.
        trials: their numbers: of each four, two are by the clock and two while workers are at work, one of
            both kills all processes.
        seed: of the moments, and of the programs.
    """
    files = folder / "files"
    files.mkdir(parents=True)
    subject.prepare(files, seed)
    chance = random.Random(f"{subject.name} {seed}")
    start = time.monotonic()
    first = Place(folder / "undisturbed", files, subject, f"{os.getpid()}-{subject.name}")
    whole, took = first.run("first"), time.monotonic() - start
    if whole.record is None:
        raise SystemExit(f"{subject.name}: {whole.said}")
    found = Kills(calls=sum(whole.calls.begun.values()))
    usual = first.left()
    for number in trials:
        # The same path in each trial, so that records and keys are the same.
        place = Place(folder / "place", files, subject, f"{os.getpid()}-{subject.name}-{number}")
        hit = HITS[number % len(HITS)]
        # Half of them by the clock, which is mostly imports, half while the workers are at work.
        calls = chance.randrange(1, found.calls + 1) if found.calls and number // len(HITS) % 2 else 0
        trial = _Trial(place, hit, chance.uniform(0, 0.2 if calls else took), calls)
        faults = list(trial.faults(whole, found))
        found.left.update(set(place.left()) - set(usual))
        found.faults += [f"{number} ({trial}): {fault}" for fault in faults]
        if faults:
            shutil.copytree(place.folder, folder / f"trial-{number}", ignore_dangling_symlinks=True)
        shutil.rmtree(place.folder)
        # The machine is as busy as it is: the next moments are drawn from what a run takes now.
        took += 0.2 * (trial.took - took) if trial.took else 0.0
    return found


class _Trial:
    """One kill, and the same command again.

    Args:
        place: where.
        hit: whom.
        moment: seconds after the start, or after so many calls of workers began.
        calls: how many.

    Attributes:
        took: seconds that the second run took, if it had everything to do; else 0.
    """

    def __init__(self, place: Place, hit: str, moment: float, calls: int) -> None:
        self.took = 0.0
        self._hit = hit
        self._moment = moment
        self._calls = calls
        self._place = place
        self._orphans: list[int] = []

    def __str__(self) -> str:
        return f"{self._hit}, {self._moment:.2f} s after call {self._calls}"

    def faults(self, whole: End, kills: Kills) -> Iterator[str]:
        """What must not be; everything else is counted."""
        kills.trials += 1
        before, was_hit = self._killed()
        kills.hit += was_hit
        for pid in self._orphans:
            kills.orphans += 1
            yield f"process {pid} lived on"
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        yield from damaged(self._place.folder / "cache")
        kept = _answers(self._place.folder / "cache", self._place.subject.journal or "*")
        kills.kept += kept
        start = time.monotonic()
        after = self._place.run("second")
        self.took = 0.0 if kept else time.monotonic() - start
        if after.record is None or after.code != whole.code:
            yield f"the second run ended with {after.code}: {after.said[-300:]}"
            return
        yield from differences(without(whole.record), without(after.record))
        if self._wait():
            yield "the second run left processes"
        if before.record is not None:
            return  # all was told: nothing need be kept any more
        again = before.calls.ended & after.calls.begun
        kills.again += sum(again.values())
        if sum(again.values()) > self._place.subject.in_flight:
            yield f"{sum(again.values())} calls that were over were made again"
        if self._place.subject.journal and sum(after.calls.begun.values()) > kills.calls - kept:
            made = sum(after.calls.begun.values())
            yield f"{made} calls of {kills.calls}, though {kept} were kept"

    def _killed(self) -> tuple[End, bool]:
        process = self._place.start("first")
        notes = self._place.folder / "notes"
        while process.poll() is None and sum(Calls.read(notes).begun.values()) < self._calls:
            time.sleep(0.01)
        time.sleep(self._moment)
        was_hit = process.poll() is None
        if self._hit == "main":
            process.kill()
        else:
            for pid in [process.pid, *self._place.processes()]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        code = process.wait()
        # What is on its way to its end may still note something.
        self._orphans = self._wait()
        return self._place.end("first", code), was_hit

    def _wait(self) -> list[int]:
        end = time.monotonic() + _PATIENCE
        while (living := self._place.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        return living


def _answers(cache: Path, command: str) -> int:
    """How many answers the journals of a command hold."""
    found = (cache / "journals").glob(f"{command}-*.jsonl")
    return sum(len(journal.Journal(path).read()) for path in found)


def damaged(cache: Path) -> Iterator[str]:
    """Lines of journals, and files of a store, that cannot be read; the last line may be torn."""
    for path in (cache / "journals").glob("*.jsonl"):
        lines = path.read_bytes().split(b"\n")
        bad = [line for line in lines[:-1] if line and sealed.unsealed(journal.FORM, line) is None]
        if bad:
            yield f"{path.name}: {len(bad)} damaged lines"
    for path in (cache / "verdicts").rglob("*"):
        if path.is_file() and "." not in path.name:
            entry = sealed.unsealed(store._FORM, path.read_bytes())
            if entry is None or entry[0] != path.parent.name + path.name:
                yield f"{path.name}: a damaged answer"
