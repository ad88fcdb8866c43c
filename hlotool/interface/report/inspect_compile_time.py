"""The report of `hlotool inspect --compile-time`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.checks.inspect_records import AlarmInfo, CompileTimeInfo
from hlotool.interface.report.console import number_table, place_text
from hlotool.interface.report.words import plural, seconds
from hlotool.system.user_input import size_text

#: Passes that are listed unless everything is asked for.
_PASSES = 10


@group()
def compile_time_report(name: str, found: CompileTimeInfo, verbose: bool = False) -> RenderResult:
    """Where the time of a compilation went; `verbose` lists all passes."""
    took = f"{seconds(found.seconds)} by the clock of its files" if found.seconds is not None else ""
    grown = f"{found.first} → {plural(found.last, 'instruction')}"
    parts = ", ".join(filter(None, (took, grown)))
    yield Text.assemble(("compilation of ", "dim"), (name, "bold"), f": {parts}")
    if found.unfinished:
        yield Text(f"  {found.unfinished}", "yellow")
    if found.passes:
        yield Padding(_passes(found, verbose), (0, 0, 0, 2))
    for one in found.folded:
        made = f"  {one.by} computed {one.shape} ({size_text(one.bytes)}) from {one.source.opcode}  "
        yield Text(made).append_text(place_text(one.source))
    for loop in found.unrolled:
        yield Text(f"  {loop.by}: {loop.what}  ").append_text(place_text(loop.source))
    if not found.passes:
        yield Text("  no pass was dumped: --xla_dump_hlo_pass_re=.*", "dim")


def _passes(found: CompileTimeInfo, verbose: bool) -> Table:
    timed = found.seconds is not None
    columns = ["pass", *(["time", "share"] if timed else []), "runs", "added", "removed"]
    table = number_table(*columns, right=1)
    for one in found.passes if verbose else found.passes[:_PASSES]:
        share = f"{100 * (one.seconds or 0.0) / (found.seconds or 1.0):.0f} %"
        times = [seconds(one.seconds or 0.0), share] if timed else []
        table.add_row(one.name, *times, str(one.runs), f"+{one.added}", f"-{one.removed}")
    if len(found.passes) > _PASSES and not verbose:
        table.add_row(Text(f"… and {len(found.passes) - _PASSES} more (--verbose)", "dim"))
    return table


def alarm_lines(alarms: Sequence[AlarmInfo]) -> Iterator[Text]:
    """What XLA has complained about, the slowest first."""
    for alarm in sorted(alarms, key=lambda alarm: -alarm.seconds):
        took = seconds(alarm.seconds) if alarm.is_over else f"more than {seconds(alarm.seconds)}"
        of = alarm.instruction or alarm.module
        line = Text.assemble(("! ", "yellow"), f"{alarm.what} took {took}: {of}  ")
        yield line.append_text(place_text(alarm.source)) if alarm.source is not None else line
