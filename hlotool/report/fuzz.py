"""The report of `hlotool fuzz`: the distinct faults, and what was reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from hlotool.report.fuzz_records import FaultRecord, FuzzRecord
from hlotool.report.links import path_text
from hlotool.report.next_command import command_after_fuzz
from hlotool.report.tables import Report, next_line, plain_table
from hlotool.report.words import plural, seconds

#: Reasons and problems that are shown without `--verbose`.
_SHOWN = 5


class FuzzReport(Report[FuzzRecord]):
    """What a campaign found."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.interrupted:
            yield Text("interrupted; the same command goes on with the campaign", "yellow")
        for fault in record.faults:
            if fault.status == "new":
                yield from self._fault(fault)
        known = [fault for fault in record.faults if fault.status == "known"]
        if known and not self.quiet:
            yield _known(known)
            yield Text()
        if not self.quiet:
            yield from self._reached()
        yield from self._totals()
        if command := command_after_fuzz(record):
            yield next_line(command)

    def _fault(self, fault: FaultRecord) -> Iterator[Text]:
        cases = f"  {plural(fault.count, 'case')}" if fault.count > 1 else ""
        yield Text.assemble(("✗ ", "bold red"), (f"{fault.number}  {fault.title}", "bold"), cases)
        sizes = f"{fault.before} → {plural(fault.instructions, 'instruction')}"
        triggers = "triggers" if fault.triggers else "does not trigger"
        yield Text(f"  {fault.signature}; {fault.reason}; {sizes}; on {fault.backend}")
        if fault.bundle:
            yield Text.assemble("  ", path_text(fault.bundle), f"  {triggers}")
        else:
            yield Text.assemble("  ", path_text(fault.program))
        for problem in fault.problems if self.verbose else fault.problems[:1]:
            yield Text(f"  {problem}", "dim")

    def _reached(self) -> Iterator[Text]:
        tally = self.record.tally
        opcodes = {word for word in tally.words if " " not in word and ":" not in word and "<" not in word}
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.kinds.items()))
        yield Text(f"{plural(tally.drawn, 'program')}: {kinds or 'none'}")
        yield Text(
            f"{plural(len(opcodes), 'opcode')}, {len(tally.words)} pairs of opcode, type and attribute; "
            f"{len(tally.passes)} passes that changed something"
        )
        if self.verbose and tally.passes:
            yield Text(f"passes: {', '.join(tally.passes)}", "dim")
        for title, reasons in (("refused", tally.refused), ("not judged", tally.unjudged)):
            ordered = sorted(reasons.items(), key=lambda item: -item[1])
            for reason, count in ordered if self.verbose else ordered[:_SHOWN]:
                yield Text(f"  {title} {count} ×: {reason}", "dim")

    def _totals(self) -> Iterator[Text]:
        record = self.record
        statuses: Counter[str] = Counter(fault.status for fault in record.faults)
        parts = [plural(record.distinct, "distinct fault")]
        for status, words in (
            ("known", "known"),
            ("duplicate", "further cases"),
            ("unconfirmed", "not a second time"),
            ("excused", "by rounding"),
        ):
            if statuses[status]:
                parts.append(f"{statuses[status]} {words}")
        if record.pending:
            parts.append(f"{plural(record.pending, 'failure')} not looked into")
        yield Text.assemble(
            (parts[0], "bold"),
            "".join(f" · {part}" for part in parts[1:]),
            f" · {record.rate:.0f} programs a minute · {seconds(record.seconds)}",
        )


def _known(faults: list[FaultRecord]) -> Table:
    table = plain_table()
    for title in ("known", "cases", "report"):
        table.add_column(title, overflow="fold")
    for fault in faults:
        table.add_row(fault.known, str(fault.count), fault.link)
    return table
