"""Executions of a program in which sums that cancel are as in f64: what differs there has other causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hlotool.backends.base import Value
from hlotool.backends.numpy.cancelling import FindingBackend, Noted, Rests, SettledBackend
from hlotool.backends.numpy.noise import Member
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.replay.judge.amplifier import Sketches
from hlotool.replay.judge.ensemble import Ensemble

#: Elements of each value that are looked at.
_ELEMENTS: Final = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """One execution.

    Attributes:
        leaves: of its result.
        values: some elements of every value, in the order of execution; none where it runs on many devices.
    """

    leaves: list[Array]
    values: Mapping[Instruction, list[Array]]


class Settled:
    """Such executions of one side, each run once; all raise as `Clock.timed`.

    Args:
        ensemble: legal executions of the same side.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._members: list[list[Array]] = []
        self._watched: dict[tuple[int, frozenset[Instruction]], Watched] = {}

    def members(self, count: int) -> list[list[Array]]:
        """The leaves where nothing else is perturbed, then of `count` with all else as in the ensemble."""
        run = self._execute
        while len(self._members) <= count:
            number = len(self._members)
            self._backend.noise.member = self._ensemble.member(number - 1) if number else Member()
            self._members.append(self._ensemble.executed(run))
        return self._members[: count + 1]

    @property
    def noted(self) -> Mapping[Instruction, Noted]:
        """How far sums that cancel were off in `members`, by instruction."""
        return self._backend.noted

    def watched(self, number: int, released: frozenset[Instruction] = frozenset()) -> Watched:
        """Member `number` of the ensemble, where some sums keep their errors."""
        key = number, released
        if key not in self._watched:
            self._watched[key] = self._run(*key)
        return self._watched[key]

    def _run(self, number: int, released: frozenset[Instruction]) -> Watched:
        backend, side = self._new_backend(), self._ensemble.side
        backend.released, backend.noise.member = released, self._ensemble.member(number)
        watch = side.watch
        if watch is None:
            return Watched(self._ensemble.executed(side.execute(backend)), {})
        sketches = Sketches(_ELEMENTS)

        def run() -> Value:
            return watch(backend, sketches)

        return Watched(self._ensemble.executed(run), sketches.values)

    def _new_backend(self) -> SettledBackend:
        return SettledBackend(self._rests, self._ensemble.product_unit)

    @cached_property
    def _backend(self) -> SettledBackend:
        return self._new_backend()

    @cached_property
    def _execute(self) -> Callable[[], Value]:
        return self._ensemble.side.execute(self._backend)

    @cached_property
    def _rests(self) -> Rests:
        rests = Rests()
        self._ensemble.executed(self._ensemble.side.execute(FindingBackend(rests)))
        return rests
