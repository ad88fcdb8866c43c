"""How far a campaign is, on stderr: a live table on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import IO, Protocol, Self

from hlotool.interface.report.console import console_for, printable
from hlotool.interface.report.lab_records import FailureRecord, FaultRecord, Tally
from hlotool.interface.report.words import plural, seconds


class Listener(Protocol):
    """Receives the progress of a campaign."""

    def counted(self, tally: Tally, faults: Sequence[FaultRecord], waiting: int) -> None:
        """A program is judged: the counts until now, and how many failures wait."""

    def looking(self, failure: FailureRecord) -> None:
        """A failure is being looked into."""

    def found(self, fault: FaultRecord) -> None:
        """It was looked into."""


class Silent:
    """Ignores all progress."""

    def counted(self, tally: Tally, faults: Sequence[FaultRecord], waiting: int) -> None:
        """See `Listener`."""

    def looking(self, failure: FailureRecord) -> None:
        """See `Listener`."""

    def found(self, fault: FaultRecord) -> None:
        """See `Listener`."""


def in_words(fault: FaultRecord) -> str:
    """What looking into a failure came to, in one line."""
    if fault.status == "new":
        return f"✗ {fault.number}  {fault.title}"
    if fault.status == "unconfirmed":
        return f"not a second time: {fault.title}"
    if fault.status == "excused":
        return f"by rounding: {fault.title}"
    if fault.known:
        return f"known: {fault.known}"
    return f"another case of {fault.duplicate_of}: {fault.title}"


class CampaignLines:
    """A line now and then, and one for each failure that was looked into.

    Args:
        stream: gets the lines.
        limit: seconds that the campaign may take; infinite for no limit.
        clock: seconds, from any origin.
    """

    #: Seconds between two lines.
    PAUSE = 30.0

    def __init__(self, stream: IO[str], limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._limit = limit
        self._clock = clock
        self._last = clock()

    def counted(self, tally: Tally, faults: Sequence[FaultRecord], waiting: int) -> None:
        """Say where the campaign is, if the last line is old."""
        now = self._clock()
        if now - self._last < self.PAUSE:
            return
        self._last = now
        self._say(", ".join(summary(tally, faults, waiting, self._limit)))

    def looking(self, failure: FailureRecord) -> None:
        """It takes a while: say so."""
        self._say(f"looking into program {failure.index}: {failure.kind}, {failure.reason}"[:160])

    def found(self, fault: FaultRecord) -> None:
        """What it came to."""
        self._say(in_words(fault))

    def _say(self, text: str) -> None:
        print(printable(f"hlotool: {text}"), file=self._stream, flush=True)


def summary(tally: Tally, faults: Sequence[FaultRecord], waiting: int, limit: float) -> list[str]:
    """Where a campaign is: a few words for each thing."""
    distinct = sum(fault.status == "new" for fault in faults)
    parts = [
        plural(tally.drawn, "program"),
        f"{tally.rate:.0f} a minute",
        f"{tally.accepted} accepted",
        f"{len(tally.passes)} passes reached",
        plural(distinct, "distinct fault"),
    ]
    if waiting:
        parts.append(f"{plural(waiting, 'failure')} to look into")
    if limit < float("inf"):
        parts.append(f"{seconds(max(0.0, limit - tally.seconds))} left")
    return parts


class CampaignTable:
    """A live table on a terminal, and above it what is found; the table vanishes when the campaign is over.

    Args:
        stream: the terminal.
        limit: seconds that the campaign may take; infinite for no limit.
    """

    def __init__(self, stream: IO[str], limit: float) -> None:
        from rich.live import Live

        self._limit = limit
        self._parts: list[str] = []
        self._doing = ""
        self._live = Live(console=console_for(stream), transient=True, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def counted(self, tally: Tally, faults: Sequence[FaultRecord], waiting: int) -> None:
        """Show the counts."""
        self._parts, self._doing = summary(tally, faults, waiting, self._limit), ""
        self._show()

    def looking(self, failure: FailureRecord) -> None:
        """Show it below the counts."""
        self._doing = f"looking into program {failure.index}: {failure.kind}"
        self._show()

    def found(self, fault: FaultRecord) -> None:
        """Print it above."""
        self._live.console.print(printable(in_words(fault)), soft_wrap=True, markup=False)
        self._doing = ""
        self._show()

    def _show(self) -> None:
        from rich.text import Text

        from hlotool.interface.report.console import plain_table

        table = plain_table(show_header=False)
        for part in [*self._parts, *([self._doing] if self._doing else [])]:
            count, _, what = part.partition(" ")
            table.add_row(Text(count, "bold"), printable(what))
        self._live.update(table)


def campaign_progress_for(stream: IO[str], limit: float) -> AbstractContextManager[Listener]:
    """What suits `stream`."""
    return CampaignTable(stream, limit) if stream.isatty() else nullcontext(CampaignLines(stream, limit))
