"""Plants faults of every kind and asks the locator, as `run` and as `bisect` do, which instruction it was.

    python -m benchmarks.blame.locate [--cases 300] [--seed 0] [--json FILE] [--thresholds]

Each case of `bisection.py` is looked at twice: the last right stage against the first wrong one,
and the first stage against the last, with all passes between them. Every tenth case is a program for eight
devices with a fault in its optimised text: compared device by device with the healthy text, and with the
program on global arrays that it was made from.

Found is a case when what is named holds an instruction that was planted or changed for it. Named are all
instructions to blame, constants not counted. `first` counts the cases in which the one instruction that is
named first is one of them. The iteration is right when it is the first at whose end the state of the loop
around the fault differs, found by running the stage with and without the fault. `--thresholds` halves and
doubles each threshold of the locator instead and counts what is found then.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from benchmarks.blame.bisection import (
    CORPUS,
    Planted,
    Results,
    changed_names,
    draw,
    first_wrong,
    loaded,
    opened,
    sources,
    task_of,
)
from hlotool.blame.bisection.records import SpotRecord
from hlotool.blame.bisection.spotting import SpotQuestion, stage_spot
from hlotool.blame.bisection.stages import (
    Question,
    judge_stage,
    stage_program,
    stage_trials,
)
from hlotool.blame.reduction.case_worker import compare_programs
from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.thresholds import Threshold
from hlotool.inputs.frames import Frame, frames_of, resolve
from hlotool.ir.module import Instruction, Module
from hlotool.ir.verifier import verify_or_raise
from hlotool.judge.locate.recording import trace
from hlotool.judge.records import DivergenceRecord
from hlotool.judge.verdicts import Answer
from hlotool.lab.faults import CATALOGUE
from hlotool.runs.divergence_row import with_divergence
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import Program, compile_program
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.runs.trials import Trial, trials

#: One case in so many is a program for several devices.
_DEVICES = 10
#: Draws of a fault for a program for several devices before it is given up.
_DRAWS = 40


@dataclass
class Setting:
    """What came out where the two programs are so far apart."""

    cases: int = 0
    found: int = 0
    first: int = 0
    confirmed: int = 0
    same: int = 0
    asked_both: int = 0
    in_loops: int = 0
    iteration_right: int = 0
    named: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)


def settings() -> dict[str, Setting]:
    names = ("adjacent stages", "first against last", "each device", "devices against global")
    return {name: Setting() for name in names}


def count(
    setting: Setting, record: DivergenceRecord | None, planted: frozenset[str], tested: Module, title: str
) -> None:
    """Count one answer."""
    setting.cases += 1
    if record is None:
        setting.misses.append(f"{title}, {sorted(planted)[:4]}: nothing found")
        return
    opcodes = {i.name: i.opcode for i in tested.instructions()}
    first = {record.source.instruction, record.inside.partition(" ")[0].removeprefix("%")}
    blamed = [name for name in record.instructions if opcodes[name] != "constant"]
    setting.named.append(len({*blamed, record.source.instruction}))
    setting.first += bool(first & planted)
    setting.confirmed += bool(record.repair)
    is_found = bool((first | set(record.instructions)) & planted)
    setting.found += is_found
    if not is_found:
        setting.misses.append(f"{title}, {sorted(planted)[:4]}: {record.instructions[-4:]}")


@dataclass
class Asked:
    """Two stages of a case and what was planted between them; `row` is the comparison that shows it."""

    case: Planted
    task: Task
    setting: str
    good: int
    bad: int
    planted: frozenset[str]
    row: ModuleRecord
    sides: tuple[Program, Program]
    trial: Trial

    def divergence(self) -> DivergenceRecord | None:
        """What the locator says."""
        options = wanted(self.task.options)
        return with_divergence(self.row, options, *self.sides, self.trial, 0).divergence

    def count(self, setting: Setting) -> DivergenceRecord | None:
        """Ask, and count the answer."""
        title = f"{self.case.source}, {self.case.kind.name}, {self.case.stage}"
        began = time.perf_counter()
        record = self.divergence()
        setting.seconds.append(time.perf_counter() - began)
        count(setting, record, self.planted, self.sides[1].module, title)
        return record


def asked(case: Planted) -> Iterator[Asked]:
    """Both settings of one case."""
    task = task_of(case.folder)
    stages = task.module.stages
    first = first_wrong(case, task)
    last = len(stages) - 1
    for setting, good, bad, planted in (
        ("adjacent stages", first - 1, first, case.names),
        ("first against last", 0, last, case.last_names),
    ):
        row = judge_stage(Question(task, bad))
        sides = stage_program(task, good), stage_program(task, bad)
        yield Asked(case, task, setting, good, bad, planted, row, sides, stage_trials(task)[0])


def judge(case: Planted, found: dict[str, Setting]) -> None:
    """Both settings of one case, as `run` and as `bisect` ask."""
    for one in asked(case):
        setting = found[one.setting]
        record = one.count(setting)
        outputs = one.row.signature.outputs
        spot = stage_spot(SpotQuestion(one.task, one.good, one.bad, outputs, one.row))
        setting.asked_both += 1
        setting.same += named_by(spot) == (record.instructions if record else [])
        if one.setting == "adjacent stages" and record is not None:
            count_iteration(setting, record, case, one.bad, one.trial.arguments, one.sides[1].module)


def wanted(options: Any) -> Any:
    """The options of a replay that looks for the instruction always."""
    return msgspec.structs.replace(options, first_divergence=True)


def named_by(spot: SpotRecord | str) -> list[str]:
    return [] if isinstance(spot, str) else spot.instructions


def count_iteration(
    setting: Setting,
    record: DivergenceRecord,
    case: Planted,
    stage: int,
    arguments: Sequence[Any],
    wrong: Module,
) -> None:
    """Whether the iteration that is named is the first in which the loop's state goes wrong."""
    loops = [word.rpartition(" ")[2] for word in record.around if ", iteration " in word]
    if len(loops) != 1:
        return
    right = loaded(CORPUS / _kept(case.source), stage)
    truth = first_wrong_iteration(right, wrong, record, arguments)
    if truth is not None:
        setting.in_loops += 1
        setting.iteration_right += truth + 1 == int(loops[0])


