"""Many modules: which are wrong, which fail in the same way, and what made each kind of failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from hlotool.findings.signature import Signature
from hlotool.findings.verdict import AGREEING
from hlotool.replay.task import Task
from hlotool.search.bisection.locate import Ends, Locator, ends_of, ends_questions
from hlotool.search.bisection.records import BisectedModule, CulpritRecord
from hlotool.search.bisection.stage_oracle import StageOracle


@dataclass(slots=True)
class Findings:
    """What the bisection of a directory came to.

    Attributes:
        modules: one entry per module that was searched, or could not be.
        healthy: names of the modules that agree from end to end.
        culprits: all that were found; where several modules fail in the same way, that of the smallest.
        comparisons: number of stages judged.
    """

    modules: list[BisectedModule] = field(default_factory=list)
    healthy: list[str] = field(default_factory=list)
    culprits: list[CulpritRecord] = field(default_factory=list)
    comparisons: int = 0


def bisect_directory(
    tasks: Sequence[Task],
    oracle: StageOracle,
    findings: Findings,
    exhaustive: bool = False,
    every_module: bool = False,
) -> None:
    """Find the modules that are wrong and what made them so.

    Args:
        tasks: the modules.
        oracle: judges their stages.
        findings: gets what is found, as it is found.
        exhaustive: look at every stage of every module, so that no fault that was repaired can hide.
        every_module: search each wrong module; otherwise the smallest of those that fail in the same way.
    """
    wrong: dict[str | Signature, list[Ends]] = {}
    oracle.steps.listener.phase("modules", len(tasks))
    for ends in _all_ends(tasks, oracle):
        row = ends.decisive
        if ends.wrong is not None:
            name = ends.task.module.title if every_module else ends.wrong.signature.elsewhere()
            wrong.setdefault(name, []).append(ends)
        elif exhaustive and len(ends.task.module.stages) > 1:
            wrong.setdefault(ends.task.module.title, []).append(ends)
        elif row is not None and row.verdict in AGREEING:
            findings.healthy.append(ends.task.module.title)
        else:
            findings.modules.append(_not_judged(ends))
    for group in wrong.values():
        _search_group(group, oracle, exhaustive, findings)


def _all_ends(tasks: Sequence[Task], oracle: StageOracle) -> list[Ends]:
    questions = [ends_questions(task) for task in tasks]
    rows = iter(oracle.ask_all([q for own in questions for q in own]))
    return [ends_of(task, own, [next(rows) for _ in own]) for task, own in zip(tasks, questions)]


def _search_group(group: list[Ends], oracle: StageOracle, exhaustive: bool, findings: Findings) -> None:
    """Search the smallest module of those that fail in the same way."""
    smallest = min(group, key=_size)
    others = [ends.task.module.title for ends in group if ends is not smallest]
    oracle.steps.listener.phase(smallest.task.module.title, len(smallest.task.module.stages).bit_length())
    found = Locator(smallest, oracle, exhaustive).run()
    if not found.culprits and smallest.wrong is None:
        findings.healthy.append(found.name)
        return
    culprits = [msgspec.structs.replace(culprit, others=others) for culprit in found.culprits]
    findings.modules.append(msgspec.structs.replace(found, culprits=culprits))
    findings.culprits.extend(culprits)


def _size(ends: Ends) -> int:
    return len(ends.task.module.stages[0].source.read_bytes())


def _not_judged(ends: Ends) -> BisectedModule:
    row, task = ends.decisive, ends.task
    return BisectedModule(
        name=task.module.title,
        path=task.path,
        verdict=row.verdict.value if row else "not compared",
        reason=row.reason if row else task.module.unpaired_reason,
        stages=len(task.module.stages),
    )
