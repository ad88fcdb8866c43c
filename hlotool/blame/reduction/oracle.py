"""Does a smaller program still fail in the same way? By a backend, or by the user's own command.

Memory that a compiler reads and nothing wrote holds what earlier programs left in their process. Where a
reduction judges hundreds of programs in one, a small one may fail by that alone, and not where it is filed:
so it is also asked afresh, in a process that has run nothing else.
"""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any, Protocol

import msgspec

from hlotool._version import __version__
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import FUNCTION, CaseOutcome, CaseQuestion, failure_of
from hlotool.blame.steps import Rate, SequentialTest, Steps
from hlotool.errors import BackendFailed, BackendOutOfMemory, UsageError
from hlotool.inputs.given import npz_bytes
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Answer
from hlotool.runs.options.kept import PRELOAD, ReplayOptions
from hlotool.system.executor import Done, Limits
from hlotool.system.files import brief_folder, digest, remove_left
from hlotool.system.pool import Pool

_logger = logging.getLogger(__name__)

#: Makes a candidate; None when there is none.
Candidate = Callable[[], Case | None]

#: Exit status that means: this program cannot be judged. The rest is as for `git bisect run`.
_SKIP = 125

#: Runs of the original that measure how often it fails.
_MEASURED = 24

#: Failures that are rarer than this cannot be told from passes in reasonable time.
_LEAST_RATE = 0.02

#: Programs that pass, kept to choose the nearest one from.
_PASSING = 64


class Judge(Protocol):
    """Runs candidates of a reduction and says how each fails, or that it does not."""

    #: Names what judges, for keys and reports.
    name: str
    #: Programs judged at the same time.
    width: int

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[int, CaseOutcome]]:
        """What each program does, in any order."""


class BackendJudge:
    """Compares a backend with the reference, in worker processes.

    Args:
        pool: of workers.
        options: which backends, and how they are compared.
        width: programs at the same time.
        function: that a worker calls with a `CaseQuestion`; it returns an `Outcome`.
    """

    def __init__(self, pool: Pool, options: ReplayOptions, width: int = 1, function: str = FUNCTION) -> None:
        self.name = f"{options.backend} against {options.reference}{', exactly' if options.exact else ''}"
        self.width = width
        self._pool = pool
        self._options = options
        self._function = function

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[int, CaseOutcome]]:
        """What each program does, in any order."""
        questions = [CaseQuestion(case.text, case.arguments, self._options) for case in cases]
        for event in self._pool.run(self._function, questions):
            if isinstance(event, Done):
                if isinstance(event.value, BackendFailed):
                    yield event.index, failure_of(event.value)
                else:
                    yield event.index, msgspec.msgpack.decode(event.value, type=CaseOutcome)


class CommandJudge:
    """Asks a command: `CMD FILE.hlo`, with the arguments in `FILE.npz` beside it.

    Exit status 0: good. 125: cannot be judged. Others below 128: bad. Death by a signal is a failure of its
    own kind.

    Args:
        command: as typed.
        timeout: seconds; a command that takes longer cannot judge the program.
        width: commands at the same time.
        fail_regex: what the command must print for its failure to be the one that is looked for.
    """

    def __init__(
        self, command: str, timeout: float, width: int = 1, fail_regex: re.Pattern[str] | None = None
    ) -> None:
        self.name = f"{command} {fail_regex.pattern if fail_regex else ''}"
        self.width = width
        self._words = shlex.split(command)
        self._timeout = timeout
        self._regex = fail_regex
        if not self._words:
            raise UsageError("--check needs a command")
        # A reduction that was killed has left some, and what goes on may have nothing left to judge.
        remove_left()

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[int, CaseOutcome]]:
        """What each program does, in any order."""
        with ThreadPoolExecutor(self.width) as threads:
            yield from enumerate(threads.map(self._ask, cases))

    def _ask(self, case: Case) -> CaseOutcome:
        with brief_folder() as folder:
            path = folder / "candidate.hlo"
            path.write_text(case.text, encoding="utf-8")
            path.with_suffix(".npz").write_bytes(npz_bytes(case.arguments, case.copies))
            return self._call([*self._words, str(path)])

    def _call(self, command: list[str]) -> CaseOutcome:
        _logger.info("run %s, %g s at most", shlex.join(command), self._timeout)
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self._timeout,
            )
        except subprocess.TimeoutExpired:
            return CaseOutcome(answer=Answer.UNUSABLE, reason=f"no answer in {self._timeout:g} s")
        except OSError as error:
            raise UsageError(f"--check {command[0]}: {error.strerror or error}") from error
        printed = done.stdout.decode(errors="replace")
        return self._outcome(done.returncode, printed)

    def _outcome(self, status: int, printed: str) -> CaseOutcome:
        last = printed.strip().rpartition("\n")[2]
        if status == 0:
            return CaseOutcome(answer=Answer.GOOD, reason=last)
        if status == _SKIP:
            return CaseOutcome(answer=Answer.UNUSABLE, reason=last)
        if self._regex is not None and not self._regex.search(printed):
            return _failed("fails otherwise", last)
        kind = "bad" if 0 < status < 128 else f"signal {-status if status < 0 else status - 128}"
        return _failed(kind, last or f"exit status {status}")


