"""What becomes of a mutant: killed by a set of inputs, proved equivalent, or not noticed."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlotool.backends.base import Value
from hlotool.blame.reduction.case_worker import compare_results
from hlotool.errors import BackendFailed, EndlessLoop, HlotoolError
from hlotool.inputs.adversarial.sets import InputSet
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.lab.mutation.equivalence import Mutant, same_of_reals, same_to_the_bit
from hlotool.runs.leaves import same_bits
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import Program, compile_program
from hlotool.system.resources import TooSlow, time_limit

#: Sets that a mutant runs on before a proof that none can show it is tried.
_BEFORE_PROOFS = 12
#: Seconds that the judge may take for one comparison: there are many.
_JUDGING = "5"


class Fate(enum.Enum):
    """What is known of a mutant."""

    #: A set of inputs shows it: the verdict is `wrong`.
    KILLED = "killed"
    #: No inputs can show it.
    EQUIVALENT = "equivalent"
    #: Nothing shows it, and nothing proves that nothing can.
    SURVIVED = "survived"
    #: It cannot be executed, or not on any set.
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class Found:
    """The fate of a mutant, and what it rests on.

    Attributes:
        fate: of the mutant.
        by: the set that kills it, the proof of equivalence, or the best verdict that was excused.
        number: of the set that kills it, among those of the examiner.
    """

    fate: Fate
    by: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A run of a mutant that has not ended.

    Attributes:
        number: of the set.
        name: likewise.
        began: in `time.perf_counter`.
    """

    number: int
    name: str
    began: float

    @property
    def seconds(self) -> float:
        """That it has taken so far."""
        return time.perf_counter() - self.began


class Examiner:
    """Runs mutants of one program on sets of inputs.

    Args:
        reference: the program as it should be, which judges; before optimisation, say.
        sets: of its inputs, the plain one first; those on which it cannot run are passed over.
        limit: seconds after which no further sets are taken.

    Raises:
        TooSlow: it does not run on any set in this time.

    Attributes:
        seconds: that the program took on all sets.
        running: the run of a mutant that is under way, not the judge nor a proof.
    """

    def __init__(self, reference: Program, sets: Iterable[InputSet], limit: float = float("inf")) -> None:
        self.reference = reference
        self.seconds = 0.0
        self.running: Running | None = None
        self._runs: list[tuple[InputSet, Value]] = []
        try:
            with time_limit(limit):
                self._run_on(sets)
        except TooSlow:
            if not self._runs:
                raise

    def _run_on(self, sets: Iterable[InputSet]) -> None:
        for one in sets:
            began = time.perf_counter()
            try:
                value = self.reference.runner.run(one.values).value
                self.seconds += time.perf_counter() - began
                self._runs.append((one, value))
            except HlotoolError as error:
                if isinstance(error, BackendFailed) and error.here:
                    raise

    @property
    def sets(self) -> Sequence[InputSet]:
        """The sets that the program runs on."""
        return [one for one, _ in self._runs]

    def fate(self, mutant: Mutant) -> Found:
        """What becomes of a mutant of the program, or of a later stage of it."""
        self.running = None
        try:
            tested = compile_program("mutant", "", mutant.module, "numpy", self.reference)
        except HlotoolError as error:
            return Found(Fate.UNUSABLE, str(error))
        # What the first sets do not show is often equivalent, and a proof by texts costs less than all sets.
        found = self.shown(tested, _BEFORE_PROOFS)
        if found.fate is Fate.KILLED:
            return found
        if proof := same_to_the_bit(mutant):
            return Found(Fate.EQUIVALENT, proof)
        found = self.shown(tested)
        if found.fate is Fate.SURVIVED and (proof := same_of_reals(self.reference, mutant, tested)):
            return Found(Fate.EQUIVALENT, proof)
        return found

    def shown(self, tested: Program, most: int | None = None) -> Found:
        """Whether some set shows that a program is wrong, among the first `most` of them."""
        excused, ran = "", False
        for number, (one, expected) in enumerate(self._runs[:most]):
            try:
                self.running = Running(number, one.name, time.perf_counter())
                verdict = self._verdict(tested, one, expected)
            except EndlessLoop:
                return Found(Fate.KILLED, f"{one.name}: it never ends", number)
            except HlotoolError:
                self.running = None
                continue
            ran = True
            if verdict.answer is Answer.BAD:
                return Found(Fate.KILLED, one.name, number)
            if verdict is not Verdict.IDENTICAL and not excused:
                excused = f"{verdict.value} on {one.name}"
        return Found(Fate.SURVIVED, excused) if ran else Found(Fate.UNUSABLE, "it runs on no set")

    def _verdict(self, tested: Program, one: InputSet, expected: Value) -> Verdict:
        outcome = tested.runner.run(one.values, expected)
        self.running = None
        if same_bits(tested.runner.result, expected, outcome.value):
            return Verdict.IDENTICAL
        options = ReplayOptions(budget=_JUDGING, first_divergence=False)
        return compare_results(self.reference, tested, one.values, expected, outcome, options).verdict
