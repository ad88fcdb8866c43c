"""The report of `hlotool reduce` for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.report.reduce_records import ReduceRecord
from hlotool.report.words import plural, seconds

#: Lines of a program that are shown unless everything is asked for.
_LINES = 40


@dataclass(frozen=True, slots=True)
class ReduceReport:
    """What is left of a program, how it fails, and where it lies."""

    record: ReduceRecord
    verbose: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.interrupted:
            yield Text("interrupted; the same command goes on with what is left", "yellow")
            return
        sizes = f"{record.instructions_before} → {plural(record.instructions_after, 'instruction')}"
        yield Text.assemble(("✗ ", "bold red"), (sizes, "bold"), f"  {record.failure}")
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in _facts(record):
            grid.add_row(name, Text(value))
        yield Padding(grid, (0, 0, 1, 2))
        yield Padding(Text(_shown(record.program, self.verbose)), (0, 0, 1, 2))
        yield Text(f"{plural(record.programs_judged, 'program')} judged · {seconds(record.seconds)}", "dim")
        if command := _next(record):
            yield Text.assemble(("next: ", "dim"), (command, "bold"), no_wrap=True, overflow="ignore")


def _facts(record: ReduceRecord) -> Iterator[tuple[str, str]]:
    yield "reason", record.reason
    if record.failure_rate is not None:
        yield "flaky", f"the original fails in {100 * record.failure_rate:.3g} % of its runs"
    if record.inputs is not None:
        yield "inputs", f"{record.inputs.description}, then simplified"
    yield "program", record.output
    if record.passing:
        yield "passes", record.passing
    if record.repro:
        yield "repro", record.repro


def _shown(program: str, verbose: bool) -> str:
    lines = program.strip().splitlines()
    if len(lines) > _LINES and not verbose:
        lines = [*lines[:_LINES], f"… {len(lines) - _LINES} lines more"]
    return "\n".join(lines)


def _next(record: ReduceRecord) -> str:
    if record.repro:
        return shlex.join(["hlotool", "repro", "verify", record.repro])
    return shlex.join([*shlex.split(record.check), record.output]) if record.check else ""
