"""The report of `hlotool diff`: programs side by side as in a code review, arrays in numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.blame.diff_records import (
    ChangeRecord,
    ComputationRecord,
    LineRecord,
    OpcodeRecord,
    ProgramDiffRecord,
    ResultDiffRecord,
)
from hlotool.interface.report.command_records import DiffRecord
from hlotool.interface.report.console import Report, place_text, plain_table
from hlotool.interface.report.layers import layers_report, layers_total
from hlotool.interface.report.leaf import leaf_diff
from hlotool.interface.report.words import number, plural, style_of, ulps, verdict_text
from hlotool.judge.verdicts import AGREEING

#: Arrays that differ and are shown in full unless everything is asked for.
_DETAILED = 5
#: Names of what is on one side only that are listed, likewise.
_LISTED = 10


class DiffReport(Report[DiffRecord]):
    """Everything that differs, then the totals.

    When quiet, the totals only; when verbose, every array, every opcode, every name.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in self._parts():
            yield part
            yield Text("")
        yield from self._lonely()
        yield self._total()

    def _parts(self) -> Iterator[RenderableType]:
        for program in self.record.programs:
            if not self.quiet and (self.verbose or not program.is_same):
                yield program_diff(program, self.verbose)
        if self.record.layers is not None:
            yield from layers_report(self.record.layers, self.quiet, self.verbose)
        if self.record.results:
            if self.verbose or len(self.record.results) > 1:
                yield _result_table(self.record.results)
            if not self.quiet:
                yield from self._detailed()

    def _detailed(self) -> Iterator[RenderableType]:
        wanted = [r for r in self.record.results if self.verbose or r.comparison.verdict not in AGREEING]
        for result in wanted if self.verbose else wanted[:_DETAILED]:
            yield _named_leaf(result)
        if (hidden := len(wanted) - _DETAILED) > 0 and not self.verbose:
            yield Text(f"{plural(hidden, 'more array')} with a difference (--verbose shows them)", "dim")

    def _lonely(self) -> Iterator[Text]:
        for names, side, sign, style in (
            (self.record.only_left, self.record.left, "-", "red"),
            (self.record.only_right, self.record.right, "+", "green"),
        ):
            shown = names if self.verbose else names[:_LISTED]
            yield from (Text(f"{sign} only in {side}: {name}", style) for name in shown)
            if hidden := len(names) - len(shown):
                yield Text(f"{sign} {plural(hidden, 'more name')} only in {side}", style)

    def _total(self) -> Text:
        diff = self.record
        if diff.layers is not None:
            return layers_total(diff.layers)
        if diff.kind == "results":
            verdicts = [result.comparison.verdict for result in diff.results]
            agreeing = sum(verdict in AGREEING for verdict in verdicts)
            counts = [f"{agreeing} {'agrees' if agreeing == 1 else 'agree'}"]
            others = Counter(verdict.value for verdict in verdicts if verdict not in AGREEING)
            counts += [f"{count} {verdict}" for verdict, count in others.items()]
            return Text(f"{plural(len(verdicts), 'array')} compared: {', '.join(counts)}", "bold")
        same = sum(program.is_same for program in diff.programs)
        failed = sum(program.error is not None for program in diff.programs)
        counts = [f"{same} the same", f"{len(diff.programs) - same - failed} differ"]
        counts += [f"{failed} could not be read"] if failed else []
        return Text(f"{plural(len(diff.programs), 'pair')} of programs: {', '.join(counts)}", "bold")


@group()
def program_diff(program: ProgramDiffRecord, verbose: bool = False) -> RenderResult:
    """Two programs: files, computations with differences, counts."""
    yield Text(f"--- {program.left}", "bold red")
    yield Text(f"+++ {program.right}", "bold green")
    if program.error is not None:
        yield Text(program.error.message, "yellow")
        return
    for change in program.header:
        yield Text(f"  header: {change_text(change)}", "yellow")
    for computation in program.computations:
        yield computation_diff(computation)
    yield Text("")
    yield from _summary(program, verbose)


def _summary(program: ProgramDiffRecord, verbose: bool) -> Iterator[RenderableType]:
    if program.is_same:
        yield Text(f"the same: {program.right_instructions} instructions{_names(program)}", "green")
    else:
        yield Text.assemble(
            f"{program.left_instructions} and {program.right_instructions} instructions, ",
            f"{program.matched} matched{_names(program)}: ",
            (f"{program.changed} changed", "yellow"),
            f", {program.moved} moved",
            f", {program.reordered} reordered" if program.reordered else "",
            (f", {program.only_left} only left", "red"),
            (f", {program.only_right} only right", "green"),
        )
        yield Padding(_opcode_table(program.opcodes, verbose), (0, 0, 0, 2))
    yield from (Text(f"note: {note}", "dim") for note in program.notes)


def _names(program: ProgramDiffRecord) -> str:
    return f" ({program.renamed} renamed)" if program.renamed else ""


