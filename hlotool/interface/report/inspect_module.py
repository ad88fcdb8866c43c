"""Everything that is counted in one module: its stages side by side, then the last one in detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType, RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.checks.records import ModuleInfo, StageInfo, TrafficInfo
from hlotool.interface.report.tables import facts, place_text, plain_table
from hlotool.interface.report.words import amount, plural
from hlotool.judge.records import output_name
from hlotool.system.user_input import size_text

#: Opcodes, parameters, results and stages that are listed unless everything is asked for.
_LISTED = 12
#: Busy instructions, likewise.
_BUSY = 5


@group()
def module_report(module: ModuleInfo, verbose: bool = False) -> RenderResult:
    """One module; `verbose` lists everything."""
    kind = f"{module.frontend} function " if module.frontend else ""
    yield Text.assemble((module.name, "bold"), f"  {kind}{module.function}" if kind else "")
    for part in _parts(module, verbose):
        yield Padding(part, (0, 0, 0, 2))


def _parts(module: ModuleInfo, verbose: bool) -> Iterator[RenderableType]:
    last = module.stages[-1]
    yield facts(_facts(module, verbose))
    yield Text("")
    yield _numbers(module.stages)
    yield Text("")
    yield _opcodes(module.stages, verbose)
    yield Text("")
    yield _signature(last, verbose)
    if last.busiest:
        yield Text("")
        yield _busiest(last, verbose)
    if any((last.loops, last.collectives, last.host_transfers, last.custom_calls)):
        yield Text("")
        yield facts(_special(last, verbose))


def _table(*columns: str, right: int) -> Table:
    """A table whose columns from number `right` on hold numbers."""
    table = plain_table()
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number >= right else "left", overflow="fold")
    return table


def _more(hidden: int, noun: str) -> str:
    return f"… and {plural(hidden, f'more {noun}')} (--verbose)"


def _facts(module: ModuleInfo, verbose: bool) -> Iterator[tuple[str, str | Text]]:
    between = f", {module.passes} of them between passes" if module.passes else ""
    yield "stages", f"{len(module.labels)}{between}"
    if verbose:
        yield from (("", Text(label, "dim")) for label in module.labels)
    if module.captures:
        yield "captured", plural(module.captures, "execution")
    yield from (("" if number else "files", stage.file) for number, stage in enumerate(module.stages))


def _numbers(stages: Sequence[StageInfo]) -> Table:
    table = _table("", *(stage.label for stage in stages), right=1)
    for name, values in _number_rows(stages):
        if any(value not in ("0", "0 B", "") for value in values):
            table.add_row(Text(name, "dim"), *values)
    return table


def _number_rows(stages: Sequence[StageInfo]) -> Iterator[tuple[str, list[str]]]:
    yield "instructions", [str(stage.instructions) for stage in stages]
    yield "computations", [str(stage.computations) for stage in stages]
    yield "fusions", [str(stage.fusions) for stage in stages]
    yield "devices", [_devices(stage) for stage in stages]
    yield "flops", [amount(stage.costs.flops) for stage in stages]
    yield "transcendentals", [amount(stage.costs.transcendentals) for stage in stages]
    yield "bytes accessed", [size_text(stage.costs.bytes_accessed) for stage in stages]
    if any(stage.costs != stage.costs_with_loops for stage in stages):
        yield "… in all iterations", [_with_loops(stage) for stage in stages]
    yield "arguments", [size_text(stage.memory.arguments) for stage in stages]
    yield "results", [size_text(stage.memory.results) for stage in stages]
    yield "constants", [size_text(stage.memory.constants) for stage in stages]
    yield "peak memory, about", [size_text(stage.memory.peak) for stage in stages]
    yield "allocated by XLA", [_allocated(stage) for stage in stages]
    yield "unknown custom calls", [str(stage.costs.unknown) for stage in stages]


def _devices(stage: StageInfo) -> str:
    counts = (stage.replicas, "replica"), (stage.partitions, "partition")
    return " × ".join(plural(count, noun) for count, noun in counts if count > 1)


def _with_loops(stage: StageInfo) -> str:
    """Flops and bytes; empty where there is no loop that repeats."""
    costs = stage.costs_with_loops
    return "" if costs == stage.costs else f"{amount(costs.flops)} flops, {size_text(costs.bytes_accessed)}"


def _allocated(stage: StageInfo) -> str:
    return "" if stage.memory.allocated is None else size_text(stage.memory.allocated)


def _opcodes(stages: Sequence[StageInfo], verbose: bool) -> Table:
    table = _table("opcode", *(stage.label for stage in stages), right=1)
    frequent = sorted(
        dict.fromkeys(opcode for stage in reversed(stages) for opcode in stage.opcodes),
        key=lambda opcode: -max(stage.opcodes.get(opcode, 0) for stage in stages),
    )
    shown = frequent if verbose else frequent[:_LISTED]
    for opcode in shown:
        table.add_row(opcode, *(str(stage.opcodes.get(opcode, "·")) for stage in stages))
    if len(shown) < len(frequent):
        table.add_row(Text(_more(len(frequent) - len(shown), "opcode"), "dim"))
    return table


def _signature(stage: StageInfo, verbose: bool) -> Table:
    table = _table("", "shape", "", "bytes", right=3)
    parameters = stage.parameters if verbose else stage.parameters[:_LISTED]
    for parameter in parameters:
        note = "donated" if parameter.donated else ""
        table.add_row(
            Text.assemble((f"{parameter.number} ", "dim"), parameter.name),
            Text(parameter.shape),
            Text(note, "dim"),
            size_text(parameter.bytes),
        )
    if len(parameters) < len(stage.parameters):
        table.add_row(Text(_more(len(stage.parameters) - len(parameters), "parameter"), "dim"))
    results = stage.results if verbose else stage.results[:_LISTED]
    for result in results:
        table.add_row(
            output_name(result.index),
            Text(result.shape),
            place_text(result.source, "dim"),
            size_text(result.bytes),
        )
    if len(results) < len(stage.results):
        table.add_row(Text(_more(len(stage.results) - len(results), "result"), "dim"))
    return table


def _busiest(stage: StageInfo, verbose: bool) -> Table:
    table = _table("most work in", "source", "flops", "bytes accessed", right=2)
    for busy in stage.busiest if verbose else stage.busiest[:_BUSY]:
        table.add_row(
            f"{busy.source.opcode} %{busy.source.instruction}",
            place_text(busy.source, "dim"),
            amount(busy.flops),
            size_text(busy.bytes_accessed),
        )
    return table


def _special(stage: StageInfo, verbose: bool) -> Iterator[tuple[str, str | Text]]:
    loops = stage.loops if verbose else stage.loops[:_LISTED]
    for number, loop in enumerate(loops):
        times = "unknown" if loop.iterations is None else plural(loop.iterations, "iteration")
        line = Text(f"%{loop.source.instruction}: {times}")
        if loop.source.place:
            line.append("  ").append_text(place_text(loop.source))
        yield "" if number else "loops", line
    if len(loops) < len(stage.loops):
        yield "", Text(_more(len(stage.loops) - len(loops), "loop"), "dim")
    for name, rows in (
        ("collectives", stage.collectives),
        ("host transfers", stage.host_transfers),
        ("custom calls", stage.custom_calls),
    ):
        yield from (("" if number else name, _traffic(row)) for number, row in enumerate(rows))


def _traffic(row: TrafficInfo) -> str:
    return f"{row.name} ×{row.count}, {size_text(row.bytes)}"
