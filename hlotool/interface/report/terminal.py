"""The report of `hlotool run` for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult, group
from rich.padding import Padding
from rich.text import Text

from hlotool.interface.report.baseline import baseline_lines
from hlotool.interface.report.basis import DETAILED, basis_lines, explanation, in_full
from hlotool.interface.report.console import Report, next_line, place_text
from hlotool.interface.report.evidence import (
    AnnotatedSource,
    coverages_of,
)
from hlotool.interface.report.located import births_of
from hlotool.interface.report.module import (
    happened,
    module_details,
    module_table,
    without_twins,
    worst_last,
)
from hlotool.interface.report.next_command import command_after_run
from hlotool.interface.report.records import CauseRecord, FolderRecord, RunRecord
from hlotool.interface.report.words import (
    compared_stages,
    output_counts,
    plural,
    seconds,
    style_of,
    verdict_text,
)
from hlotool.judge.verdicts import AGREEING, DIFFERING, Answer, Verdict
from hlotool.runs.records import ModuleRecord

#: More modules that agree than these are a number, unless everything is asked for.
_AGREEING = 8
#: Causes listed, likewise; and modules named of each.
_CAUSES, _NAMED = 12, 4


class RunReport(Report[RunRecord]):
    """A whole run: what is wrong in full, other causes, what agrees, how far that reaches, the next command.

    When quiet, without what agrees; when verbose, with everything of every module.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.findings()
        if command := self.next_command():
            yield next_line(command)

    def next_command(self) -> str:
        """What to type next; empty when nothing failed."""
        return command_after_run(self.record, self.verbose)

    def findings(self) -> Iterator[RenderableType]:
        """Everything but what to type next."""
        for part in self._parts():
            yield part
            yield Text("")
        if self.record.options.coverage:
            yield AnnotatedSource(coverages_of(self.record.modules))
            yield Text("")
        if self.record.options.fp8:
            from hlotool.interface.report.fp8 import float8_lost

            yield from float8_lost(self.record.modules)
        yield self._totals()
        if self.record.baseline is not None:
            yield from (Text(line) for line in baseline_lines(self.record.baseline))
        if not self.quiet:
            shown = () if self.verbose else in_full(self.record)
            yield from (Text(line, "dim") for line in (*shown, *basis_lines(self.record)))
            yield from (Text(line, "dim") for line in explanation(self.record))

    def _parts(self) -> Iterator[RenderableType]:
        modules = self.record.modules
        listed = modules
        if self.quiet:
            listed = [m for m in modules if m.verdict not in AGREEING or m.nothing_but_nan]
        if len(modules) == 1:
            yield from (module_details(module, self.verbose) for module in listed)
            return
        detailed = self._detailed()
        yield from (module_details(module, self.verbose) for module in detailed)
        shown = set(map(id, detailed))
        rest = [module for module in listed if id(module) not in shown]
        if not self.verbose:
            yield from self._causes(shown)
        agreeing = [module for module in rest if module.verdict in AGREEING]
        yield from self._table(listed if self.verbose else agreeing)
        yield from _weaker(rest)
        yield from births_of(rest)
        if notes := happened(leaf for m in agreeing for leaf in m.leaves):
            yield Text("\n".join(notes), "dim")

    def _causes(self, shown: set[int]) -> Iterator[RenderableType]:
        """What the rows that are not shown in full come from, the gravest first."""
        modules = self.record.modules
        causes = []
        for cause in reversed(self.record.causes):
            rows = [modules[row] for row in cause.rows if id(modules[row]) not in shown]
            if rows:
                causes.append(cause_lines(cause, rows, in_full=len(cause.rows) - len(rows)))
        yield from causes[:_CAUSES]
        if (hidden := len(causes) - _CAUSES) > 0:
            yield Text(f"{plural(hidden, 'more cause')} (--verbose, or with a search --html FILE)", "dim")

    def _table(self, rows: Sequence[ModuleRecord]) -> Iterator[RenderableType]:
        """The rows one by one, where they are few or all are asked for."""
        if not rows:
            return
        if len(rows) > _AGREEING and not self.verbose:
            every = "all " if len(rows) == len(self.record.modules) else ""
            yield Text.assemble(("✓ ", "green"), f"{every}{len(rows)} results agree (--verbose lists them)")
            return
        distinct, where = (rows, []) if self.verbose else without_twins(rows)
        yield module_table(distinct)
        yield from where

    def _detailed(self) -> Sequence[ModuleRecord]:
        """The records to show in full, the worst first: all if asked for, else the worst that differ."""
        if self.quiet:
            return []
        ordered = worst_last(self.record.modules)[::-1]
        if self.verbose:
            return ordered
        shown = DIFFERING | {Verdict.DIFFERS}
        return [m for m in ordered if m.verdict in shown and not m.twin_of][:DETAILED]

    def _totals(self) -> Text:
        run = self.record
        text = Text.assemble((f"{plural(len(run.modules), 'result')}: ", "bold"))
        counts = [Text(f"{amount} {name}", style_of(Verdict(name))) for name, amount in run.summary.items()]
        if empty := sum(bool(module.nothing_but_nan) for module in run.modules):
            counts.append(Text(f"{empty} with an output that is all NaN", "yellow"))
        text.append_text(Text(" · ", "dim").join(counts))
        if twins := sum(bool(module.twin_of) for module in run.modules):
            text.append(f" · {len(run.modules) - twins} distinct", "dim")
        text.append(f" · {seconds(run.seconds)}", "dim")
        if run.interrupted:
            text.append("\ninterrupted; run the same command again to resume", "yellow")
        return text


