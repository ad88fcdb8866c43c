"""Would the inputs of a replay notice a fault? Mutants of unseen programs, and what becomes of them.

    python -m benchmarks.mutants [--programs corpus,xla,generated] [--cases 2000] [--seed 0] [--of-one 12]
                                 [--kinds FAMILY,…] [--json FILE] [--survivors]
                                 [--sets-seconds 15]
    python -m benchmarks.mutants --add FILE FILE…

Single faults of the catalogue (`hlotool.faults`) at random places of programs: of the corpus, of XLA's own
tests in `shared/hlo/xla`, and generated for this benchmark (`mutant_programs`). Where a program is there
before and after optimisation, the fault goes into the latter half of the time and the former judges, as in a
replay. `--kinds "clamped index,loop bound,branch,tie,sign of remainder"` plants faults of these families
only, which are rare among all. A long measurement goes in pieces, one seed each: `--json` keeps what is
there at any time, and `--add` makes one table of several such files.

A mutant is *killed* when `run` would say `wrong` on some set of inputs, *equivalent* when it is proved that
no inputs can show it (see `hlotool.lab.mutation.equivalence`); the others *survive*, with the best verdict
that was excused.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import SHARED
from benchmarks.mutants.programs import generated_programs
from benchmarks.verdicts.programs import subjects
from hlotool.blame.reduction.case_worker import compare_programs
from hlotool.errors import HlotoolError
from hlotool.inputs.adversarial.sets import InputSet
from hlotool.ir.module import Module
from hlotool.lab.faults import FaultKind, family_of
from hlotool.lab.mutation.equivalence import KINDS, Mutant, draw
from hlotool.lab.mutation.task import Examiner, Fate, fate_within, sets_of
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.other_inputs import allowed_for_sets, in_budget
from hlotool.runs.program import Program, compile_program
from hlotool.runs.trials import trials
from hlotool.sources.records import DumpModule
from hlotool.system.resources import UNITS_PER_SECOND, TooSlow, time_limit, work_done

#: Seconds for the plain set of one program.
_SECONDS = 60.0
#: Larger programs take longer than they tell.
_LARGEST_TEXT = 60_000


@dataclass(frozen=True)
class Source:
    """A program, and the later stage of it that faults may go into."""

    group: str
    name: str
    before: Module
    after: Module | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One mutant."""

    group: str
    program: str
    stage: str
    fault: str
    kind: str
    site: str
    seed: int
    fate: str
    by: str
    number: int
    by_default: int
    sets: int
    seconds: float


def sources(groups: Sequence[str], seed: int, count: int) -> Iterator[Source]:
    """The programs of the groups in random order."""
    found: list[Callable[[], Source]] = []
    if "corpus" in groups:
        found += [
            lambda s=s: Source("corpus", s.name, s.module, s.optimized_module)  # type: ignore[misc]
            for s in subjects()
            if len(s.text) < _LARGEST_TEXT and not re.search(r"\brng|rng_default", s.text)
        ]
    if "xla" in groups:
        texts = sorted((SHARED / "hlo" / "xla").rglob("*.hlo"))
        small = [path for path in texts if path.stat().st_size < _LARGEST_TEXT]
        found += [
            lambda p=p: Source("xla", p.stem, parse_module(p.read_text(), p.stem))  # type: ignore[misc]
            for p in small
        ]
    order = np.random.default_rng(seed).permutation(len(found))
    queue = [found[n] for n in order]
    made = generated_programs(count, seed) if "generated" in groups else iter(())
    while queue or made is not None:
        for _ in range(2):
            if queue:
                try:
                    yield queue.pop()()
                except HlotoolError as error:
                    print("left out:", error, file=sys.stderr)
        new = next(made, None) if made is not None else None
        if new is None:
            made = None  # type: ignore[assignment]
        else:
            yield Source("generated", new.name, parse_module(new.before), parse_module(new.after))


def rows(source: Source, seed: int, kinds: Sequence[FaultKind], most: int, seconds: float) -> Iterator[Row]:
    """The mutants of one program, up to `most`, on all sets of the work of so many seconds."""
    rng = np.random.default_rng([seed, len(source.name)])
    try:
        before = work_done()
        reference = compile_program("before", "", source.before, "numpy")
        if reference.runner.copies > 1:
            return
        examiner, by_default = _examiner(source, reference, before, seconds)
    except (HlotoolError, TooSlow) as error:
        print(f"left out: {source.name}: {error}", file=sys.stderr)
        return
    for stage, module in (("before", source.before), ("after", source.after)):
        share = most if source.after is None else most // 2
        if module is not None and examiner.sets and (stage == "before" or _agrees(module, examiner)):
            for mutant in draw(module, share, int(rng.integers(1 << 30)), kinds):
                yield _row(source, stage, mutant, examiner, by_default)