def _kept(source: str) -> str:
    return f"jax/{source}" if (CORPUS / "jax" / source).is_dir() else f"tf/{source}"


def first_wrong_iteration(
    right: Module, wrong: Module, record: DivergenceRecord, arguments: Sequence[Any]
) -> int | None:
    """The first iteration after which the state of the loop around an instruction differs."""
    name = next(word for word in record.around if word.startswith("while"))
    loop_name = name.removeprefix("while %").partition(",")[0]
    rounds = [list(_states(module, loop_name, arguments)) for module in (right, wrong)]
    for number, (one, other) in enumerate(zip(*rounds)):
        if one != other:
            return number
    return None


def _states(module: Module, loop: str, arguments: Sequence[Any]) -> Iterator[list[Any]]:
    """The bits of a loop's state after each iteration, where it runs once."""
    entry = trace(module, arguments)
    homes = [c for c in module.computations if any(i.name == loop for i in c.instructions)]
    frames: list[Frame] = [frame for home in homes for frame in frames_of(entry, home)]
    for frame in frames[:1]:
        instruction: Instruction = next(i for i in frame.computation.instructions if i.name == loop)
        for body in frame.bodies.get(instruction, ()):
            root = body.computation.root
            indices = range(len(root.operands)) if root.opcode == "tuple" else ()
            nodes = [resolve(body, root, (index,)) for index in indices]
            yield [getattr(node.kept, "digest", None) for node in nodes]


def devices_case(rng: np.random.Generator, found: dict[str, Setting]) -> bool:
    """A fault in a program for eight devices; False where none shows in so many draws."""
    for _ in range(_DRAWS):
        folder = CORPUS / "jax" / str(rng.choice(["sharded_mlp", "sharded_train_step"]))
        owner = opened(folder)
        right = loaded(folder, len(owner.stages) - 1)
        kind = CATALOGUE[int(rng.integers(len(CATALOGUE)))]
        sites = kind.sites(right)
        if not sites:
            continue
        site = sites[int(rng.integers(len(sites)))]
        try:
            wrong = kind.plant(right, site, int(rng.integers(1 << 30)))
            verify_or_raise(wrong)
            names = frozenset(changed_names(right, wrong) | {site.instruction})
            if compare_devices(folder, right, wrong, names, f"{folder.name}, {kind.name}", found):
                return True
        except (HlotoolError, KeyError, ValueError, TypeError):
            continue
    return False