def _weaker(modules: Sequence[ModuleRecord]) -> Iterator[Text]:
    """What programs no longer ask of a backend, of those that are not shown in full, each line once."""
    said = {text: module.name for module in reversed(modules) for text in module.weaker}
    for text, name in list(said.items())[:_CAUSES]:
        yield Text(f"weaker in {name}: {text}", "yellow")


#: Folders of one cause that are named.
_FOLDERS = 4


@group()
def cause_lines(cause: CauseRecord, rows: Sequence[ModuleRecord], in_full: int = 0) -> RenderResult:
    """What is wrong, in which line, how often, in which modules, and what to type.

    Args:
        cause: of the rows.
        rows: those to name.
        in_full: how many rows of this cause the report shows in full.
    """
    verdict = Verdict(cause.kind)
    count = f" ×{len(rows)}" if len(rows) > 1 else ""
    count += f" of {plural(cause.programs, 'program')}" if 0 < cause.programs < len(rows) else ""
    more = " more" if in_full else ""
    place = () if cause.source is None or not cause.source.place else ("  ", place_text(cause.source))
    head = f"{verdict_text(verdict)}{count}{more}"
    yield Text.assemble((head, style_of(verdict)), "  ", (cause.what, "bold"), *place)
    names = ", ".join(map(_named, rows[:_NAMED]))
    if (hidden := len(rows) - _NAMED) > 0:
        names += f" and {hidden} more"
    yield Padding(Text(f"in {names}", "dim"), (0, 0, 0, 4))
    if len(cause.folders) > 1 and len(rows) > _NAMED:
        yield Padding(Text(_folders(cause.folders), "dim"), (0, 0, 0, 4))
    counts = dict.fromkeys(filter(None, map(output_counts, rows)))
    yield from (Padding(Text(line, "dim"), (0, 0, 0, 4)) for line in list(counts)[:1])
    if cause.next and verdict.answer is Answer.BAD and not in_full:
        yield Padding(Text(cause.next, no_wrap=True, overflow="ignore"), (0, 0, 0, 4))


def _named(row: ModuleRecord) -> str:
    """A module; with the line where it is broken, or the backend where that is not the reference's."""
    if row.error is not None and row.error.path and row.error.line:
        column = f":{row.error.column}" if row.error.column else ""
        return f"{row.name} ({row.error.path}:{row.error.line}{column})"
    is_other = row.tested is not None and row.tested != row.reference
    return f"{row.name} ({compared_stages(row)})" if is_other else row.name


def _folders(folders: Sequence[FolderRecord]) -> str:
    """Where a cause shows, the place with the most findings first."""
    named = [f"{folder.folder or '.'} ×{folder.count}" for folder in folders[:_FOLDERS]]
    more = len(folders) - _FOLDERS
    return f"{len(folders)} folders: {', '.join(named)}" + (f" and {more} more" if more > 0 else "")
