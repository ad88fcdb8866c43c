"""Which of the suspects is the first wrong instruction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex
from hlotool.replay.divergence import Comparison, Divergence
from hlotool.replay.repair import Errors
from hlotool.replay.suspects import Trial, examine

#: Suspects that are tested, each by running the program once or twice.
_MOST_TRIALS = 24


def best_trial(
    comparison: Comparison,
    outputs: Sequence[ShapeIndex],
    errors: Errors,
    backend: str,
    seconds: float = inf,
) -> Trial | None:
    """The suspect that explains most of the outputs that differ; None where there is no suspect at all.

    Suspects that differ by more than rounding can explain come first; only where none of them makes an output
    right, the origins of smaller differences are tried, too.

    Args:
        comparison: of the two executions.
        outputs: shape indices of the outputs that differ.
        errors: of those outputs.
        backend: that runs the tested program.
        seconds: after which no other suspect is tested.
    """
    search = _Search(comparison, outputs, errors, backend, seconds)
    found = search.run(tight=False) or search.first_sufficient()
    if found is not None:
        return found
    if not any(trial.repaired and trial.is_locally_wrong is not False for trial in search.tried):
        found = search.run(tight=True)
    return found or max(search.tried, key=_weight, default=None)


class _Search:
    """Tests suspects until one explains everything.

    A suspect whose repair changes nothing, or that computes what is expected from what is expected, was taken
    for something else than it is: it loses its counterpart, and the search goes on behind it.
    """

    def __init__(
        self,
        comparison: Comparison,
        outputs: Sequence[ShapeIndex],
        errors: Errors,
        backend: str,
        seconds: float,
    ) -> None:
        self.tried: list[Trial] = []
        self._comparison = comparison
        self._outputs = outputs
        self._errors = errors
        self._backend = backend
        self._known: set[Instruction] = set()
        self._end = time.monotonic() + seconds

    def run(self, tight: bool) -> Trial | None:
        """A trial that explains everything."""
        most = len(self.tried) + _MOST_TRIALS
        while self._may_try(most):
            suspects = self._comparison.divergences(self._outputs, tight)
            if any(self._comparison.correct(suspect) for suspect in suspects[:1]):
                continue
            fresh = [suspect for suspect in suspects if suspect.instruction not in self._known]
            if not fresh:
                return None
            trial = self._try(fresh[0])
            # What does right on right operands only passes on what is wrong: look before it.
            if trial.repaired == len(self._errors) and trial.is_locally_wrong is not False:
                return trial
        return None

    def first_sufficient(self) -> Trial | None:
        """An early one of all that differs on the way whose repair is enough, found by halving.

        Before the fault a repair changes nothing, after it most repairs are enough. What cannot be repaired
        to try, such as one iteration of a loop, but is wrong by itself, and earlier, goes before it.
        """
        differing = self._comparison.differing(self._outputs)
        left = [suspect for suspect in differing if suspect.instruction not in self._known]
        best: Trial | None = None
        while left and self._may_try(len(self.tried) + 1):
            middle = len(left) // 2
            trial = self._try(left[middle])
            if trial.repaired == len(self._errors):
                best, left = trial, left[:middle]
            else:
                left = left[middle + 1 :]
        if best is None:
            return None
        best = replace(best, divergence=self._again(best.divergence))
        earlier = [trial for trial in self.tried if trial.repaired is None and trial.is_locally_wrong]
        return min((*earlier, best), key=lambda trial: trial.divergence.order)

    def _may_try(self, most: int) -> bool:
        return len(self.tried) < most and time.monotonic() < self._end

    def _again(self, suspect: Divergence) -> Divergence:
        """The suspect; whatever was tried before it and did not help counts as unknown."""
        for trial in self.tried:
            if trial.repaired != len(self._errors):
                self._comparison.discard(trial.divergence.instruction)
        found = self._comparison.differing(self._outputs)
        return next((d for d in found if d.instruction is suspect.instruction), suspect)

    def _try(self, suspect: Divergence) -> Trial:
        trial = examine(self._comparison, suspect, self._errors, self._backend)
        self.tried.append(trial)
        self._known.add(suspect.instruction)
        if trial.repaired == 0 or (trial.repaired is None and trial.is_locally_wrong is False):
            self._comparison.discard(suspect.instruction)
        return trial


def _weight(trial: Trial) -> tuple[int, bool, bool, float]:
    """What explains more; then what is wrong by itself, or differs by more than rounding; then order."""
    divergence, repaired = trial.divergence, trial.repaired
    explained = -1 if repaired is None else repaired or -2
    return explained, bool(trial.is_locally_wrong), not divergence.tight, -divergence.order