def compare_devices(
    folder: Path, right: Module, wrong: Module, names: frozenset[str], title: str, found: dict[str, Setting]
) -> bool:
    """Both settings of a program for several devices; False where the fault does not show."""
    task = task_of(folder)
    whole = stage_program(task, 0)
    own = compile_program("right", "", right, "numpy")
    pairs = (
        ("devices against global", whole, compile_program("wrong", "", wrong, "numpy", whole)),
        ("each device", own, compile_program("wrong", "", wrong, "numpy", own)),
    )
    answers = []
    for name, good, bad in pairs:
        trial = next(
            trials(replace(task.module, captures=()), good.module, ReplayOptions(), good.runner.copies)
        )
        row = compare_programs(good, bad, trial.arguments)
        if row.verdict.answer is not Answer.BAD:
            return False
        began = time.perf_counter()
        completed = with_divergence(row, wanted(task.options), good, bad, trial, 0)
        record = completed.divergence
        if record is None:
            print(title, completed.divergence_missing, file=sys.stderr)
        answers.append((name, record, time.perf_counter() - began))
    for name, record, seconds in answers:
        found[name].seconds.append(seconds)
        count(found[name], record, names, wrong, title)
    return True


def run(cases: int, seed: int) -> dict[str, Setting]:
    rng = np.random.default_rng(seed)
    found, folders, drawn = settings(), sources(), Results()
    done = number = 0
    with tempfile.TemporaryDirectory() as root:
        while done < cases:
            if done % _DEVICES == _DEVICES - 1:
                devices_case(rng, found)
                done += 1
                continue
            kind = CATALOGUE[int(rng.integers(len(CATALOGUE)))]
            case = draw(kind, folders, Path(root, str(number)), rng, drawn)
            number += 1
            if case is not None:
                judge(case, found)
                done += 1
    return found


def sensitivity(cases: int, seed: int) -> Iterator[str]:
    """A table in Markdown: what is found where one threshold is half or twice of what it is."""
    rng = np.random.default_rng(seed)
    folders, drawn, kinds = sources(), Results(), len(CATALOGUE)
    with tempfile.TemporaryDirectory() as root:
        roots = (Path(root, str(number)) for number in count_from(0))
        made = (draw(CATALOGUE[int(rng.integers(kinds))], folders, each, rng, drawn) for each in roots)
        every = [one for case in islice(filter(None, made), cases) for one in asked(case)]
        yield "| threshold | value | half: adjacent, first against last | named | twice | named |"
        yield "|---|---|---|---|---|---|"
        yield f"| as they are | | {found_of(every)} | | |"
        for name, usual in vars(thresholds).copy().items():
            if not isinstance(usual, Threshold) or usual.table != thresholds.LOCATOR:
                continue
            cells = []
            for factor in (0.5, 2.0):
                setattr(thresholds, name, structs.replace(usual, value=usual.value * factor))
                cells.append(found_of(every))
            setattr(thresholds, name, usual)
            yield f"| {name} | {usual.value:g} | {' | '.join(cells)} |"


def found_of(every: Sequence[Asked]) -> str:
    """How many cases are found in each setting, and the mean number of names."""
    found = settings()
    for one in every:
        one.count(found[one.setting])
    counts = ", ".join(f"{s.found} of {s.cases}" for s in found.values() if s.cases)
    return f"{counts} | {statistics.mean(n for s in found.values() for n in s.named):.1f}"


def summary(found: dict[str, Setting]) -> str:
    """A table in Markdown."""
    lines = [
        "| setting | cases | found | named first | named, median | mean | confirmed | run = bisect "
        "| iteration | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, s in found.items():
        if not s.cases:
            continue
        share = 100 * s.found / s.cases
        lines.append(
            f"| {name} | {s.cases} | {s.found} ({share:.1f} %) | {s.first} | "
            f"{statistics.median(s.named or [0]):g} | {statistics.mean(s.named or [0]):.1f} | "
            f"{s.confirmed} | "
            f"{s.same} of {s.asked_both} | {s.iteration_right} of {s.in_loops} | "
            f"{statistics.median(s.seconds):.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--thresholds", action="store_true")
    arguments = parser.parse_args()
    if arguments.thresholds:
        for line in sensitivity(arguments.cases, arguments.seed):
            print(line, flush=True)
        return
    began = time.perf_counter()
    found = run(arguments.cases, arguments.seed)
    print(summary(found))
    print(f"seconds: {time.perf_counter() - began:.0f}")
    for name, setting in found.items():
        for miss in setting.misses:
            print(f"miss, {name}: {miss}")
    if arguments.json:
        data = {name: vars(setting) for name, setting in found.items()}
        Path(arguments.json).write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
