"""Writes the bundle of every culprit, and asks each whether it keeps its word.

    python -m benchmarks.blame.bundles [--cases 100] [--seed 0] [--backend xla] [--json FILE]

Planted faults are those of `bisection.py`: no compiler has them, so that each bundle must say that
it does not trigger, after a few compilations. The faults of `corpus/miscompiles` are real: where the compiler
at hand gets the program as given wrong, the bundle must trigger. Every bundle is verified, and looked through
for what a search leaves over: programs that hand a parameter on, or a spot inside of a loop without the loop.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import hlotool
from benchmarks.blame.bisection import CORPUS, Here, Results, bisect, draw, sources, task_of
from hlotool.blame.bisection.directory import Findings, bisect_directory
from hlotool.blame.bisection.records import CulpritRecord
from hlotool.blame.bisection.stages import StageOracle
from hlotool.blame.bisection.trigger import try_culprits
from hlotool.blame.reduction.case_worker import compare_programs
from hlotool.blame.repro.bundle import write_bundle
from hlotool.blame.repro.making import bundle_of
from hlotool.blame.repro.verify import verify
from hlotool.blame.steps import Steps
from hlotool.interface.report.records import versions
from hlotool.judge.verdicts import Answer
from hlotool.lab.faults import CATALOGUE
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump

#: Dumps of faults that XLA has, with arguments and results.
REAL = [*sorted(path.parent for path in CORPUS.glob("miscompiles/*/inputs.npz")), CORPUS / "jax/int4_product"]


@dataclass
class Kept:
    """What the bundles of some culprits came to.

    Attributes:
        culprits: faults that were found.
        bundles: that were written.
        says: how many bundles have each status in all their texts.
        unsaid: bundles of which a text does not say whether they trigger.
        same: that fail in the same way when they are verified.
        forms: what each program is.
        leftovers: programs that hand a parameter on.
        unrolled: spots inside of a loop without the loop.
        judged: programs compiled for each until it was known whether it triggers.
        seconds: that this took.
        sizes: instructions of each program.
        misses: what went wrong, in words.
    """

    culprits: int = 0
    bundles: int = 0
    says: Counter[str] = field(default_factory=Counter)
    unsaid: int = 0
    same: int = 0
    forms: Counter[str] = field(default_factory=Counter)
    leftovers: int = 0
    unrolled: int = 0
    judged: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)

    def miss(self, text: str) -> None:
        self.misses.append(text)
        print("miss:", text, file=sys.stderr, flush=True)


def keep(culprit: CulpritRecord, task: Task, backend: str, folder: Path, label: str, kept: Kept) -> str:
    """Write the bundle of a culprit, verify it and look it through; returns what it says of triggering."""
    kept.culprits += 1
    culprits = [culprit]
    start = time.perf_counter()
    try_culprits(culprits, [task], backend, RunOptions(), Steps())
    kept.seconds.append(time.perf_counter() - start)
    [culprit] = culprits
    bundle = bundle_of(culprit, ReplayOptions(), versions())
    trigger = culprit.trigger
    if bundle is None or trigger is None:
        kept.miss(f"{label}: no bundle")
        return ""
    kept.bundles += 1
    kept.judged.append(trigger.judged)
    write_bundle(bundle, folder)
    words = trigger.summary
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("README.md", "issue.md", "repro.toml")]
    if all(words[1:] in text for text in texts):
        kept.says[trigger.status] += 1
    else:
        kept.unsaid += 1
        kept.miss(f"{label}: a text does not say {words!r}")
    found = verify(folder, backend if bundle.kind == "backend" else None)
    kept.same += found.same
    if not found.same:
        kept.miss(f"{label}: {bundle.signature}; verified: {found.found or found.reason}")
    look_through(culprit, [bundle.program, *filter(None, [bundle.after])], label, kept)
    return trigger.status


def look_through(culprit: CulpritRecord, programs: Sequence[str], label: str, kept: Kept) -> None:
    """Count what a search leaves over."""
    modules = [hlotool.parse(text) for text in programs]
    spot = culprit.spot
    kept.sizes.append(sum(i.opcode != "parameter" for i in modules[0].instructions()))
    is_around = spot is not None and spot.around is not None
    kept.forms[culprit.trigger.form if culprit.minimal and culprit.trigger else _form(culprit)] += 1
    if any(module.entry.root.opcode == "parameter" for module in modules):
        kept.leftovers += 1
        kept.miss(f"{label}: a program hands on a parameter")
    if any("while" in place for place in culprit.place) and not any("while(" in text for text in programs):
        kept.unrolled += 1
        kept.miss(f"{label}: the loop is missing, {'around' if is_around else 'spot'}")


def _form(culprit: CulpritRecord) -> str:
    if culprit.level != "pass":
        return "the program as given"
    if culprit.spot is None or culprit.spot.around is None:
        return "the spot alone"
    is_cut = "_before" in culprit.spot.around.before.partition("\n")[0]
    return "what stands around the spot" if is_cut else "the whole stages"


def planted(cases: int, seed: int, backend: str, root: Path) -> Kept:
    """The bundles of planted faults."""
    kept, drawn = Kept(), Results()
    rng, folders = np.random.default_rng(seed), sources()
    number = done = 0
    while done < cases:
        kind = CATALOGUE[number % len(CATALOGUE)]
        case = draw(kind, folders, root / str(number), rng, drawn)
        number += 1
        if case is None:
            continue
        done += 1
        label = f"{case.source}, {kind.name}, {case.stage}"
        for index, culprit in enumerate(bisect(case.folder).culprits):
            target = root / f"bundle{number}.{index}"
            status = keep(culprit, task_of(case.folder), backend, target, label, kept)
            if status not in ("does not trigger", ""):
                kept.miss(f"{label}: says {status!r}")
        if done % 20 == 0:
            print(f"{done} cases: {dict(kept.says)}", file=sys.stderr, flush=True)
    return kept


def real(backend: str, root: Path) -> tuple[Kept, list[str]]:
    """The bundles of XLA's own faults, and a line for each."""
    kept = Kept()
    lines = []
    for folder in REAL:
        options = ReplayOptions(inputs=str(folder / "inputs.npz"), outputs=str(folder / "outputs.npz"))
        task = Task(replace(open_dump(folder).modules[0], artefacts=()), options)
        findings = Findings()
        bisect_directory([task], StageOracle(Here(), Steps()), findings)
        [culprit] = findings.culprits
        said = keep(culprit, task, backend, root / folder.name, folder.name, kept)
        expected = "triggers" if gets_it_wrong(folder, backend) else "does not trigger"
        if said != expected:
            kept.miss(f"{folder.name}: says {said!r}, the program as given: {expected!r}")
        lines.append(f"{folder.name}: {said}, {kept.sizes[-1]} instructions, {kept.seconds[-1]:.1f} s")
    return kept, lines


