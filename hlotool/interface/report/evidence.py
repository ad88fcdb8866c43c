"""What a run rests on: what its inputs exercised, and the sizes that programs ran with.

Coverage is shown in one line, and line by line of the user's source; sizes also as those that programs
would run with (`--show-scale`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.inputs.coverage.records import CoverageRecord, DecisionRecord
from hlotool.interface.report.command_records import ScalePlansRecord
from hlotool.interface.report.console import Report, facts, path_text
from hlotool.interface.report.finding import source_lines
from hlotool.interface.report.words import plural
from hlotool.rewrite.scale.records import UNSEEN, PlanRecord, ScaleRecord
from hlotool.runs.records import ModuleRecord, RepeatRecord
from hlotool.system.records import SourceRecord
from hlotool.system.resources import UNITS_PER_SECOND
from hlotool.system.user_input import size_text

#: Lines of the source shown around those that decide something.
_CONTEXT = 1
#: Columns for signs and counts.
_MARGIN = 9


def repeated_text(repeat: RepeatRecord) -> str:
    """`20 runs, 3 different results: outputs out[1]; 2 of 20 runs wrong`."""
    if repeat.results == 1:
        return f"{repeat.runs} runs, the same bits in all"
    outputs = ", ".join(repeat.outputs[:_SHOWN]) + (", …" if len(repeat.outputs) > _SHOWN else "")
    said = f"{repeat.wrong} of {repeat.judged} runs wrong" if repeat.wrong else "all of them correct"
    if repeat.judged < repeat.runs and not repeat.wrong:
        said = f"those of {repeat.judged} runs judged, all of them correct"
        said = said if repeat.judged else "none of them can be judged"
    return f"{repeat.runs} runs, {repeat.results} different results ({outputs}); {said}"


def covered_text(coverages: Sequence[CoverageRecord], tested: Sequence[CoverageRecord] = ()) -> str:
    """`inputs reached 61 of 64 cases (branches, ties, signs)`; empty where there are none.

    All of them are no proof: each went every way once, on some numbers of many.

    Args:
        coverages: of reference programs.
        tested: of what only the programs decide that were compared with them.
    """
    total, covered = _counts(coverages)
    if not total:
        return ""
    text = f"inputs reached {covered} of {plural(total, 'case')} (branches, ties, signs)"
    of_tested, covered_of_tested = _counts(tested)
    if of_tested:
        text += f", and {covered_of_tested} of {of_tested} that only the tested program has"
    return f"{text}, which is no proof" if (covered, covered_of_tested) == (total, of_tested) else text


def _counts(coverages: Sequence[CoverageRecord]) -> tuple[int, int]:
    """All decisions, and covered ones."""
    return sum(one.decisions for one in coverages), sum(one.covered for one in coverages)


def coverages_of_tested(modules: Sequence[ModuleRecord]) -> list[CoverageRecord]:
    """Of each program the coverage of what only it decides."""
    found = {module.path: module.coverage_tested for module in modules if module.coverage_tested is not None}
    return list(found.values())


def never_texts(coverages: Sequence[CoverageRecord]) -> list[str]:
    """`train.py:12 comparison: equal`, each place once, for decisions that are not covered."""
    found: dict[str, _Line] = {}
    for decision in (decision for coverage in coverages for decision in coverage.never):
        found.setdefault(_place(decision.source), _Line()).decisions.append(decision)
    return [f"{place} {'; '.join(line.never)}" for place, line in found.items()]


def coverages_of(modules: Sequence[ModuleRecord]) -> list[CoverageRecord]:
    """Of each program the coverage by all that it ran on: the last record of it knows most."""
    found = {
        (module.name, os.path.dirname(module.path), module.stage_reference): module.coverage
        for module in modules
        if module.coverage is not None
    }
    return list(found.values())


def decision_kind(decision: DecisionRecord) -> str:
    """The kind, with the dimension of an index."""
    return decision.kind if decision.dimension is None else f"{decision.kind} {decision.dimension}"


def _place(source: SourceRecord) -> str:
    """The user's line, else the frontend's name, else the instruction."""
    return source.place or f"%{source.instruction}"


def outcome_counts(coverage: CoverageRecord) -> str:
    """How far the outcomes go, ordinary and unusual ones."""
    text = f"{coverage.occurred} of {plural(coverage.outcomes, 'outcome')}"
    if coverage.odd_outcomes:
        text += f"; {coverage.odd_occurred} of {coverage.odd_outcomes} that only unusual inputs have"
    return text


class _Line(Struct):
    """What is decided in one line."""

    decisions: list[DecisionRecord] = field(default_factory=list)

    @property
    def mark(self) -> tuple[str, str]:
        """A sign and its style: everything occurred, some of it, or the line never ran."""
        if not self.never:
            return "✓", "green"
        return ("~", "yellow") if any(decision.occurred for decision in self.decisions) else ("✗", "bold red")

    @property
    def count(self) -> str:
        """`2/3`: covered decisions."""
        covered = sum(not decision.never for decision in self.decisions)
        return f"{covered}/{len(self.decisions)}"

    @property
    def never(self) -> list[str]:
        """What did not occur, by kind of decision."""
        found: dict[str, dict[str, None]] = {}
        for decision in self.decisions:
            found.setdefault(decision_kind(decision), {}).update(dict.fromkeys(decision.never))
        return [f"{kind}: {', '.join(outcomes)}" for kind, outcomes in found.items() if outcomes]


class AnnotatedSource:
    """The lines of the user's program that decide something, with what never happened there.

    Where a source is not on this disk only the numbers of its lines are known; where a program does not tell
    lines, names of the frontend or of instructions stand for them.

    Args:
        coverages: with listings.
    """

    def __init__(self, coverages: Sequence[CoverageRecord]) -> None:
        self._files: dict[str, dict[int, _Line]] = {}
        self._elsewhere: dict[str, _Line] = {}
        for decision in (d for coverage in coverages for d in coverage.listing if d.counts):
            source = decision.source
            if source.file and source.file_line:
                line = self._files.setdefault(source.file, {}).setdefault(source.file_line, _Line())
            else:
                line = self._elsewhere.setdefault(_place(source), _Line())
            line.decisions.append(decision)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for file, lines in sorted(self._files.items()):
            yield path_text(file, style="bold cyan")
            yield from _annotated(file, lines)
        if self._elsewhere:
            yield Text("without a source line", "bold cyan")
        for place, line in self._elsewhere.items():
            yield from _rows(line, "", place)


def _annotated(file: str, lines: dict[int, _Line]) -> Iterator[Text]:
    """The lines of one file, with their text where it is at hand."""
    texts = source_lines(file)
    last = 0
    for number in _shown(lines, len(texts)):
        if last and number > last + 1:
            yield Text(f"{'⋮':>{_MARGIN + 5}}", "dim")
        last = number
        text = texts[number - 1] if number <= len(texts) else ""
        yield from _rows(lines.get(number), f"{number}", text)


def _shown(lines: dict[int, _Line], length: int) -> list[int]:
    """Numbers of lines that decide something, and of some around them."""
    near = {n for number in lines for n in range(number - _CONTEXT, number + _CONTEXT + 1) if 0 < n <= length}
    return sorted(near | set(lines))


def _rows(line: _Line | None, number: str, text: str) -> Iterator[Text]:
    """A line of the source, and below it what never happened there."""
    if line is None:
        yield Text(f"{'':{_MARGIN}}{number:>5} │ {text}", "dim", no_wrap=True)
        return
    sign, style = line.mark
    yield Text.assemble((f"{sign}{line.count:>{_MARGIN - 2}} ", style), (f"{number:>5} │ ", "dim"), text)
    for never in line.never:
        yield Text(f"{'':{_MARGIN + 8}}never {never}", style)


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
