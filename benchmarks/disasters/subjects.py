"""The commands that disasters happen to, each in a place of its own where whatever it leaves can be seen."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.programs import BROKEN, DOUBLE, SQUARE, SUM, write_module

from benchmarks import ROOT
from benchmarks.fleet.writing import distinct_pairs

HOOK = Path(__file__).with_name("hook")
#: Distinct programs of the corpus that a run replays beside those that are wrong.
_PROGRAMS = 9
#: How often the rows of a shard are repeated, so that `merge` takes a while.
_COPIES = 80
#: Wrong for one value only, which no plain input has: the inputs that show it are saved.
_AT_ZERO = SUM.replace(
    "ROOT y = f32[4]{0} add(x, x)",
    """z = f32[] constant(0)
  zs = f32[4]{0} broadcast(z), dimensions={}
  o = f32[] constant(1)
  os = f32[4]{0} broadcast(o), dimensions={}
  at = pred[4]{0} compare(x, zs), direction=EQ
  s = f32[4]{0} add(x, x)
  ROOT y = f32[4]{0} select(at, os, s)""",
)
#: A check for `reduce` that notes what it is asked; the failure is any `sine`.
_CHECK = """#!/bin/sh
key=$(cat "$1" "${1%.hlo}.npz" | cksum | tr ' ' -)
echo "B $key check $$" >> "$DISASTER_NOTES"
sleep 0.03
grep -q 'sine(' "$1"; found=$?
echo "E $key check $$" >> "$DISASTER_NOTES"
exit $((1 - found))
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A command.

    Attributes:
        name: for the tables.
        words: what follows `hlotool`; `{FILES}` in it are the given files.
        prepare: writes the files.
        in_flight: calls that may be over without being kept: each worker's last, whose answer is on its way.
        journal: the command whose journals hold one answer for each call of a worker; empty where calls and
            answers are not one to one.
    """

    name: str
    words: tuple[str, ...]
    prepare: Callable[[Path, int], None]
    in_flight: int = 2
    journal: str = ""


def write_dump(folder: Path, seed: int) -> None:
    """Programs that agree, and some that are wrong in several ways."""
    dump = folder / "dump"
    dump.mkdir()
    for number, (name, before, after) in enumerate(itertools.islice(distinct_pairs(seed), _PROGRAMS)):
        write_module(dump, number, before, after, name)
    for number, (before, after) in enumerate(((DOUBLE, SQUARE), (DOUBLE, BROKEN), (DOUBLE, _AT_ZERO))):
        write_module(dump, _PROGRAMS + number, before, after, f"wrong_{number}")


def write_history(folder: Path, seed: int) -> None:
    """Two dumps with a planted fault each."""
    for name in ("model_fn_opcode", "cumulative_window"):
        shutil.copytree(ROOT / "corpus/planted" / name, folder / "dump" / name)


def write_program(folder: Path, seed: int) -> None:
    """A program in which something fails, and what says so."""
    lines = [f"  a{n} = f32[64] {'sine' if n == 29 else 'cosine'}(a{n - 1})" for n in range(1, 60)]
    text = "\n".join(["HloModule m", "ENTRY e {", "  a0 = f32[64] parameter(0)", *lines])
    (folder / "m.hlo").write_text(f"{text}\n  ROOT r = f32[64] add(a59, a30)\n}}\n", encoding="utf-8")
    (folder / "fails.sh").write_text(_CHECK, encoding="utf-8")
    (folder / "fails.sh").chmod(0o755)


def write_shards(folder: Path, seed: int) -> None:
    """The records of the two shards of a run, longer than such a run would make them."""
    write_dump(folder, seed)
    shards = []
    for shard in (1, 2):
        words = ("run", str(folder / "dump"), "--shard", f"{shard}/2", "--json", "--no-further-sets")
        done = subprocess.run(
            [sys.executable, "-m", "hlotool", *words],
            env=os.environ | {"PYTHONPATH": str(ROOT), "HLOTOOL_CACHE": str(folder / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        shards.append(json.loads(done.stdout))
    found = shards[0]["found"]
    for number, record in enumerate(shards, start=1):
        rows, positions = record["modules"], record["positions"]
        record["modules"] = [dict(row, path=f"{c}/{row['path']}") for c in range(_COPIES) for row in rows]
        record["positions"] = [c * found + position for c in range(_COPIES) for position in positions]
        record["found"] = found * _COPIES
        (folder / f"shard-{number}.json").write_text(json.dumps(record), encoding="utf-8")
    shutil.rmtree(folder / "cache")


_REPORTS = ("--html", "page.html", "--junit", "junit.xml", "--sarif", "found.sarif")

SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("run", ("run", "{FILES}/dump", "--jobs", "2", *_REPORTS), write_dump, journal="run"),
        Subject("bisect", ("bisect", "{FILES}/dump", "--jobs", "2", "--try-on", "none"), write_history),
        Subject("reduce", ("reduce", "{FILES}/m.hlo", "--check", "{FILES}/fails.sh"), write_program),
        Subject("merge", ("merge", "{FILES}/shard-1.json", "{FILES}/shard-2.json", *_REPORTS), write_shards),
        Subject(
            "run --cluster local:2",
            ("run", "{FILES}/dump", "--cluster", "local:2", *_REPORTS),
            write_dump,
            in_flight=4,
            journal="run",
        ),
    )
}


@dataclass(slots=True)
class Place:
    """Where a command runs: folders of its own for its files, its cache and what is temporary.

    Attributes:
        folder: holds all of them.
        files: that the command reads.
        subject: the command.
        tag: stands in the environment of every process of the command.
        more: further variables of the environment.
    """

    folder: Path
    files: Path
    subject: Subject
    tag: str
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("work", "cache", "tmp"):
            (self.folder / name).mkdir(parents=True)

    @property
    def command(self) -> list[str]:
        """The whole command line."""
        words = (word.replace("{FILES}", str(self.files)) for word in self.subject.words)
        return [sys.executable, "-m", "hlotool", *words, "--json"]

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the command."""
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(HOOK), str(ROOT))),
            "PYTHONHASHSEED": "0",
            "HLOTOOL_CACHE": str(self.folder / "cache"),
            "TMPDIR": str(self.folder / "tmp"),
            "DISASTER_NOTES": str(self.folder / "notes"),
            "DISASTER_TAG": self.tag,
            **self.more,
        }

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """Begin with a run; what it prints goes to files called `name`."""
        with (
            (self.folder / f"{name}.json").open("wb") as out,
            (self.folder / f"{name}.err").open("wb") as err,
        ):
            return subprocess.Popen(
                self.command,
                env=self.environment,
                cwd=self.folder / "work",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def end(self, name: str, code: int) -> End:
        """What a run that is over came to; what its workers noted is taken away."""
        notes = self.folder / "notes"
        calls = Calls.read(notes)
        notes.unlink(missing_ok=True)
        printed = (self.folder / f"{name}.json").read_bytes()
        said = (self.folder / f"{name}.err").read_text(encoding="utf-8", errors="replace")
        try:
            record = json.loads(printed)
        except ValueError:
            record = None
        return End(code, record, said, calls)

    def run(self, name: str) -> End:
        """A whole run."""
        return self.end(name, self.start(name).wait())

    def processes(self) -> list[int]:
        """All processes of the command that live, whoever their parents are."""
        return [pid for pid in _pids() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        try:
            found = Path(f"/proc/{pid}/environ").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            return False
        return f"DISASTER_TAG={self.tag}".encode() in found.split(b"\0") and state != "Z"

    def left(self) -> list[str]:
        """Files that lie about: results, halves of answers, what is temporary; numbers are taken out."""
        found = [path for path in (self.folder / "work").rglob("*") if not path.is_dir()]
        found += [path for path in (self.folder / "cache").rglob("*") if "." in path.name]
        found += (self.folder / "tmp").iterdir()
        names = (path.relative_to(self.folder).as_posix() for path in found)
        return sorted(re.sub(r"-of-\d+-\w+|-\w{8}$|\.\d+\.\d+$", "-*", name) for name in names)


@dataclass(frozen=True, slots=True)
class Calls:
    """What workers did, by key of a call: how often it began, how often it ended."""

    begun: Counter[str]
    ended: Counter[str]

    @classmethod
    def read(cls, notes: Path) -> Calls:
        """From the file that they wrote."""
        lines = [line.split() for line in notes.read_text().splitlines()] if notes.exists() else []
        calls = [line for line in lines if len(line) == 4]
        return cls(*(Counter(line[1] for line in calls if line[0] == what) for what in "BE"))


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended.

    Attributes:
        code: exit status.
        record: that it printed; None where that is no JSON.
        said: on stderr.
        calls: of its workers.
    """

    code: int
    record: Any
    said: str
    calls: Calls


#: Keys of a record that tell how long something took, or from when an answer is; a search that goes on has
#: fewer steps left to count.
_TIMES = frozenset({"seconds", "remembered"})


def without(value: Any, keys: Sequence[str] = ()) -> Any:
    """A record without its times, and without further keys."""
    if isinstance(value, Mapping):
        return {k: without(v, keys) for k, v in value.items() if k not in _TIMES and k not in keys}
    return [without(part, keys) for part in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two records differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other)):
            yield from differences(a, b, f"{path}[{number}]")
    elif one != other:
        yield f"{path}: {str(one)[:80]} | {str(other)[:80]}"


def _pids() -> Iterator[int]:
    yield from (int(name) for name in os.listdir("/proc") if name.isdigit())