def gets_it_wrong(folder: Path, backend: str) -> bool:
    """Whether a backend gets the program as given wrong: asked apart from all searches."""
    from hlotool.inputs.captured import load_inputs
    from hlotool.runs.program import load_program

    module = open_dump(folder).modules[0]
    one, other = (load_program(module, module.stages[0], name) for name in ("numpy", backend))
    arguments = load_inputs(str(folder / "inputs.npz"), one.module)
    return compare_programs(one, other, arguments).verdict.answer is Answer.BAD


def summary(kept: Kept) -> str:
    said = ", ".join(f"{status} {count}" for status, count in kept.says.items())
    forms = ", ".join(f"{form} {count}" for form, count in kept.forms.most_common())
    return "\n".join(
        [
            f"culprits {kept.culprits}, bundles {kept.bundles}",
            f"say: {said}; a text is silent in {kept.unsaid}",
            f"verified, fail in the same way: {kept.same} of {kept.bundles}",
            f"programs: {forms}; median {statistics.median(kept.sizes):g} instructions, "
            f"largest {max(kept.sizes)}",
            f"hand on a parameter {kept.leftovers}, a loop is missing {kept.unrolled}",
            f"compiled until it was known: median {statistics.median(kept.judged):g}, "
            f"most {max(kept.judged)}; seconds: median {statistics.median(kept.seconds):.1f}, "
            f"most {max(kept.seconds):.1f}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="xla", help="compiler that is asked [xla]")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        own, lines = real(arguments.backend, Path(root, "real"))
        print("real faults\n" + "\n".join([*lines, summary(own)]), flush=True)
        data: dict[str, Any] = {"real": vars(own)}
        if arguments.cases:
            found = planted(arguments.cases, arguments.seed, arguments.backend, Path(root, "planted"))
            print("planted faults\n" + summary(found))
            data["planted"] = vars(found)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(data, indent=1, default=dict), encoding="utf-8")


if __name__ == "__main__":
    main()
