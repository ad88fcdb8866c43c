"""How far a search or a count is, on stderr: one live line on a terminal, else plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import IO

from hlotool.blame.steps import Listener
from hlotool.interface.report.console import printable
from hlotool.interface.report.progress import Heartbeat
from hlotool.interface.report.words import in_halves, seconds


class StepLines:
    """`  step 4  7 left, about 3 steps  0008 simplification.after_algsimp  wrong  2.1 s`.

    Args:
        stream: gets the lines.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._count = 0
        self._left = ""

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search; its steps are counted from 1."""
        self._count, self._left = 0, ""
        self._print(text)

    def left(self, points: int) -> None:
        """So many points are open: said beside the next step."""
        self._left = in_halves(points)

    def step(self, text: str, verdict: str, seconds_taken: float, again: bool) -> None:
        """A step is done."""
        self._count += 1
        took = "known" if again else seconds(seconds_taken)
        parts = [f"  step {self._count}", self._left, text, verdict, took]
        self._print("  ".join(part for part in parts if part))
        self._left = ""

    def _print(self, line: str) -> None:
        print(printable(line), file=self._stream, flush=True)


def steps_for(stream: IO[str], verbose: bool) -> AbstractContextManager[Listener]:
    """What suits `stream` and the user's wish."""
    if verbose or not stream.isatty():
        return nullcontext(StepLines(stream))
    from hlotool.interface.report.live import StepLine

    return StepLine(stream)


class CountLines:
    """`37/133 opcodes  power: 2 failed or crashed`, for what is wrong, and a line now and then.

    Args:
        stream: gets the lines.
        total: how many things there are.
        noun: what they are, in the plural.
        every: a line for each of them.
        clock: seconds, from any origin.
    """

    def __init__(
        self,
        stream: IO[str],
        total: int,
        noun: str,
        every: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._total = total
        self._noun = noun
        self._every = every
        self._clock = clock
        self._last = clock()
        self._names: set[str] = set()

    def __call__(self, name: str, wrong: str) -> None:
        """`name` is over; `wrong` says what is wrong with it, empty where nothing is."""
        self._names.add(name)
        if not (wrong or self._every or self._clock() - self._last >= Heartbeat.PAUSE):
            return
        self._last = self._clock()
        line = f"{len(self._names)}/{self._total} {self._noun}  {wrong or name}"
        print(printable(line), file=self._stream, flush=True)


def counts_for(
    stream: IO[str], total: int, noun: str, verbose: bool
) -> AbstractContextManager[Callable[[str, str], None]]:
    """What suits `stream` and the user's wish."""
    if verbose or not stream.isatty():
        return nullcontext(CountLines(stream, total, noun, every=verbose))
    from hlotool.interface.report.live import CountBar

    return CountBar(stream, total)
