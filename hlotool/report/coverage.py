"""What the inputs of a run exercised: in one line, and line by line of the user's source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hlotool.coverage.records import CoverageRecord, DecisionRecord
from hlotool.errors import InputError
from hlotool.findings.files import read_whole
from hlotool.findings.records import SourceRecord
from hlotool.replay.records import ModuleRecord
from hlotool.report.links import path_text
from hlotool.report.words import plural

#: Lines of the source shown around those that decide something.
_CONTEXT = 1
#: Columns for signs and counts.
_MARGIN = 9


def covered_text(coverages: Sequence[CoverageRecord], tested: Sequence[CoverageRecord] = ()) -> str:
    """`covers 61 of 64 decisions`; empty where there are none.

    All of them are no proof: each went every way once, on some numbers of many.

    Args:
        coverages: of reference programs.
        tested: of what only the programs decide that were compared with them.
    """
    total, covered = _counts(coverages)
    if not total:
        return ""
    text = f"covers {covered} of {plural(total, 'decision')}"
    of_tested, covered_of_tested = _counts(tested)
    if of_tested:
        text += f", and {covered_of_tested} of {of_tested} that only the tested program has"
    return f"{text}, each way once: no proof" if (covered, covered_of_tested) == (total, of_tested) else text


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
    """How far the outcomes go, sensible and odd ones."""
    text = f"{coverage.occurred} of {plural(coverage.outcomes, 'outcome')}"
    if coverage.odd_outcomes:
        text += f"; {coverage.odd_occurred} of {coverage.odd_outcomes} that only odd inputs have"
    return text


@dataclass(slots=True)
class _Line:
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
    texts = _source_lines(file)
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


def _source_lines(file: str) -> list[str]:
    try:
        return read_whole(Path(file)).decode("utf-8").splitlines()
    except (InputError, UnicodeDecodeError):
        return []


def _rows(line: _Line | None, number: str, text: str) -> Iterator[Text]:
    """A line of the source, and below it what never happened there."""
    if line is None:
        yield Text(f"{'':{_MARGIN}}{number:>5} │ {text}", "dim", no_wrap=True)
        return
    sign, style = line.mark
    yield Text.assemble((f"{sign}{line.count:>{_MARGIN - 2}} ", style), (f"{number:>5} │ ", "dim"), text)
    for never in line.never:
        yield Text(f"{'':{_MARGIN + 8}}never {never}", style)