def _opcode_table(opcodes: Sequence[OpcodeRecord], verbose: bool) -> Table:
    table = plain_table()
    table.add_column("opcode", no_wrap=True)
    for name in ("same", "moved", "changed", "only left", "only right"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in opcodes:
        counts = (row.same, row.moved, row.changed, row.only_left, row.only_right)
        if verbose or any(counts[1:]):
            table.add_row(row.opcode, *(str(count) if count else "·" for count in counts))
    return table


@group()
def _named_leaf(result: ResultDiffRecord) -> RenderResult:
    yield Text(f"--- {result.left}", "bold red")
    yield Text(f"+++ {result.right}", "bold green")
    yield leaf_diff(result.comparison, result.name)


def _result_table(results: Sequence[ResultDiffRecord]) -> Table:
    table = plain_table()
    for name in ("verdict", "array", "shape"):
        table.add_column(name, no_wrap=True)
    for name in ("mismatched", "worst absolute", "worst relative", "ulps"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        leaf = result.comparison
        table.add_row(
            Text(verdict_text(leaf.verdict), style_of(leaf.verdict)),
            result.name,
            leaf.shape,
            f"{leaf.mismatched}/{leaf.total}",
            number(leaf.worst_absolute.absolute) if leaf.worst_absolute else "0",
            number(leaf.worst_relative.relative) if leaf.worst_relative else "0",
            ulps(leaf.max_ulp).split(" ")[0] or "–",
        )
    return table


# Differing instructions as the lines of a code review: `-`, `+`, what changed within a line standing out.

_LEFT, _RIGHT, _MOVED = "red", "green", "cyan"
#: What stands out in a changed line.
_LEFT_WORD, _RIGHT_WORD = "bold red reverse", "bold green reverse"

#: Names, numbers, blanks, single signs.
_TOKEN = re.compile(r"%?[\w.-]+|\s+|.")

#: Changes that the two lines do not show.
_INVISIBLE = frozenset({"backend_config", "sharding", "frontend_attributes", "control-predecessors"})


@group()
def computation_diff(computation: ComputationRecord) -> RenderResult:
    """The hunks of one computation."""
    for hunk in computation.hunks:
        yield Text(f"@@ {_title(computation)}{_places(hunk)} @@", "magenta")
        for line in hunk:
            yield from _lines(line)


def _title(computation: ComputationRecord) -> str:
    entry = "ENTRY " if computation.is_entry else ""
    if computation.left == computation.right:
        return f"{entry}%{computation.right}"
    if not computation.left:
        return f"{entry}%{computation.right} (only right)"
    if not computation.right:
        return f"{entry}%{computation.left} (only left)"
    return f"{entry}%{computation.left} → %{computation.right}"


def _places(hunk: list[LineRecord]) -> str:
    left = next((line.left_line for line in hunk if line.left_line), 0)
    right = next((line.right_line for line in hunk if line.right_line), 0)
    return f", lines {left or '–'} and {right or '–'}" if left or right else ""


def _lines(line: LineRecord) -> Iterator[Text]:
    if line.status == "only left":
        yield _with_remark(Text(f"- {line.left}", _LEFT), _origin(line))
    elif line.status == "only right":
        yield _with_remark(Text(f"+ {line.right}", _RIGHT), _origin(line))
    elif line.status == "changed":
        yield from _changed(line)
    elif line.status == "moved":
        yield _with_remark(
            Text(f"> {line.right}", _MOVED), Text(f"moved from %{line.left_computation}", "dim")
        )
    else:
        remark = Text("executed at another time" if line.reordered else "", "dim")
        yield _with_remark(Text(f"  {line.right}", "" if line.reordered else "dim"), remark)


def _changed(line: LineRecord) -> Iterator[Text]:
    """Both lines, the words that differ standing out, and what differs that the lines do not show."""
    left, right = Text("- ", _LEFT), Text("+ ", _RIGHT)
    ones, others = _TOKEN.findall(line.left), _TOKEN.findall(line.right)
    for tag, a, b, c, d in SequenceMatcher(None, ones, others, autojunk=False).get_opcodes():
        left.append("".join(ones[a:b]), _LEFT if tag == "equal" else _LEFT_WORD)
        right.append("".join(others[c:d]), _RIGHT if tag == "equal" else _RIGHT_WORD)
    yield left
    yield _with_remark(right, _origin(line))
    for change in line.changes:
        if change.what in _INVISIBLE:
            yield Text(f"  {change_text(change)}", "yellow")


def _origin(line: LineRecord) -> Text:
    """The user's own line, or the frontend's name."""
    return place_text(line.source, "dim") if line.source else Text()


def _with_remark(text: Text, remark: Text) -> Text:
    if remark:
        text.append("  # ", "dim").append_text(remark)
    return text


def change_text(change: ChangeRecord) -> str:
    """`dimensions: {0} → {1}`."""
    return f"{change.what}: {change.left or 'none'} → {change.right or 'none'}"
