"""The ends of a module's history: what is established about it before anything is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from hlotool.cache.fingerprint import digest
from hlotool.findings.verdict import AGREEING, DIFFERING
from hlotool.replay.records import ModuleRecord
from hlotool.replay.rows import inherited_row
from hlotool.replay.task import Task
from hlotool.search.bisection.stage_oracle import StageOracle, question_key
from hlotool.search.bisection.stage_worker import INPUTS_FUNCTION, RESULT, Question


@dataclass(frozen=True, slots=True)
class Ends:
    """What a module's ends tell.

    Attributes:
        task: the module.
        stages: the last stage against the first; None when there is only one.
        result: what the program really returned against the first stage; None when it is not known.
        beside: what the program really returned against the last stage, where that was asked.
        stop: number of the stage that `stages` is about, where it is another than the last one.
    """

    task: Task
    stages: ModuleRecord | None
    result: ModuleRecord | None
    beside: ModuleRecord | None = None
    stop: int | None = None

    @property
    def wrong(self) -> ModuleRecord | None:
        """The comparison that shows a failure whose cause can be searched, if any."""
        if self.stages is not None and self.stages.verdict in DIFFERING:
            return self.stages
        return self.result if self.blames_code else None

    @property
    def blames_code(self) -> bool:
        """What the program returned is wrong, and not because the last stage is.

        That is established when the last stage gives something else on the same arguments.
        """
        if self.result is None or self.result.verdict not in DIFFERING:
            return False
        if self.stages is None:
            return True
        is_after = self.beside is not None and self.beside.verdict in DIFFERING
        return is_after and self.stages.verdict not in DIFFERING

    @property
    def rows(self) -> list[ModuleRecord]:
        """The comparisons with the first stage."""
        return [row for row in (self.stages, self.result) if row is not None]

    @property
    def decisive(self) -> ModuleRecord | None:
        """The comparison that speaks for the module: of two, the worse one."""
        return max(self.rows, key=lambda row: row.verdict.rank, default=None)

    @property
    def agree(self) -> bool:
        """Every end that is known was compared and agrees."""
        return bool(self.rows) and all(row.verdict in AGREEING for row in self.rows)

    @property
    def missing(self) -> str:
        """The end of the history that the dump lacks, in words; empty when both are there."""
        module = self.task.module
        if module.number is None:
            return ""
        if module.before is None:
            return "the program as given is not in the dump"
        if module.after is None and self.result is None:
            return "the program as compiled is not in the dump"
        return ""


def ends_of(tasks: Sequence[Task], oracle: StageOracle) -> list[Ends]:
    """The ends of every module, judged at the same time.

    Modules that agree on plain inputs are judged again on such that show a difference, where there are any.
    """
    found = _judged(tasks, oracle)
    other = {n: task for n, ends in enumerate(found) if (task := _on_other_inputs(ends, oracle)) is not None}
    again = iter(_judged(list(other.values()), oracle))
    return [next(again) if number in other else ends for number, ends in enumerate(found)]


def _on_other_inputs(ends: Ends, oracle: StageOracle) -> Task | None:
    """The task with inputs that show what the plain ones do not; None where there are none."""
    task = ends.task
    options = task.options
    is_plain = options.inputs is None and options.further_sets and not task.module.captures
    if not is_plain or ends.result is not None or ends.stages is None or not ends.agree:
        return None
    key = digest("inputs", question_key(Question(task, len(task.module.stages) - 1)))
    file = oracle.call(key, f"{task.module.title}: further inputs", INPUTS_FUNCTION, task)
    # An answer that is remembered may name a file that is gone.
    if not file or not Path(file).is_file():
        return None
    return replace(task, options=msgspec.structs.replace(options, inputs=file))


def _judged(tasks: Sequence[Task], oracle: StageOracle) -> list[Ends]:
    last = oracle.ask_some([_last_question(task) for task in tasks])
    results = oracle.ask_some([_result_question(task) for task in tasks])
    ends = [Ends(*parts) for parts in zip(tasks, last, results)]
    beside = oracle.ask_some([_beside_question(one) for one in ends])
    return [one if row is None else _with_beside(one, row) for one, row in zip(ends, beside)]


def _last_question(task: Task) -> Question | None:
    count = len(task.module.stages)
    return Question(task, count - 1) if count > 1 else None


def _result_question(task: Task) -> Question | None:
    has_result = task.options.outputs is not None or task.module.captures
    return Question(task, RESULT) if has_result and task.module.stages else None


def _beside_question(ends: Ends) -> Question | None:
    """A result that is not what the first stage gives may be what the last one gives."""
    if ends.stages is None or ends.result is None or ends.result.verdict in AGREEING:
        return None
    return Question(ends.task, RESULT, len(ends.task.module.stages) - 1)


def _with_beside(ends: Ends, beside: ModuleRecord) -> Ends:
    assert ends.stages is not None
    assert ends.result is not None
    if beside.verdict not in AGREEING:
        return replace(ends, beside=beside)
    return replace(ends, beside=beside, result=inherited_row(ends.result, ends.stages))
