"""The records of many days beside each other: what was found each day, and since when.

A finding is the same on two days if its identity is (`Outcome.identity`), as for a baseline. Of several
records of the same command on the same paths on one day the last counts; others add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from hlotool.interface.report.console import Report, plain_table
from hlotool.interface.report.outcomes import Outcome, State, outcomes_of
from hlotool.interface.report.words import plural, seconds
from hlotool.system.records import CommandRecord, Record


class DayRecord(Record, frozen=True, kw_only=True):
    """What was found on one day.

    Attributes:
        day: such as `2026-11-20`.
        records: files, those that count.
        kinds: how many outcomes of each kind, such as a verdict or a rule.
        states: how many `failed`, `error`, `skipped`, `passed`.
        seconds: that the commands took.
    """

    day: str
    records: list[str]
    kinds: dict[str, int]
    states: dict[str, int]
    seconds: float


class SinceRecord(Record, frozen=True, kw_only=True):
    """A finding, and when it was there.

    Attributes:
        command: that found it.
        name: of the module when it was last found.
        kind: a verdict, or a rule.
        message: in one line.
        first: the first day that has it.
        last: the last one.
        days: on how many days it was found.
        is_open: the last record on the same paths has it.
    """

    command: str
    name: str
    kind: str
    message: str
    first: str
    last: str
    days: int
    is_open: bool


class TrendRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool trend --json` prints.

    Attributes:
        paths: of the records, as given.
        days: that have records, in order.
        findings: what failed on any of them, the newest first.
        notes: records that do not count.
    """

    schema: Literal["hlotool.trend/1"] = "hlotool.trend/1"
    paths: list[str]
    days: list[DayRecord] = []
    findings: list[SinceRecord] = []
    notes: list[str] = []
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Dated:
    """A record of a command.

    Attributes:
        day: when it was made.
        file: where it is.
        record: of a command with findings.
    """

    day: str
    file: str
    record: Any

    @property
    def series(self) -> tuple[object, ...]:
        """What records of other days are of the same."""
        plain = getattr(self.record, "run", self.record)
        paths = getattr(plain, "paths", None) or [self.record.left, self.record.right]
        return self.record.schema, *paths


def trend_of(paths: Sequence[str], records: Iterable[Dated]) -> TrendRecord:
    """What was found by day, and each finding with its days.

    Args:
        paths: as given.
        records: in the order given.
    """
    counting: dict[tuple[str, tuple[object, ...]], Dated] = {}
    notes = []
    for one in records:
        key = (one.day, one.series)
        if before := counting.get(key):
            notes.append(
                f"{before.file}: {one.file} is of the same day and the same paths, and counts instead"
            )
        counting[key] = one
    chosen = sorted(counting.values(), key=lambda one: one.day)
    outcomes = [(one, outcomes_of(one.record)) for one in chosen]
    days = dict.fromkeys(one.day for one in chosen)
    return TrendRecord(
        paths=list(paths),
        days=[_day(day, [pair for pair in outcomes if pair[0].day == day]) for day in days],
        findings=list(_findings(outcomes)),
        notes=notes,
    )


_Found = tuple[Dated, list[Outcome]]


def _day(day: str, found: Sequence[_Found]) -> DayRecord:
    outcomes = [outcome for _, some in found for outcome in some]
    states = Counter(outcome.state for outcome in outcomes)
    return DayRecord(
        day=day,
        records=[one.file for one, _ in found],
        kinds=dict(Counter(outcome.rule for outcome in outcomes).most_common()),
        states={state.value: states[state] for state in State},
        seconds=sum(getattr(one.record, "seconds", 0.0) for one, _ in found),
    )


def _findings(found: Sequence[_Found]) -> Iterator[SinceRecord]:
    """`found` is in the order of days; the newest findings first."""
    last_of = {one.series: one for one, _ in found}
    seen: dict[tuple[object, ...], list[tuple[Dated, Outcome]]] = {}
    for one, outcomes in found:
        for outcome in outcomes:
            if outcome.state in (State.FAILED, State.ERROR):
                seen.setdefault((outcome.command, *outcome.identity), []).append((one, outcome))
    for places in sorted(seen.values(), key=lambda places: places[0][0].day, reverse=True):
        newest = places[-1][1]
        yield SinceRecord(
            command=newest.command,
            name=newest.name,
            kind=newest.rule,
            message=newest.message,
            first=places[0][0].day,
            last=places[-1][0].day,
            days=len({one.day for one, _ in places}),
            is_open=any(last_of[one.series] is one for one, _ in places),
        )


class TrendReport(Report[TrendRecord]):
    """A line for each day, then one for each finding; when quiet, only those that are still there."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        yield self._days()
        findings = [one for one in record.findings if one.is_open or not self.quiet]
        if findings:
            yield Text("")
            yield self._findings(findings)
        yield Text("")
        is_open = sum(one.is_open for one in record.findings)
        what = f"{plural(len(record.findings), 'finding')}, {is_open} of them still there"
        yield Text(f"{plural(len(record.days), 'day')}: {what}")

    def _days(self) -> RenderableType:
        table = plain_table()
        for name in ("day", "results", "seconds"):
            table.add_column(name, overflow="fold")
        for day in self.record.days:
            kinds = ", ".join(f"{count} {kind}" for kind, count in day.kinds.items())
            table.add_row(day.day, kinds or "nothing found", seconds(day.seconds))
        return table

    def _findings(self, findings: Sequence[SinceRecord]) -> RenderableType:
        table = plain_table()
        for name in ("since", "until", "kind", "module"):
            table.add_column(name, overflow="fold", no_wrap=name == "since")
        for one in findings:
            until = "now" if one.is_open else one.last
            table.add_row(one.first, until, one.kind, one.name, style="" if one.is_open else "dim")
        return table
