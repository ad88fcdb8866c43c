"""Cases: a drawn program, its two texts, a fault in one of them or in both, and the inputs that show it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hlotool
from benchmarks import ROOT
from benchmarks.adversary import (
    plants_data,
    plants_devices,
    plants_guards,
    plants_indices,
    plants_odd,
    plants_several,
    plants_width,
)
from benchmarks.adversary.plants import KINDS, Kind
from benchmarks.adversary.text import Text, swept
from benchmarks.adversary.witness import Late, Run, execute, right_runs, sets_of, shown

#: Each enters its kinds.
_ALL = (plants_width, plants_guards, plants_indices, plants_data, plants_odd, plants_devices, plants_several)

#: Places of one kind that are tried in a program before it is given up there.
_TRIES = 3


@dataclass
class Subject:
    """A drawn program.

    Attributes:
        name: of its family and seed.
        before: text before optimisation.
        after: text after it.
        options: what the dump says of debug options.
        arguments: kind, dimensions, type and limit of each.
        devices: it runs on.
        stage: what the compiler calls the text after it, in names of files.
    """

    name: str
    before: str
    after: str
    options: str
    arguments: list[list[Any]]
    devices: int
    stage: str = "cpu_after_optimizations"


@dataclass
class Case:
    """A planted fault with its witness.

    Attributes:
        kind: of the fault.
        subject: the program.
        stage: `after`, `before` or `both`.
        said: what was done, in words.
        before: the text before optimisation, with the fault if it is there.
        after: the other.
        style: name of the set that shows it; empty for promises.
        outputs: that are off there.
    """

    kind: str
    subject: Subject
    stage: str
    said: str
    before: str
    after: str
    style: str
    outputs: list[int]


def subjects(
    folder: Path, seed: int, *, python: str = sys.executable, flags: str = "", only: list[str] | None = None
) -> list[Subject]:
    """Compile one program of each family and read the dump; the folder keeps the two texts of each.

    Args:
        folder: for the dump; made.
        seed: of the draw.
        python: interpreter with the jaxlib that compiles.
        flags: of XLA, further ones.
        only: families; all by default.

    Raises:
        subprocess.CalledProcessError: the compiler died.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": str(ROOT)}
    command = [python, "-m", "benchmarks.adversary.compile_child", str(folder), str(seed), *(only or [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not (folder / "programs.json").exists():
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr[-2000:])
    known = json.loads((folder / "programs.json").read_text())
    found = []
    for name, facts in known.items():
        before = next(iter(sorted(folder.glob(f"*.jit_adv_{name}.before_optimizations.txt"))), None)
        after = next(iter(sorted(folder.glob(f"*.jit_adv_{name}.cpu_after_optimizations.txt"))), None)
        options = next(iter(sorted(folder.glob(f"*.jit_adv_{name}.debug_options"))), None)
        if before is not None and after is not None:
            said = options.read_text() if options is not None else ""
            found.append(
                Subject(
                    f"{name}.{seed}",
                    before.read_text(),
                    after.read_text(),
                    said,
                    facts["arguments"],
                    facts["devices"],
                )
            )
    return found


class Planter:
    """Plants faults into one program and looks for their witnesses.

    Args:
        subject: the program.
        rng: decides on places.
        lost: counts what was left out, by kind and reason.
    """

    def __init__(self, subject: Subject, rng: random.Random, lost: Counter[str]) -> None:
        self.subject, self.rng, self.lost = subject, rng, lost
        self.texts = {"before": Text(subject.before), "after": Text(subject.after)}
        self.modules = {"before": hlotool.parse(subject.before), "after": hlotool.parse(subject.after)}
        self._runs: dict[str, list[Run]] = {}
        self._planted: set[tuple[str, str]] = set()

    def devices(self, stage: str) -> int:
        """Programs before the partitioner take global arrays and run on one."""
        return self.subject.devices if stage == "after" else 1

    def runs(self, stage: str) -> list[Run]:
        """Of the right program."""
        if stage not in self._runs:
            one = self.subject.devices == 1
            sets = sets_of(self.texts[stage], self.subject.arguments, self.devices(stage), self.subject.name)
            other = self.modules["after" if stage == "before" else "before"] if one else None
            self._runs[stage] = right_runs(self.modules[stage], sets, self.devices(stage), other)
        return self._runs[stage]

    def plant(self, kind: Kind, stage: str) -> tuple[str, str, str, list[int]] | None:
        """A fault of a kind in one text: what was done, the text, the witnessing set, the outputs."""
        if kind.after and stage == "before":
            return None
        places = list(kind.plant(self.texts[stage]))
        self.rng.shuffle(places)
        if not places:
            return None
        for said, made, *obeyed in [place for place in places if (stage, place[0]) not in self._planted][
            :_TRIES
        ]:
            self._planted.add((stage, said))
            made = swept(made)
            try:
                module = hlotool.parse(made)
                if obeyed:
                    module = hlotool.parse(swept(obeyed[0]))
            except hlotool.errors.HlotoolError as error:
                self.lost[f"{kind.name}: broken text ({str(error).splitlines()[0][:90]})"] += 1
                continue
            if kind.promise and not obeyed:
                return said, made, "", []
            if found := self.witness(kind, stage, module):
                return said, made, *found
            self.lost[f"{kind.name}: no witness"] += 1
        return None

    def witness(self, kind: Kind, stage: str, module: Any) -> tuple[str, list[int]] | None:
        """The first set that shows a fault."""
        late = 0
        for run in self.runs(stage):
            try:
                faulty = execute(module, run.inputs, self.devices(stage))
            except Late:
                late += 1
                if late > 1:
                    return None
                continue
            except hlotool.errors.HlotoolError:
                return None
            if outputs := shown(run, faulty, exact=kind.exact):
                each = len(run.results) // self.devices(stage)
                return run.style.name, sorted({number % each for number in outputs})
        return None


def cases(
    found: list[Subject], seed: int, count: int, lost: Counter[str], kinds: list[str] | None = None
) -> Iterator[Case]:
    """Faults, kinds in turn: what has had the fewest comes next.

    Args:
        found: the programs.
        seed: of the draw.
        count: cases wanted.
        lost: counts what was left out.
        kinds: names of kinds; all by default.
    """
    had: Counter[str] = Counter()
    wanted = kinds or list(KINDS)
    planters: dict[str, Planter] = {}
    order = sorted(found, key=lambda s: zlib.crc32(f"{s.name}/{seed}".encode()))
    made, idle, turn = 0, 0, 0
    while made < count and idle < 3 * len(order):
        subject = order[turn % len(order)]
        turn += 1
        rng = random.Random(f"{seed}:{turn}")
        if subject.name not in planters:
            planters[subject.name] = Planter(subject, random.Random(f"{seed}:{subject.name}"), lost)
        planter = planters[subject.name]
        stage = rng.choices(("after", "before", "both"), (5, 4, 1))[0]
        case = _one(planter, stage, sorted(wanted, key=lambda k: (had[k], rng.random())))
        if case is None:
            idle += 1
            continue
        idle = 0
        had[case.kind.split("+")[0]] += 1
        made += 1
        yield case


def _one(planter: Planter, stage: str, order: list[str]) -> Case | None:
    subject = planter.subject
    where = "after" if stage == "both" else stage
    for name in order:
        if stage == "both" and KINDS[name].promise:
            continue
        found = planter.plant(KINDS[name], where)
        if found is None:
            continue
        said, text, style, outputs = found
        texts = {"before": subject.before, "after": subject.after} | {where: text}
        if stage == "both":
            for second in order:
                if (
                    second != name
                    and not KINDS[second].promise
                    and (more := planter.plant(KINDS[second], "before"))
                ):
                    texts["before"] = more[1]
                    return Case(
                        f"{name}+{second}",
                        subject,
                        stage,
                        f"{said}; before: {more[0]}",
                        texts["before"],
                        texts["after"],
                        style,
                        outputs,
                    )
        return Case(name, subject, where, said, texts["before"], texts["after"], style, outputs)
    return None