def _examiner(source: Source, reference: Program, before: int, seconds: float) -> tuple[Examiner, int]:
    """With all sets of so much work, and how many a replay takes by default; `before` is the work before."""
    with time_limit(_SECONDS):
        [trial] = trials(DumpModule(None, "", ""), reference.module, ReplayOptions())
        other = source.after or source.before
        compare_programs(reference, compile_program("after", "", other, "numpy", reference), trial.arguments)
    allowed = allowed_for_sets(ReplayOptions(), work_done() - before)
    by_default = 0

    def counted() -> Iterator[InputSet]:
        nonlocal by_default
        every = sets_of(reference, [trial], ReplayOptions(thorough=True), 0)
        end = work_done() + int(seconds * UNITS_PER_SECOND)
        for one, is_in_budget in in_budget(every, allowed):
            by_default += is_in_budget
            yield one
            if work_done() > end:
                return

    examiner = Examiner(reference, counted())
    return examiner, by_default


def _agrees(module: Module, examiner: Examiner) -> bool:
    """Whether a stage is right: what is wrong without a fault says nothing of faults."""
    try:
        tested = compile_program("after", "", module, "numpy", examiner.reference)
        return examiner.shown(tested).fate is Fate.SURVIVED
    except HlotoolError:
        return False


def _row(source: Source, stage: str, mutant: Mutant, examiner: Examiner, by_default: int) -> Row:
    began = time.perf_counter()
    found = fate_within(mutant, examiner)
    taken = time.perf_counter() - began
    kind = mutant.kind
    return Row(
        source.group,
        source.name,
        stage,
        family_of(kind),
        kind.name,
        str(mutant.site),
        mutant.seed,
        found.fate.value,
        found.by,
        found.number or 0,
        by_default,
        len(examiner.sets),
        taken,
    )


def table(found: Sequence[Row]) -> Iterator[str]:
    """Markdown, by family of fault and by group of programs."""
    yield (
        "| mutants of | | equivalent | killed: plain set | by default | thorough | survived "
        "| killed or equivalent: plain set | by default | thorough |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in found:
        groups[f"1{row.group}"].append(row)
        groups[f"2{row.fault}"].append(row)
    for name in [*sorted(groups), ""]:
        some = [r for r in (groups[name] if name else found) if r.fate != Fate.UNUSABLE.value]
        count = Counter(row.fate for row in some)
        killed = [row for row in some if row.fate == Fate.KILLED.value]
        equal = count[Fate.EQUIVALENT.value]
        numbers = [
            sum(row.number == 0 for row in killed),
            sum(row.number < row.by_default for row in killed),
            len(killed),
        ]
        shares = (f"{100 * (n + equal) / max(1, len(some)):.1f} %" for n in numbers)
        cells = [len(some), equal, *numbers, count[Fate.SURVIVED.value], *shares]
        yield f"| {name[1:] or 'all'} | {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--programs", default="corpus,xla,generated")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--of-one", type=int, default=12, help="mutants of one program, so that none outweighs the others"
    )
    parser.add_argument(
        "--sets-seconds",
        type=float,
        default=15.0,
        help="work of all further sets of a program; `--thorough` may take six times as much",
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--survivors", action="store_true", help="name the mutants that survive")
    parser.add_argument("--kinds", metavar="FAMILY,…", help="families of faults; all by default")
    parser.add_argument("--add", type=Path, nargs="+", metavar="FILE", help="the table of earlier pieces")
    arguments = parser.parse_args()
    if arguments.add:
        pieces = [Row(**row) for file in arguments.add for row in json.loads(file.read_text("utf-8"))]
        print("\n".join(table(pieces)))
        return
    families = arguments.kinds.split(",") if arguments.kinds else [family_of(kind) for kind in KINDS]
    kinds = [kind for kind in KINDS if family_of(kind) in families]
    began = time.perf_counter()
    found: list[Row] = []
    for source in sources(arguments.programs.split(","), arguments.seed, arguments.cases // 10):
        for row in rows(source, arguments.seed, kinds, arguments.of_one, arguments.sets_seconds):
            found.append(row)
            if arguments.survivors and row.fate == Fate.SURVIVED.value:
                where = f"{row.program} ({row.stage}) {row.site}"
                print(f"survives: {row.fault}: {row.kind} at {where}: {row.by}", file=sys.stderr, flush=True)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps([asdict(r) for r in found]), encoding="utf-8")
        if sum(row.fate != Fate.UNUSABLE.value for row in found) >= arguments.cases:
            break
    seconds = time.perf_counter() - began
    print(f"seed {arguments.seed}, {seconds:.0f} s, load {os.getloadavg()[0]:.1f}\n")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
