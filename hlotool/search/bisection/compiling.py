"""Bisection with the compiler at hand: dumps made here, passes switched off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hlotool.replay.task import Task
from hlotool.search.bisection.compile_here import Live, go_live
from hlotool.search.bisection.directory import Findings, bisect_directory
from hlotool.search.bisection.disabling import find_repairs
from hlotool.search.bisection.records import BisectedModule, CulpritRecord
from hlotool.search.bisection.stage_oracle import StageOracle

#: Runs of each compiled program, to see whether they differ.
REPEATS = 3


@dataclass(slots=True)
class Compiler:
    """Compiles modules and asks what they become without some passes.

    Attributes:
        backend: its spec.
        root: folder for dumps.
        oracle: whose workers work.
        repeats: runs of each compiled program.
    """

    backend: str
    root: Path
    oracle: StageOracle
    repeats: int = REPEATS
    _lives: dict[str, Live] = field(default_factory=dict)

    def bisect(
        self,
        tasks: Sequence[Task],
        findings: Findings,
        exhaustive: bool = False,
        every_module: bool = False,
    ) -> None:
        """As `bisect_directory`, on dumps that are made here, and with what switching off passes does."""
        self.oracle.steps.listener.phase(f"compile on {self.backend}", len(tasks))
        dumps: list[Task] = []
        for task in tasks:
            live = go_live(task, self.backend, self.root, self.oracle, self.repeats)
            if live.task is None:
                findings.modules.append(_not_compiled(live))
                continue
            if live.record.error:
                findings.modules.append(_not_compiled(live))
            if live.record.results > 1:
                findings.culprits.append(_flaky(live))
            self._lives[live.task.module.title] = live
            dumps.append(live.task)
        known = len(findings.culprits)
        bisect_directory(dumps, self.oracle, findings, exhaustive, every_module)
        found = findings.culprits[known:]
        findings.culprits[known:] = [self._confirmed(culprit) for culprit in found]
        findings.modules = [self._renamed(module) for module in findings.modules]
        doubtful = {*(m.name for m in findings.modules), *(c.module for c in findings.culprits)}
        names = map(self._origin, findings.healthy)
        findings.healthy = [name for name in names if name not in doubtful]

    def _origin(self, name: str) -> str:
        """The name of the module that was asked for, of a dump made here."""
        return self._lives[name].origin.module.title if name in self._lives else name

    def _renamed(self, module: BisectedModule) -> BisectedModule:
        culprits = [msgspec.structs.replace(c, module=self._origin(c.module)) for c in module.culprits]
        return msgspec.structs.replace(module, name=self._origin(module.name), culprits=culprits)

    def _confirmed(self, culprit: CulpritRecord) -> CulpritRecord:
        """The culprit with what switching passes off does to it."""
        live = self._lives[culprit.module]
        assert live.task is not None
        self.oracle.steps.listener.phase("switch passes off")
        repairs = find_repairs(live.origin, live.task.module, self.backend, culprit.pass_name, self.oracle)
        evidence = [*culprit.evidence, *repairs.evidence(culprit.pass_name)]
        return msgspec.structs.replace(
            culprit,
            module=live.origin.module.title,
            others=[self._origin(name) for name in culprit.others],
            evidence=evidence,
            repaired_without=[list(names) for names in repairs.sets],
        )


def _not_compiled(live: Live) -> BisectedModule:
    return BisectedModule(
        name=live.origin.module.title,
        path=live.origin.path,
        verdict="crashed" if live.record.folder else "unsupported",
        reason=live.record.error or "no dump was written",
    )


def _flaky(live: Live) -> CulpritRecord:
    """The same arguments gave different results."""
    record = live.record
    return CulpritRecord(
        module=live.origin.module.title,
        level="flaky",
        stage="result",
        signature=f"{record.results} different results in {record.runs} runs",
        confirmed=True,
        evidence=["the program and its arguments were the same in all runs, to the bit"],
    )
