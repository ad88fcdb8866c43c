"""Asks worker processes about stages; no question twice, not even in another run of the command."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hlotool._version import __version__
from hlotool.cache.fingerprint import digest
from hlotool.errors import BackendFailed
from hlotool.findings.verdict import OF_THE_MACHINE, Answer, Verdict
from hlotool.replay.keys import context_key, stage_key
from hlotool.replay.records import ModuleRecord
from hlotool.replay.task import failed_row
from hlotool.search.bisection.stage_worker import FUNCTION, RESULT, Question
from hlotool.search.steps import Steps
from hlotool.workers.executor import Done, Executor


class StageOracle:
    """Judges stages in worker processes.

    Args:
        pool: of workers.
        steps: remembers the answers.

    Attributes:
        questions: number of different questions asked, known ones included.
        unanswered: keys of the steps that gave no answer: what crashed, and what cannot be judged.
    """

    def __init__(self, pool: Executor, steps: Steps) -> None:
        self.steps = steps
        self.questions = 0
        self.unanswered: set[str] = set()
        self._pool = pool

    def ask(self, question: Question, text: str = "") -> ModuleRecord:
        """The comparison that answers a question."""
        self.questions += 1
        key = question_key(question)
        value = self.steps.ask(key, text or question.label, lambda: self._compute(question), _verdict, _lasts)
        row = _of_stage(msgspec.convert(value, ModuleRecord), question)
        if row.verdict.answer is Answer.UNUSABLE:
            self.unanswered.add(key)
        return row

    def ask_all(self, questions: Sequence[Question]) -> list[ModuleRecord]:
        """The answers to many questions, computed at the same time."""
        keys = [question_key(question) for question in questions]
        missing = self.steps.missing(keys)
        first = {key: questions[keys.index(key)] for key in missing}
        began = time.perf_counter()
        for index, value in self._compute_all(list(first.values())):
            now = time.perf_counter()
            self.steps.keep(missing[index], value, now - began, _lasts(value))
            began = now
        return [self.ask(question, question.task.module.title) for question in questions]

    def ask_some(self, questions: Sequence[Question | None]) -> list[ModuleRecord | None]:
        """As `ask_all`; where there is no question, there is no answer."""
        rows = iter(self.ask_all([question for question in questions if question is not None]))
        return [None if question is None else next(rows) for question in questions]

    def call(self, key: str, text: str, function: str, argument: object) -> Any:
        """The value of another function of the workers, in plain data; None when the worker died."""
        value = self.steps.ask(
            key,
            text,
            lambda: self._call(function, argument),
            lambda value: "",
            lambda value: value is not None,
        )
        if value is None:
            self.unanswered.add(key)
        return value

    def _call(self, function: str, argument: object) -> Any:
        [end] = self._pool.call_all(function, [argument])
        return (
            msgspec.to_builtins(msgspec.msgpack.decode(end.value)) if isinstance(end.value, bytes) else None
        )

    def _compute(self, question: Question) -> Any:
        [(_, value)] = self._compute_all([question])
        return value

    def _compute_all(self, questions: Sequence[Question]) -> Iterator[tuple[int, Any]]:
        for event in self._pool.run(FUNCTION, questions):
            if isinstance(event, Done):
                yield event.index, _plain(questions[event.index], event)


def _plain(question: Question, done: Done) -> Any:
    if isinstance(done.value, BackendFailed):
        row = failed_row(question.task, done.value, done.seconds, str(question.stage.source))
        return msgspec.to_builtins(row)
    return msgspec.msgpack.decode(done.value)


def _verdict(value: Any) -> str:
    return str(value["verdict"])


def _lasts(value: Any) -> bool:
    return Verdict(value["verdict"]) not in OF_THE_MACHINE


def _of_stage(row: ModuleRecord, question: Question) -> ModuleRecord:
    """The answer to a question about equal texts, as one about this stage."""
    path = row.path if question.tested == RESULT else str(question.stage.source)
    return msgspec.structs.replace(row, path=path, name=question.task.module.title)


def question_key(question: Question) -> str:
    """Everything that the answer depends on: texts, not names."""
    task = question.task
    tested = "result" if question.tested == RESULT else stage_key(task.module, question.tested)
    return digest(
        __version__,
        "stage",
        context_key(task.module, task.options),
        stage_key(task.module, question.reference),
        tested,
        str(question.attempt),
    )
