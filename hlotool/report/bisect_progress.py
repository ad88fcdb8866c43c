"""The steps of a search on stderr, one line each, as they are made."""

from __future__ import annotations

from typing import IO

from hlotool.report.words import seconds


class StepLines:
    """`step 4/~7  0008 simplification.after_algsimp  wrong  2.1 s`.

    Args:
        stream: gets the lines.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._count = 0
        self._estimate: int | None = None

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search; its steps are counted from 1."""
        self._count, self._estimate = 0, steps
        self._print(text)

    def step(self, text: str, verdict: str, seconds_taken: float, again: bool) -> None:
        """A step is done."""
        self._count += 1
        total = f"/~{max(self._estimate, self._count)}" if self._estimate else ""
        took = "known" if again else seconds(seconds_taken)
        parts = [f"  step {self._count}{total}", text, verdict, took]
        self._print("  ".join(part for part in parts if part))

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)
