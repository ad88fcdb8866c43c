"""The report of `hlotool compare`: a table of the functions, and what there is to say of some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.interface.report.console import Report, facts, next_line, plain_table
from hlotool.interface.report.next_command import command_after_comparison
from hlotool.interface.report.words import plural, seconds, style_of
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ModuleRecord
from hlotool.runs.two_dumps import CompareRecord, Conclusion, FunctionRecord

#: What needs no word of its own unless everything is asked for.
_QUIET = frozenset({Conclusion.IDENTICAL.value})
_SIGNS = {
    Conclusion.IDENTICAL: ("✓", "green"),
    Conclusion.LEGAL: ("✓", "green"),
    Conclusion.UNKNOWN: ("?", "yellow"),
}
_FINDING = ("✗", "bold red")
_LISTED = 5


class CompareReport(Report[CompareRecord]):
    """One line per function; below it a block for each that is not the same in both.

    When quiet, only findings; when verbose, a block for each function.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if len(record.functions) > 1:
            yield self._table()
            yield Text("")
        for function in record.functions:
            is_finding = Conclusion(function.conclusion) not in _SIGNS
            if self.verbose or is_finding or (not self.quiet and function.conclusion not in _QUIET):
                yield from self._function(function)
                yield Text("")
        if not self.quiet:
            yield from self._unpaired()
        yield self._total()
        if command := command_after_comparison(record):
            yield next_line(command)

    @property
    def _sides(self) -> tuple[str, str]:
        names = self.record.backends or self.record.paths
        return names[0], names[1]

    def _table(self) -> RenderableType:
        table = plain_table()
        for name in ("function", "frontend", "first", "second", "between"):
            table.add_column(name, overflow="ellipsis", no_wrap=name == "function")
        for one in self.record.functions:
            sign, style = _SIGNS.get(Conclusion(one.conclusion), _FINDING)
            frontend = Text("same text", "dim") if one.same_program else _verdict(one.frontend)
            cells = (_verdict(row) for row in (one.left_row, one.right_row, one.between))
            table.add_row(Text.assemble((f"{sign} ", style), one.function), frontend, *cells)
        return table

    def _function(self, one: FunctionRecord) -> Iterator[RenderableType]:
        sign, style = _SIGNS.get(Conclusion(one.conclusion), _FINDING)
        yield Text.assemble((f"{sign} {one.conclusion}", style), "  ", (one.function, "bold"))
        yield Padding(facts(self._facts(one)), (0, 0, 0, 2))

    def _facts(self, one: FunctionRecord) -> Iterator[tuple[str, str | Text]]:
        yield "because", one.reason
        left, right = self._sides
        if one.same_program and not self.record.backends:
            yield "frontend", "the same program"
        elif one.frontend is not None and one.frontend.reason not in one.reason:
            yield "frontend", _said(one.frontend)
        for name, path, row in (("first", left, one.left_row), ("second", right, one.right_row)):
            if row is not None:
                yield name, f"{path}: {_said(row)}"
        if self.verbose:
            yield "between", _said(one.between)

    def _unpaired(self) -> Iterator[RenderableType]:
        for name, titles in zip(self._sides, (self.record.only_left, self.record.only_right)):
            if titles:
                shown = titles if self.verbose else titles[:_LISTED]
                more = f" and {len(titles) - len(shown)} more" if len(shown) < len(titles) else ""
                text = f"only in {name}: {', '.join(shown)}{more}"
                yield Text(text, "dim")

    def _total(self) -> Text:
        counts = Counter(one.conclusion for one in self.record.functions)
        parts = " · ".join(f"{counts[c.value]} {c.value}" for c in Conclusion if counts[c.value])
        what = plural(len(self.record.functions), "function")
        return Text(f"{what}: {parts or 'none compared'} · {seconds(self.record.seconds)}")


def _verdict(row: ModuleRecord | None) -> Text:
    return Text("–", "dim") if row is None else Text(row.verdict.value, style_of(row.verdict))


def _said(row: ModuleRecord | None) -> str:
    if row is None:
        return "nothing to compare"
    return row.verdict.value if row.verdict is Verdict.IDENTICAL else f"{row.verdict.value}: {row.reason}"
