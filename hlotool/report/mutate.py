"""The report of `hlotool mutate`: by family of faults, what inputs notice, and what they do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from hlotool.report.links import path_text, place_text
from hlotool.report.mutate_records import MutantRecord, MutatedRecord, MutateRecord
from hlotool.report.tables import Report, plain_table
from hlotool.report.words import plural, seconds

_FATES = ("killed", "equivalent", "survived")
#: Survivors that are shown without `--verbose`.
_SHOWN = 10


class MutateReport(Report[MutateRecord]):
    """The score of a program's inputs."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        program = self.record.program
        if program is None:
            return
        if not self.quiet:
            yield _families(program.mutants)
            yield Text()
            yield from self._survivors(program)
        count = self.record.counts
        noticed, open_ = count.get("killed", 0), count.get("survived", 0)
        yield Text.assemble(
            (f"these inputs notice {100 * self.record.score:.0f} % of single faults", "bold"),
            f": {noticed} of {noticed + open_}; {count.get('equivalent', 0)} more change nothing, provably",
            f" · {seconds(self.record.seconds)}",
        )
        sets = program.sets
        named = ", ".join(sets if self.verbose or len(sets) <= _SHOWN else [*sets[:_SHOWN], "…"])
        yield Text(f"{plural(len(sets), 'set')} of inputs: {named}", style="dim")

    def _survivors(self, program: MutatedRecord) -> Iterator[Text | Table]:
        survivors = [mutant for mutant in program.mutants if mutant.fate == "survived"]
        if not survivors:
            return
        table = plain_table()
        for title in ("not noticed", "at", "line of the program"):
            table.add_column(title, overflow="fold")
        for mutant in survivors if self.verbose else survivors[:_SHOWN]:
            source = mutant.source
            excused = f" ({mutant.by})" if mutant.by else ""
            where = f" (line {source.line})" if source.line else ""
            table.add_row(
                mutant.fault + excused, f"{source.opcode} %{source.instruction}{where}", place_text(source)
            )
        yield table
        planted = Text("planted in ", style="dim").append_text(path_text(program.path))
        yield planted.append(f", judged by {program.judged_by}")
        if not self.verbose and len(survivors) > _SHOWN:
            yield Text(f"{len(survivors) - _SHOWN} more: --verbose", style="dim")
        yield Text()


def _families(mutants: list[MutantRecord]) -> Table:
    table = plain_table()
    table.add_column("fault", no_wrap=True)
    for fate in _FATES:
        table.add_column(fate, justify="right")
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants:
        counts.setdefault(mutant.family, Counter())[mutant.fate] += 1
    for family, count in sorted(counts.items()):
        table.add_row(family, *(str(count[fate] or "–") for fate in _FATES))
    return table
