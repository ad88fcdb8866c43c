"""One wrong module: from its history to culprits with the instructions to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hlotool._version import __version__
from hlotool.blame.bisection.passes import Ends, PassSearch, Turn
from hlotool.blame.bisection.records import BisectedModule, CulpritRecord, SpotRecord
from hlotool.blame.bisection.spotting import (
    FUNCTION,
    RESULT_FUNCTION,
    ResultQuestion,
    SpotQuestion,
    is_wrong,
)
from hlotool.blame.bisection.stages import FLAKY_FUNCTION, RESULT, Question, StageOracle
from hlotool.judge.verdicts import AGREEING, DIFFERING, Answer
from hlotool.runs.fleet.contents import context_key, stage_key
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.system.files import digest
from hlotool.system.records import SourceRecord


@dataclass(slots=True)
class Locator:
    """Finds the culprits of one module.

    Attributes:
        ends: of the module.
        oracle: judges its stages.
        exhaustive: look at every stage.
        hints: labels of a right and a wrong stage, between which other modules that fail went wrong.
    """

    ends: Ends
    oracle: StageOracle
    exhaustive: bool = False
    hints: Sequence[tuple[str, str]] = ()

    def run(self) -> BisectedModule:
        """Search, and return all culprits of the module."""
        task, before = self.ends.task, self.oracle.questions
        left = self.oracle.steps.listener.left
        search = PassSearch(task, self.oracle.ask, self.exhaustive, self.ends.stop, self.hints, left=left)
        culprits: list[CulpritRecord] = []
        if self._stages_are_wrong or self.exhaustive:
            culprits += [self._pass_culprit(turn, search) for turn in search.run()]
        if not culprits and self.ends.blames_code:
            culprits.append(self._flaky_culprit() or self._result_culprit())
        row = self.ends.decisive
        return BisectedModule(
            name=task.module.title,
            path=row.path if row else task.path,
            verdict=row.verdict.value if row else "not compared",
            reason=row.reason if row else task.module.unpaired_reason,
            stages=len(task.module.stages),
            judged=self.oracle.questions - before,
            unusable=list(_unusable(search)),
            is_monotonic=search.history.is_monotonic if search.history else True,
            history=list(_turns(search)),
            culprits=culprits,
        )

    @property
    def _stages_are_wrong(self) -> bool:
        return self.ends.stages is not None and self.ends.stages.verdict in DIFFERING

    @property
    def _result_is_wrong(self) -> bool:
        return self.ends.result is not None and self.ends.result.verdict in DIFFERING

    def _pass_culprit(self, turn: Turn, search: PassSearch) -> CulpritRecord:
        good, bad = (self.ends.task.module.stages[n].title for n in (turn.good, turn.bad))
        candidates = turn.candidates
        spot = self._stage_spot(turn)
        found = spot if isinstance(spot, SpotRecord) else None
        evidence = [
            f"{good}: {_said(search.rows.get(turn.good))}",
            f"{bad}: {_said(turn.comparison)}",
            *self._pass_evidence(turn, spot),
            *_stand_ins(turn.comparison),
            *(_judged_by_values(search) if self.ends.task.options.exact else ()),
        ]
        return CulpritRecord(
            module=self.ends.task.module.title,
            level="pass",
            pass_name=candidates[-1].name,
            pipeline=candidates[-1].pipeline,
            candidates=candidates,
            stage=bad,
            stage_before=good,
            signature=str(turn.comparison.signature),
            instructions=found.instructions if found else [],
            opcodes=found.opcodes if found else [],
            place=found.place if found else [],
            source=found.source if found else _first_source(turn.comparison),
            reduced_instructions=len(found.instructions) if found else None,
            confirmed=turn.confirmed,
            evidence=evidence,
            comparison=turn.comparison,
            spot=found,
        )

    def _pass_evidence(self, turn: Turn, spot: SpotRecord | str) -> Iterator[str]:
        if turn.confirmed:
            yield "a second run gave the same results"
        if self._stages_are_wrong and self.ends.stop is None:
            yield "the program as compiled differs from the program as given, too"
        if self._result_is_wrong:
            yield "so does what the program really returned"
        if isinstance(spot, str):
            yield f"the instructions could not be determined: {spot}"
        elif is_wrong(spot):
            yield "the instructions alone, on the values that occurred, differ as well"

    def _stage_spot(self, turn: Turn) -> SpotRecord | str:
        outputs = turn.comparison.signature.outputs
        if not outputs:
            return turn.comparison.reason
        question = SpotQuestion(self.ends.task, turn.good, turn.bad, outputs, turn.comparison)
        stages = [stage_key(self.ends.task.module, number) for number in (turn.good, turn.bad)]
        return self._spot(FUNCTION, question, *stages, repr(outputs))

    def _flaky_culprit(self) -> CulpritRecord | None:
        """Captured executions that had the same arguments and returned different things."""
        task = self.ends.task
        runs = len(task.module.captures)
        if runs < 2 or self.ends.result is None:
            return None
        key = digest(__version__, FLAKY_FUNCTION, context_key(task.module, task.options))
        others = self.oracle.call(key, "equal arguments", FLAKY_FUNCTION, task)
        if not others:
            return None
        return CulpritRecord(
            module=task.module.title,
            level="flaky",
            stage=REALITY,
            signature=f"{others} of {runs} captured runs are unlike an earlier one",
            confirmed=True,
            evidence=[
                "their arguments are the same, to the bit",
                f"the last stage: {_said(self.ends.stages)}",
            ],
            comparison=self.ends.result,
        )

    def _result_culprit(self) -> CulpritRecord:
        """Every stage is right, what came out is not."""
        row = self.ends.result
        assert row is not None
        task = self.ends.task
        again = self.oracle.ask(Question(task, RESULT, attempt=1), "again result")
        spot = self._result_spot(row)
        found = spot if isinstance(spot, SpotRecord) else None
        last = task.module.stages[-1].title
        evidence = [
            f"{last}: {_said(self.ends.stages)}",
            f"what the program returned: {_said(row)}",
            "so the fault came in after the last stage: in code generation or in a library",
        ]
        evidence += _stand_ins(row)
        if found and found.divergence:
            evidence += found.divergence.notes
        elif found and len(found.instructions) > 1:
            evidence.append(f"{len(found.instructions)} kernels may have made it, the likeliest is first")
        return CulpritRecord(
            module=task.module.title,
            level=found.level if found else "codegen",
            stage=REALITY,
            stage_before=last,
            signature=str(row.signature),
            instructions=found.instructions if found else [],
            opcodes=found.opcodes if found else [],
            source=found.source if found else _first_source(row),
            reduced_instructions=1 if found and found.after else None,
            confirmed=again.verdict.answer is Answer.BAD,
            evidence=evidence,
            comparison=row,
            spot=found,
        )

    def _result_spot(self, row: ModuleRecord) -> SpotRecord | str:
        wrong = row.signature.outputs
        if not wrong:
            return row.reason
        task = self.ends.task
        right = [tuple(leaf.index) for leaf in row.leaves if leaf.verdict in AGREEING]
        question = ResultQuestion(task, tuple(wrong), tuple(right))
        last = stage_key(task.module, len(task.module.stages) - 1)
        return self._spot(RESULT_FUNCTION, question, last, repr((wrong, right)))

    def _spot(self, function: str, question: object, *parts: str) -> SpotRecord | str:
        task = self.ends.task
        key = digest(__version__, function, context_key(task.module, task.options), *parts)
        value: Any = self.oracle.call(key, "instructions", function, question)
        if value is None:
            return "the process that looked for them died"
        return value if isinstance(value, str) else msgspec.convert(value, SpotRecord)


def _said(row: ModuleRecord | None) -> str:
    """A verdict with its reason."""
    if row is None:
        return "the program that all others are judged by"
    return f"{row.verdict.value}, {row.reason}"


def _stand_ins(row: ModuleRecord) -> Iterator[str]:
    """What of the programs is not what really ran."""
    if row.generated_constants:
        yield f"{row.generated_constants} constants are generated: the dump leaves their values out"
    if row.opaque_calls:
        yield f"{row.opaque_calls} custom calls are replaced by stand-ins (no public semantics)"


def _judged_by_values(search: PassSearch) -> Iterator[str]:
    """The stages of which it is not known whether they are the same function, where that was the question."""
    reasons = [reason for row in search.rows.values() if (reason := row.exact_refusal)]
    if reasons:
        yield f"{len(reasons)} of {len(search.rows)} stages were judged by values alone: {reasons[0]}"


def _first_source(row: ModuleRecord) -> SourceRecord | None:
    return next((leaf.source for leaf in row.leaves if leaf.source is not None), None)


def _unusable(search: PassSearch) -> Iterator[str]:
    for number, row in sorted(search.rows.items()):
        if row.verdict not in AGREEING | DIFFERING:
            yield f"{search.task.module.stages[number].title}: {_said(row)}"


def _turns(search: PassSearch) -> Iterator[str]:
    """The turns of the history in words."""
    for turn in search.history.transitions if search.history else ():
        before, after = (search.task.module.stages[n].title for n in (turn.before, turn.after))
        was, becomes = ("right", "wrong") if turn.breaks else ("wrong", "right")
        yield f"{before} is {was}, {after} is {becomes}"