def _failed(kind: str, reason: str) -> CaseOutcome:
    return CaseOutcome(answer=Answer.BAD, failure=Signature(kind=kind), reason=reason)


class CaseOracle:
    """Answers for programs; keeps the way in which the first one fails.

    Args:
        judge: runs programs.
        steps: remembers outcomes.
        confidence: of the answers about a failure that shows only sometimes.
        repeats: runs of the original program, to see whether it fails always, sometimes or never.
        most: programs that are judged; after them no candidate fails any more. None for no limit.

    Attributes:
        locked: how the program fails; a candidate that fails otherwise is no candidate.
        reason: of the last failure.
        rate: how often the original fails, when that is not always.
        passing: programs that do not fail, the latest ones.
    """

    def __init__(
        self,
        judge: Judge,
        steps: Steps,
        confidence: float = 0.99,
        repeats: int = 2,
        most: int | None = None,
    ) -> None:
        self.judge = judge
        self.steps = steps
        self.locked: Signature | None = None
        self.reason = ""
        self.rate: Rate | None = None
        self.passing: deque[Case] = deque(maxlen=_PASSING)
        self._confidence = confidence
        self._repeats = repeats
        self._left = inf if most is None else most
        self._test = SequentialTest()

    def lock(self, case: Case) -> CaseOutcome:
        """Judge the original program and keep the way in which it fails.

        Raises:
            UsageError: it does not fail.
        """
        text = f"the whole program  {case.size} instrs"
        outcomes = [self.outcome(case, text, attempt) for attempt in range(self._repeats)]
        failures = [o for o in outcomes if o.answer is Answer.BAD]
        if not failures:
            reason = outcomes[-1].reason or "it passes"
            raise UsageError(f"the unmodified program does not fail ({self.judge.name}): {reason}")
        self.locked = failures[0].failure
        if len(failures) < len(outcomes):
            self._measure(case, text, outcomes)
        return failures[0]

    def _measure(self, case: Case, text: str, outcomes: list[CaseOutcome]) -> None:
        """How often it fails, and how many runs a candidate needs for that."""
        outcomes += [self.outcome(case, text, n) for n in range(len(outcomes), _MEASURED)]
        self.rate = Rate(sum(map(self._is_locked, outcomes)), len(outcomes))
        low, _ = self.rate.interval(self._confidence)
        self._test = SequentialTest(min(max(low, _LEAST_RATE), 0.99), self._confidence)

    def outcome(self, case: Case, text: str, attempt: int = 0) -> CaseOutcome:
        """What one program does."""
        [outcome] = self._outcomes([case], [text], attempt)
        return outcome

    def first_failing(self, candidates: Sequence[Candidate], text: str = "") -> tuple[int, Case] | None:
        """The first candidate that fails in the locked way, with its position."""
        width = self.judge.width
        for start in range(0, len(candidates), width):
            if self._left <= 0:
                return None
            made = [(start + n, make()) for n, make in enumerate(candidates[start : start + width])]
            cases = [(number, case) for number, case in made if case is not None]
            texts = [f"{text}  {case.size} instrs" for _, case in cases]
            outcomes = self._outcomes([case for _, case in cases], texts)
            for (number, case), own, outcome in zip(cases, texts, outcomes):
                if self._answer(case, own, outcome) is Answer.BAD:
                    return number, case
        return None

    def fails(self, case: Case | None, text: str = "") -> bool:
        """Whether a program fails in the locked way."""
        return case is not None and self.first_failing([lambda: case], text) is not None

    def _answer(self, case: Case, text: str, outcome: CaseOutcome) -> Answer:
        """What the first outcome, and as many more as it takes, say of a program."""
        failures = passes = 0
        while True:
            if outcome.answer is Answer.UNUSABLE:
                return Answer.UNUSABLE
            failures += self._is_locked(outcome)
            passes += outcome.answer is Answer.GOOD
            answer = self._test.decide(failures, passes)
            fails_otherwise = outcome.answer is Answer.BAD and not self._is_locked(outcome)
            if fails_otherwise or answer is not None:
                break
            outcome = self.outcome(case, text, failures + passes)
        if answer is Answer.BAD:
            self.reason = outcome.reason
        elif answer is Answer.GOOD:
            self.passing.append(case)
        return answer or Answer.UNUSABLE

    def _is_locked(self, outcome: CaseOutcome) -> bool:
        return outcome.answer is Answer.BAD and outcome.failure == self.locked

    def closest_passing(self, case: Case) -> Case | None:
        """The program that passes and is nearest to `case` in size."""

        def apart(other: Case) -> tuple[int, int]:
            return abs(other.size - case.size), abs(other.elements - case.elements)

        return min(self.passing, key=apart, default=None)

    def _outcomes(self, cases: Sequence[Case], texts: Sequence[str], attempt: int = 0) -> list[CaseOutcome]:
        keys = [digest(__version__, "outcome", self.judge.name, str(attempt), case.key) for case in cases]
        missing = self.steps.missing(keys)
        self._left -= len(keys)
        began = time.perf_counter()
        if missing:
            todo = [cases[keys.index(key)] for key in missing]
            for index, outcome in self.judge.run(todo):
                took = time.perf_counter() - began
                self.steps.keep(missing[index], msgspec.to_builtins(outcome), took, _lasts(outcome))
        return [
            msgspec.convert(self.steps.ask(key, text, _unreachable, _kind), CaseOutcome)
            for key, text in zip(keys, texts)
        ]


