"""What a comparison of programs may take, and what executions of them need."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from hlotool.facts.memory import INTERPRETER, all_values, memory_of
from hlotool.facts.work import of_running
from hlotool.ir.module import Module
from hlotool.rewrite.scale.records import Wish
from hlotool.system.user_input import size_text

#: A comparison holds the values of both sides, and those of legal executions in f64 beside them.
COPIES: Final = 4
#: How often a comparison executes a program: two sides, legal executions, further sets, looking for a place.
RUNS: Final = 20
#: How many executions have to fit where sizes are last resorts: what is left of such programs is overhead,
#: and judging them takes more than this count says. The one model that needs them took 21 where an output
#: was unstable, which takes most executions, and 15 where none was: seconds of the processor by the work of
#: an execution (benchmarks/results/scaled.md, "Programs larger than the machine").
RUNS_AT_LAST: Final = 25
#: How often one does that runs programs as they are with values on disk: both sides once, on one set of
#: inputs. Where these differ, the judge ends with its share of the time.
RUNS_IN_PLACE: Final = 4
#: Of what a program that is scaled may need: it is small anyhow, and judging it takes its time.
MEMORY_GOAL: Final = 1 << 30
WORK_GOAL: Final = 300_000_000
_UNITS_PER_SECOND: Final = 1_000_000_000
#: Of bytes and of units of work that records hold.
_MOST: Final = (1 << 63) - 1


class Need(Struct, frozen=True):
    """What one execution takes.

    Attributes:
        memory: bytes.
        work: units of `system.resources.work_limit`.
    """

    memory: int
    work: int


def need_of(*programs: Module, room: float = 0) -> Need:
    """Estimate what one execution takes of those of `programs` that takes most; on the reference.

    What 63 bits do not hold counts as the most that they hold: centuries, and more than any machine has.

    Args:
        programs: in question.
        room: bytes; of what needs no more for certain, the memory may be more than it needs, up to this.
    """
    memory = max(map(all_values, programs))
    if memory > room:
        memory = max(memory_of(module, INTERPRETER).peak for module in programs)
    return Need(min(memory, _MOST), min(max(map(of_running, programs)), _MOST))


class Limits(Struct, frozen=True):
    """What a comparison may take.

    Attributes:
        memory: bytes.
        seconds: of the clock.
    """

    memory: float
    seconds: float

    def within(self, wish: Wish) -> Limits:
        """With the memory that somebody wants instead, where they name one."""
        return Limits(wish.memory, self.seconds) if wish.memory else self

    def hold(self, need: Need) -> bool:
        """Whether a comparison of programs of which one execution needs that fits."""
        return self.lacks(need) == ""

    def hold_at_last(self, need: Need) -> bool:
        """Whether one of programs whose sizes are last resorts fits."""
        return self.has_memory_for(need) and self.has_time_for(need, RUNS_AT_LAST)

    def lacks(self, need: Need) -> str:
        """What it would take too much of, in words; empty where it fits."""
        if not self.has_memory_for(need):
            taken, there = size_text(COPIES * need.memory), size_text(self.memory)
            return f"a comparison needs about {taken}, and there is {there}"
        if not self.has_time_for(need):
            seconds = need.work / _UNITS_PER_SECOND
            return f"one execution takes about {seconds:,.0f} s, and a comparison many"
        return ""

    @property
    def room(self) -> float:
        """Bytes that each of the copies may take."""
        return self.memory / COPIES

    def has_memory_for(self, need: Need) -> bool:
        """Whether all copies of what a comparison holds fit at once."""
        return COPIES * need.memory <= self.memory

    def settles(self, need: Need) -> bool:
        """Whether other memory changes nothing: executions take too long, and sizes are of the goal."""
        enough = self.memory >= COPIES * MEMORY_GOAL
        return enough and not self.has_time_for(need, RUNS_IN_PLACE)

    def has_time_for(self, need: Need, runs: int = RUNS) -> bool:
        """Whether so many executions fit into the seconds."""
        return runs * need.work <= self.seconds * _UNITS_PER_SECOND
