"""The report of `hlotool triage`: the faults, the most frequent last, and all programs in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hlotool.interface.report.console import Report, next_line, path_text
from hlotool.interface.report.lab_records import FaultRecord
from hlotool.interface.report.next_command import command_after_triage
from hlotool.interface.report.triage_records import TriageRecord
from hlotool.interface.report.words import plural, seconds

#: Programs of each outcome that are named without `--verbose`.
_SHOWN = 3


class TriageReport(Report[TriageRecord]):
    """What programs by others came to. When quiet, only the last line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.interrupted or record.pending:
            left = f": {plural(record.pending, 'failure')} not looked into" if record.pending else ""
            yield Text(f"run the same command again to resume{left}", "yellow")
        if not self.quiet:
            shown = Counter(program.fault for program in record.programs)
            for fault in sorted(record.numbered, key=lambda fault: shown[fault.number]):
                yield from self._fault(fault, shown[fault.number])
            yield from self._others()
        yield Text.assemble((record.headline, "bold"), (f" · {seconds(record.seconds)}", "dim"))
        if command := command_after_triage(record):
            yield next_line(command)

    def _fault(self, fault: FaultRecord, programs: int) -> Iterator[Text]:
        title = (f"{fault.number}  {fault.title}", "bold")
        yield Text.assemble(("✗ ", "bold red"), title, f"  {plural(programs, 'program')}")
        if fault.known:
            yield Text(f"  known: {fault.known} ({fault.link})")
        else:
            sizes = f"{fault.before} → " if fault.before else ""
            yield Text(f"  {fault.signature}; {sizes}{plural(fault.instructions, 'instruction')}")
        if fault.place:
            yield Text(f"  {fault.place}")
        if fault.bundle:
            triggers = "triggers" if fault.triggers else "does not trigger"
            yield Text.assemble("  ", path_text(fault.bundle), f"  {triggers}")
        accused = Counter(p.accused for p in self.record.programs if p.fault == fault.number and p.accused)
        if accused:
            said = ", ".join(f"{name} ×{count}" for name, count in accused.most_common(_SHOWN))
            yield Text(f"  passes that the READMEs name: {said}", "dim")
        named = [program.path for program in self.record.programs if program.fault == fault.number]
        for path in named if self.verbose else named[:_SHOWN]:
            yield Text.assemble(("  ", "dim"), path_text(path))
        if len(named) > _SHOWN and not self.verbose:
            yield Text(f"  {len(named) - _SHOWN} more: --verbose", "dim")
        for problem in fault.problems if self.verbose else ():
            yield Text(f"  {problem}", "dim")
        yield Text()

    def _others(self) -> Iterator[Text]:
        """Why programs that are neither right nor of a fault are what they are."""
        problems = {fault.index: fault.problems for fault in self.record.faults if not fault.number}
        reasons: dict[str, Counter[str]] = {}
        for index, program in enumerate(self.record.programs):
            if program.outcome in ("sensitive", "doubtful", "unjudged") and not program.fault:
                why = next(iter(problems.get(index, ())), program.reason)
                reasons.setdefault(program.outcome, Counter())[why] += 1
        for outcome, counts in reasons.items():
            for why, count in counts.most_common(None if self.verbose else _SHOWN):
                yield Text(f"{outcome} {count} ×: {why}", "dim")
