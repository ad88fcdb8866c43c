"""The report of `hlotool reduce` for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.report.links import path_text
from hlotool.report.next_command import command_after_reduce
from hlotool.report.reduce_records import ReduceRecord
from hlotool.report.tables import Report, cut, facts, next_line
from hlotool.report.words import plural, seconds

#: Lines of a program that are shown unless everything is asked for.
_LINES = 40


class ReduceReport(Report[ReduceRecord]):
    """What is left of a program, how it fails, and where it lies."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.interrupted:
            yield Text("interrupted; the same command goes on with what is left", "yellow")
            return
        sizes = f"{record.instructions_before} → {plural(record.instructions_after, 'instruction')}"
        yield Text.assemble(("✗ ", "bold red"), (sizes, "bold"), f"  {record.failure}")
        yield Padding(facts(_facts(record)), (0, 0, 1, 2))
        program = record.program.strip().splitlines()
        yield Padding(Text(cut(program, None if self.verbose else _LINES)), (0, 0, 1, 2))
        yield Text(f"{plural(record.programs_judged, 'program')} judged · {seconds(record.seconds)}", "dim")
        if command := command_after_reduce(record):
            yield next_line(command)


def _facts(record: ReduceRecord) -> Iterator[tuple[str, str | Text]]:
    yield "reason", record.reason
    if record.failure_rate is not None:
        yield "flaky", f"the original fails in {100 * record.failure_rate:.3g} % of its runs"
    if record.inputs is not None:
        yield "inputs", f"{record.inputs.description}, then simplified"
    if record.output:
        yield "program", path_text(record.output)
    if record.passing:
        yield "passes", path_text(record.passing)
    if record.repro:
        yield "repro", path_text(record.repro)