def _lasts(outcome: CaseOutcome) -> bool:
    return outcome.failure is None or outcome.failure.kind != BackendOutOfMemory.__name__


def _unreachable() -> Any:
    raise AssertionError("computed before")


def _kind(value: Any) -> str:
    return str(msgspec.convert(value, CaseOutcome))


#: What is said of a program that does not fail there.
ONLY_AFTER_OTHERS = "failed only where others had run in the same process"
#: Processes that a program has to fail in: one that fails only sometimes may be right in the first.
_MOST = 3


def failing_afresh(
    case: Case, options: ReplayOptions, limits: Limits, fails: Callable[[CaseOutcome], bool]
) -> CaseOutcome | None:
    """How a program fails in a fresh process; None where it does not, asked three times.

    Args:
        case: the program and its arguments.
        options: which backends, and how they are compared.
        limits: of the process.
        fails: whether an outcome is the failure in question.
    """
    outcomes = (asked_afresh(case, options, limits) for _ in range(_MOST))
    return next(filter(fails, outcomes), None)


def asked_afresh(case: Case, options: ReplayOptions, limits: Limits, function: str = FUNCTION) -> CaseOutcome:
    """What a program does in a fresh process.

    Args:
        case: the program and its arguments.
        options: which backends, and how they are compared.
        limits: of the process.
        function: see `BackendJudge`.
    """
    with Pool(limits, PRELOAD, options.backend) as pool:
        [(_, outcome)] = BackendJudge(pool, options, 1, function).run([case])
    return outcome
