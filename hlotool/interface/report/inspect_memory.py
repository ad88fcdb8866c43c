"""The report of `hlotool inspect --memory`: what is alive at the peak, by line, and what would lower it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType, RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.checks.inspect_records import LiveInfo, PeakInfo, SavingInfo
from hlotool.checks.records import StageInfo
from hlotool.facts.memory_kinds import Change, Kind
from hlotool.interface.report.console import facts, number_table, place_text
from hlotool.interface.report.words import plural
from hlotool.judge.records import output_name
from hlotool.system.user_input import size_text

#: Lines, values of each line, and savings that are listed unless everything is asked for.
_LINES, _VALUES, _SAVINGS = 10, 4, 10
_PLURALS = {
    Kind.ARGUMENT: "arguments",
    Kind.RESULT: "results",
    Kind.CONSTANT: "constants",
    Kind.TEMPORARY: "temporaries",
}


@group()
def memory_report(
    stage: StageInfo, peak: PeakInfo, quiet: bool = False, verbose: bool = False
) -> RenderResult:
    """The peak of a stage; `quiet` leaves out the values, `verbose` lists all of them."""
    yield Text.assemble(("memory of ", "dim"), (stage.file, "bold"))
    yield Padding(facts(_summary(stage, peak)), (0, 0, 0, 2))
    if not quiet:
        for part in _tables(stage, peak, verbose):
            yield Text("")
            yield Padding(part, (0, 0, 0, 2))


def _summary(stage: StageInfo, peak: PeakInfo) -> Iterator[tuple[str, str | Text]]:
    memory = stage.memory
    inside = "".join(f" in %{name}" for name in reversed(peak.within))
    where = Text(f"{size_text(memory.peak)} at {peak.at.opcode} %{peak.at.instruction}{inside}  ")
    if memory.allocated is not None:
        parts = (f"{size_text(size)} of {_PLURALS[kind]}" for kind, size in memory.allocated_for.items())
        yield "allocated by XLA", ": ".join(filter(None, (size_text(memory.allocated), ", ".join(parts))))
    yield "peak, about", where.append_text(place_text(peak.at, "dim"))
    if not stage.scheduled:
        yield "", Text("not scheduled: in the order of the text", "yellow")
    kinds, spaces = Counter[Kind](), Counter[int]()
    for live in peak.live:
        kinds[live.kind] += 0 if live.space else live.bytes
        spaces[live.space] += live.bytes
    for kind in _PLURALS:
        if kinds[kind]:
            yield _PLURALS[kind], f"{size_text(kinds[kind])}, {_share(kinds[kind], stage)}"
    if peak.lost:
        yield "between them", f"{size_text(peak.lost)}, {_share(peak.lost, stage)}"
    for space, held in sorted(spaces.items()):
        if space:
            yield f"memory space {space}", size_text(held)


def _share(size: int, stage: StageInfo) -> str:
    return f"{100 * size / max(1, stage.memory.peak):.3g}%"


def _tables(stage: StageInfo, peak: PeakInfo, verbose: bool) -> Iterator[RenderableType]:
    lines: dict[str, list[LiveInfo]] = {}
    for live in peak.live:
        lines.setdefault(live.source.place, []).append(live)
    groups = sorted(lines.values(), key=lambda lives: -sum(live.bytes for live in lives))
    shown = groups if verbose else groups[:_LINES]
    table = number_table("alive then", "shape", "name", "bytes", "share", right=3)
    for lives in shown:
        total = sum(live.bytes for live in lives)
        place = place_text(lives[0].source) if lives[0].source.place else Text("no line is known")
        counted = sum(live.bytes for live in lives if not live.space)
        share = _share(counted, stage) if counted else ""
        table.add_row(place, "", "", size_text(total), share, style="bold")
        listed = lives if verbose else lives[:_VALUES]
        for live in listed:
            name = live.source.op_name if live.source.op_name != live.source.place else ""
            size = size_text(live.bytes), "" if live.space else _share(live.bytes, stage)
            table.add_row(f"  {_value(live)}", Text(live.shape), Text(name, "dim"), *size)
        if len(listed) < len(lives):
            table.add_row(
                Text(f"  … and {plural(len(lives) - len(listed), 'more value')} (--verbose)", "dim")
            )
    if len(shown) < len(groups):
        table.add_row(Text(f"… and {plural(len(groups) - len(shown), 'more line')} (--verbose)", "dim"))
    yield table
    if peak.savings:
        yield _savings(peak, verbose)


def _savings(peak: PeakInfo, verbose: bool) -> Table:
    table = number_table("would lower it", "source", "frees", "peak then", right=2)
    shown = peak.savings if verbose else peak.savings[:_SAVINGS]
    for saving in shown:
        sizes = size_text(saving.bytes), size_text(saving.peak)
        table.add_row(Text(_advice(saving)), place_text(saving.value.source, "dim"), *sizes)
    if len(shown) < len(peak.savings):
        table.add_row(Text(f"… and {len(peak.savings) - len(shown)} more (--verbose)", "dim"))
    return table


def _advice(saving: SavingInfo) -> str:
    said = f"{saving.change.value} {_value(saving.value)}"
    if saving.change is Change.DONATE:
        return f"{said}: {output_name(saving.result or [])} can lie there"
    return f"{said}: unused for {plural(saving.unused, 'instruction')}"


def _value(live: LiveInfo) -> str:
    index = "".join(f"{{{number}}}" for number in live.index)
    return f"{live.source.opcode} %{live.source.instruction}{index}"
