"""Which pass, or which code of the compiler, is to blame for a small failing program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hlotool.dump.directory import open_dump
from hlotool.errors import HlotoolError
from hlotool.findings.signature import Signature
from hlotool.fuzz.limits import Deadline, OutOfTime
from hlotool.replay.options import PRELOAD, RunOptions
from hlotool.replay.task import find_tasks
from hlotool.search.bisection.compiling import Compiler
from hlotool.search.bisection.directory import Findings
from hlotool.search.bisection.disabling import NEEDED, passes_that_changed, without
from hlotool.search.bisection.records import CulpritRecord
from hlotool.search.bisection.stage_oracle import StageOracle
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.case_worker import FUNCTION, CaseQuestion, Outcome
from hlotool.search.steps import Steps
from hlotool.workers.executor import Limits
from hlotool.workers.pool import Pool

#: Passes that are switched off, one at a time, for a compiler that dies: each time costs a new process.
_MOST_SWITCHED = 30


@dataclass(slots=True)
class Blame:
    """Who did it, as far as that is known.

    Attributes:
        culprit: of a bisection; None where none was found.
        level: `pass`, `codegen`, `runtime-library`; empty where that is not known.
        pass_name: accused; empty where none is.
        evidence: why, one line each.
        problems: why it is not known.
        passes: that changed the program.
    """

    culprit: CulpritRecord | None = None
    level: str = ""
    pass_name: str = ""
    evidence: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)


def blame_wrong(program: Path, inputs: Path | None, options: RunOptions, seconds: float) -> Blame:
    """Bisect the passes of a compiler that gives a wrong result.

    Args:
        program: file of HLO.
        inputs: file of its arguments; None where it has none.
        options: reference, backend and limits.
        seconds: after which what was found until then has to do.
    """
    own = msgspec.structs.replace(options, inputs=None if inputs is None else str(inputs))
    findings, blame = Findings(), Blame()
    limits = Limits(1, own.timeout, own.memory_limit)
    dumps = program.with_suffix(".dumps")
    try:
        with Pool(limits, PRELOAD, own.reference) as pool:
            oracle = StageOracle(pool, Steps(None, Deadline(seconds)))
            reading = msgspec.structs.replace(own, backend=own.reference)
            tasks = find_tasks([str(program)], reading, blame.problems)
            Compiler(own.backend, dumps, oracle).bisect(tasks, findings)
    except OutOfTime:
        blame.problems.append(f"bisection: not done after {seconds:.0f} s")
    except HlotoolError as error:
        blame.problems.append(f"bisection: {error}")
    if findings.culprits:
        culprit = findings.culprits[0]
        blame.culprit = culprit
        blame.level, blame.pass_name = culprit.level, culprit.pass_name
        blame.evidence += culprit.evidence
    else:
        blame.problems += [f"bisection: {module.reason}" for module in findings.modules if module.reason]
        if findings.healthy:
            blame.problems.append("bisection: every stage and the result agree")
    blame.passes = list(_passes_in(dumps))
    return blame


def blame_death(
    case: Case, failure: Signature, options: RunOptions, reached: Iterable[str], seconds: float
) -> Blame:
    """The passes without which a compiler does not die, or hang, each switched off alone.

    Args:
        case: the program and its arguments.
        failure: how it dies.
        options: reference, backend and limits.
        reached: passes that changed programs of the campaign: what a pass did before it died leaves no dump.
        seconds: after which what was found until then has to do.
    """
    blame = Blame()
    deadline = Deadline(seconds)
    names = [name for name in dict.fromkeys(reached) if name not in NEEDED][:_MOST_SWITCHED]
    found = []
    try:
        with Pool(Limits(1, options.timeout, options.memory_limit), PRELOAD, options.backend) as pool:
            for name in names:
                deadline.phase(name)
                own = msgspec.structs.replace(options, backend=without(options.backend, [name]))
                [end] = pool.call_all(FUNCTION, [CaseQuestion(case.text, case.arguments, own)])
                if isinstance(end.value, bytes):
                    outcome = msgspec.msgpack.decode(end.value, type=Outcome)
                    if outcome.failure is None and outcome.row is not None:
                        found.append(name)
    except OutOfTime:
        blame.problems.append(f"switching passes off: not done after {seconds:.0f} s")
    except HlotoolError as error:
        blame.problems.append(f"switching passes off: {error}")
    if found:
        blame.level, blame.pass_name = "pass", found[0]
        blame.evidence += [f"without {name} (xla_disable_hlo_passes) the compiler survives" for name in found]
    elif not blame.problems:
        blame.problems.append(f"no pass of {len(names)} keeps the compiler alive by its absence: {failure}")
    return blame


def _passes_in(root: Path) -> Iterator[str]:
    """The passes that left something in the dumps below a folder."""
    for folder in sorted(root.glob("*")) if root.is_dir() else ():
        try:
            dump = open_dump(folder)
        except HlotoolError:
            continue  # the compiler died before it wrote anything
        for module in dump.modules:
            yield from passes_that_changed(module)
