"""Smaller sizes of programs: those that they ran with, and with `--show-scale` those that they would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.amounts import size_text
from hlotool.report.scale_records import ScalePlansRecord
from hlotool.report.tables import Report, facts
from hlotool.report.words import plural
from hlotool.scale.records import UNSEEN, PlanRecord, ScaleRecord
from hlotool.workers.work_limit import UNITS_PER_SECOND

#: Places that a report names that does not show everything.
_SHOWN: Final = 3


def scale_facts(scaled: ScaleRecord, verbose: bool) -> Iterator[tuple[str, str]]:
    """What was changed and why, by name; every size, and what this cannot see, where everything is shown."""
    yield "scaled", scaled.text
    if verbose:
        yield "", scaled.why
        yield from _sizes(scaled)
    yield from _unseen([*_places(scaled, verbose), *(UNSEEN if verbose else ())])


def _unseen(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from (("" if number else "not seen", text) for number, text in enumerate(texts))


def _places(scaled: ScaleRecord, verbose: bool) -> Iterator[str]:
    """Places that may lie behind the end of a dimension, by name; the first ones, or all."""
    shown = scaled.unseen if verbose else scaled.unseen[:_SHOWN]
    yield from shown
    if hidden := len(scaled.unseen) - len(shown):
        yield f"and {hidden} more such place{'s' * (hidden > 1)}"


def _sizes(scaled: ScaleRecord) -> Iterator[tuple[str, str]]:
    """Every size that changes, every one that stays, constants."""
    for size in scaled.sizes:
        name = f": {size.name}" if size.name else ""
        yield "", f"{size.old} → {size.new}{name} ({plural(size.dimensions, 'dimension')})"
    for stay in scaled.stay:
        yield "", f"{stay.size} stays: {stay.why} ({plural(stay.dimensions, 'dimension')})"
    if scaled.constants:
        yield "", f"{plural(scaled.constants, 'constant')} changed with them"


class ScalePlansReport(Report[ScalePlansRecord]):
    """For each module: the sizes that it would get, those that stay, and what it needs before and after."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        for plan in record.plans:
            if self.quiet and not plan.why:
                continue
            yield Text(plan.name, "bold")
            yield Padding(facts(_plan_facts(plan, self.verbose)), (0, 0, 1, 2))
        memory = "no limit of memory" if record.memory is None else f"{size_text(record.memory)} of memory"
        changed = sum(plan.scaled is not None for plan in record.plans)
        as_they_are = sum(not plan.why for plan in record.plans)
        disk = sum(plan.in_place is not None for plan in record.plans)
        counts = f"{as_they_are} fit, {disk} run as they are in less memory, {changed} with smaller sizes"
        yield Text(f"{plural(len(record.plans), 'module')}: {counts} · {memory}, {record.seconds:g} s each")


def _plan_facts(plan: PlanRecord, verbose: bool) -> Iterator[tuple[str, str]]:
    """What would become of one module."""
    if plan.memory:
        yield "needs", _need(plan.memory, plan.work)
    if plan.why:
        yield "why", plan.why
    elif not plan.note:
        yield "runs", "as it is"
    if plan.in_place is not None:
        yield "runs within", plan.in_place.text
        yield "", f"{size_text(plan.in_place.needed)} of memory for one execution"
    if plan.scaled is not None:
        yield "scaled", plan.scaled.text
        yield "needs then", _need(plan.scaled.scaled_memory, plan.scaled.scaled_work)
        yield from _sizes(plan.scaled)
        yield from _unseen(plan.unseen)
    if plan.note:
        yield "note", plan.note
    if verbose:
        yield "file", plan.path


def _need(memory: int, work: int) -> str:
    return f"{size_text(memory)} and about {work / UNITS_PER_SECOND:.2g} s for one execution"
