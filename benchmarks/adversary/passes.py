"""Faults that begin at a pass: whether `bisect` sees them, and names the pass.

python -m benchmarks.adversary.passes --seed N [--count N] --target SPEC [--json FILE] [--keep FOLDER]

The compiler of the target dumps a drawn program after every pass. From a pass chosen at random on, each text
is the one after that pass with a planted fault that a witness shows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import hlotool
from benchmarks import ROOT
from benchmarks.adversary.cases import Planter, Subject, subjects
from benchmarks.adversary.plants import KINDS
from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.registry import get_backend
from hlotool.sources.directory import open_dump
from hlotool.sources.records import Stage

#: Passes of one program that are tried before it is given up.
_TRIES = 4


@dataclass
class Begun:
    """A fault that begins at a pass.

    Attributes:
        program: its name.
        stage: the first text with the fault.
        accused: the pass that made it.
        kind: of the fault.
        said: what was done, in words.
        seen: whether `bisect` finds something wrong.
        named: the passes that it names, and the first wrong text.
        answer: in one line, where it names another.
    """

    program: str
    stage: str
    accused: str
    kind: str
    said: str
    seen: bool = False
    named: tuple[str, ...] = ()
    answer: str = ""

    @property
    def right(self) -> bool:
        """Whether the pass is the one, or among those that cannot be told apart, which are said.

        The first wrong text names it as well: a step of a pass bears the name of the pass.
        """
        return self.accused in self.named or self.stage in self.named


def dumps(spec: str, found: list[Subject], folder: Path) -> Iterator[tuple[Subject, Path]]:
    """Programs for one device, with the folder in which the compiler left every pass."""
    backend = get_backend(spec)
    if not isinstance(backend, AotBackend):
        raise TypeError(f"{spec} is no compiler for another machine")
    for subject in found:
        if subject.devices != 1:
            continue
        dump = folder / subject.name
        try:
            backend.dumping(dump).made_of(hlotool.parse(subject.before))
        except hlotool.errors.HlotoolError as error:
            print(f"left out, not compiled: {subject.name}: {str(error).splitlines()[0][:120]}")
            continue
        if not dump.is_dir():
            print(f"left out, compiled in another form than its text: {subject.name}")
            continue
        yield subject, dump


def plant(subject: Subject, dump: Path, rng: random.Random, had: Counter[str]) -> Begun | None:
    """Let a fault begin at a pass, in the dump itself."""
    # A compiler of GPUs compiles candidates on the way.
    own = hlotool.parse(subject.before).name
    stages = next((m.stages for m in open_dump(dump).modules if m.name == own), ())
    if len(stages) < 3:
        return None
    first, *later = stages
    texts = [_read(stage) for stage in later]
    earlier = [_read(first), *texts]
    # What a pipeline begins with was changed between pipelines, by no pass that a dump names.
    changed = [
        n
        for n, (stage, text) in enumerate(zip(later, texts))
        if text != earlier[n] and stage.after_pass != "pipeline-start"
    ]
    rng.shuffle(changed)
    for number in changed[:_TRIES]:
        stage = later[number]
        planter = Planter(replace(subject, before=_read(first), after=texts[number]), rng, Counter())
        kinds = [name for name, kind in KINDS.items() if not kind.promise]
        for name in sorted(kinds, key=lambda k: (had[k], rng.random()))[:12]:
            if (planted := planter.plant(KINDS[name], "after")) is None:
                continue
            had[name] += 1
            for one in later[number:]:
                Path(str(one.source)).write_text(planted[1])
            # No pass stands between the last one and the last text.
            accused = stage.after_pass or stage.title
            return Begun(subject.name, stage.title, accused, name, planted[0])
    return None


def _read(stage: Stage) -> str:
    return Path(str(stage.source)).read_text()


def ask(case: Begun, dump: Path) -> None:
    """What `bisect` says of it."""
    command = [sys.executable, "-m", "hlotool", "bisect", str(dump), "--json", "--no-repro", "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    options = ["--no-resume", "--no-config"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, env=environment)
    record: dict[str, Any] = json.loads(done.stdout)
    found = record["culprits"]
    case.seen = bool(found)
    names = [c["pass"] for c in found[:1]] + [p["name"] for c in found[:1] for p in c["candidates"]]
    case.named = tuple(filter(None, [*names, *(c["stage"] for c in found[:1])]))
    case.answer = f"{found[0]['level']}: {found[0]['stage']}" if found else ""


def main() -> int:
    """Measure and print; 1 where a pass is named that did nothing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, required=True, help="of programs, passes and faults")
    parser.add_argument("--count", type=int, default=40, help="faults [40]")
    parser.add_argument("--target", required=True, metavar="SPEC", help="backend `aot` and its target")
    parser.add_argument("--families", nargs="*", default=[], help="families of programs")
    parser.add_argument("--json", type=Path, help="write all cases there")
    parser.add_argument("--keep", type=Path, help="folder for the dumps with faults")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="passes-"))
    rng = random.Random(options.seed)
    drawn = subjects(folder / "cpu", options.seed, only=options.families or None)
    rng.shuffle(drawn)
    cases: list[Begun] = []
    had: Counter[str] = Counter()
    for subject, dump in dumps(options.target, drawn, folder / "dumps"):
        if (case := plant(subject, dump, rng, had)) is not None:
            ask(case, dump)
            cases.append(case)
            word = "right" if case.right else "other" if case.seen else "not seen"
            print(f"{len(cases)} {word}: {case.program} {case.kind}, {case.said[:60]}; from {case.stage}")
            if word == "other":
                print(
                    f"    not {case.accused} but {', '.join(case.named) or 'none'}; {case.answer}", flush=True
                )
        if options.keep is None or case is None:
            shutil.rmtree(dump, ignore_errors=True)
        if len(cases) == options.count:
            break
    seen = [case for case in cases if case.seen]
    right = sum(case.right for case in seen)
    print(f"{len(cases)} faults, {len(seen)} seen, of {right} of these the pass is named")
    if options.json:
        options.json.write_text(json.dumps([asdict(case) for case in cases], indent=1))
    if options.keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return int(right < len(seen))


if __name__ == "__main__":
    sys.exit(main())
