"""The report of `hlotool inspect`: functions, a single module in detail, launches of kernels.

Functions are listed the largest first; of kernels `--kernels` shows launches, resources and sources.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.checks.records import (
    FailedFile,
    FallbackInfo,
    FunctionInfo,
    KernelInfo,
    KernelsInfo,
    LaunchInfo,
    ModuleInfo,
    StageInfo,
    TrafficInfo,
)
from hlotool.interface.report.command_records import InspectRecord
from hlotool.interface.report.console import Report, facts, number_table, place_text, plain_table
from hlotool.interface.report.inspect_compile_time import alarm_lines, compile_time_report
from hlotool.interface.report.inspect_memory import memory_report
from hlotool.interface.report.words import amount, plural, seconds
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
    table = number_table("", *(stage.label for stage in stages), right=1)
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
    yield "unknown calls, sizes", [str(stage.costs.unknown) for stage in stages]


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
    table = number_table("opcode", *(stage.label for stage in stages), right=1)
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
    table = number_table("", "shape", "", "bytes", right=3)
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
    table = number_table("most work in", "source", "flops", "bytes accessed", right=2)
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


@group()
def kernels_report(found: KernelsInfo, quiet: bool = False) -> RenderResult:
    """A program as kernels; `quiet` leaves out the sources."""
    yield Text.assemble(("kernels of ", "dim"), (found.file, "bold"))
    for part in _inspect_parts(found, quiet):
        yield Padding(part, (0, 0, 0, 2))


def _inspect_parts(found: KernelsInfo, quiet: bool) -> Iterator[RenderableType]:
    if found.error is not None:
        yield Text(found.error.message, "yellow")
        return
    yield Text(_summary(found))
    if found.note:
        yield Text(found.note, "yellow")
    if found.fallbacks:
        yield Text(_fallbacks(found.fallbacks), "yellow")
    if libraries := Counter(launch.library for launch in found.launches if launch.library):
        for name, count in libraries.items():
            yield Text(f"{name} takes over {plural(count, 'instruction')} where it is installed")
    if found.launches:
        yield Text("")
        yield _launch_table(found)
    if not quiet:
        users = _users(found.launches)
        for kernel in found.kernels:
            yield Text("")
            yield _source(kernel, users[kernel.name])


def _summary(found: KernelsInfo) -> str:
    launched = sum(len(launch.kernels) for launch in found.launches)
    # Loops run their body's kernels again; the text has them once.
    counts = f"{plural(launched, 'launch')[:-1]}es" if launched != 1 else "1 launch"
    compiled = f", compiled for {found.architecture} by {found.compiler}" if found.compiler else ""
    return f"{counts} of {plural(len(found.kernels), 'kernel')}{compiled}"


def _fallbacks(fallbacks: Sequence[FallbackInfo]) -> str:
    counts = Counter(fallback.source.opcode for fallback in fallbacks)
    names = ", ".join(f"{opcode} ×{count}" for opcode, count in counts.most_common())
    return f"host fallbacks: {names}, {size_text(sum(fallback.bytes for fallback in fallbacks))} moved"


def _launch_table(found: KernelsInfo) -> Table:
    kernels = {kernel.name: kernel for kernel in found.kernels}
    table = plain_table()
    for name in ("instruction", "source", "schedule"):
        table.add_column(name, overflow="fold")
    for name in ("blocks", "read", "written", "registers", "spilled", "shared"):
        table.add_column(name, justify="right", no_wrap=True)
    for launch in found.launches:
        for number, name in enumerate(launch.kernels):
            first = ("", Text()) if number else (_instruction(launch), place_text(launch.source, "dim"))
            table.add_row(*first, *_inspect_numbers(kernels[name]))
    return table


def _instruction(launch: LaunchInfo) -> str:
    fused = f" ({len(launch.fused)} fused)" if launch.fused else ""
    return f"{launch.source.opcode} %{launch.source.instruction}{fused}"


def _inspect_numbers(kernel: KernelInfo) -> Iterator[str]:
    yield kernel.schedule
    yield str(kernel.blocks)
    yield size_text(kernel.bytes_read)
    yield size_text(kernel.bytes_written)
    taken = kernel.resources
    if taken is None:
        yield from ("–", "–", "–")
        return
    yield str(taken.registers)
    yield size_text(taken.spill_stores + taken.spill_loads)
    yield size_text(taken.shared)


def _users(launches: Sequence[LaunchInfo]) -> dict[str, list[LaunchInfo]]:
    users: dict[str, list[LaunchInfo]] = {}
    for launch in launches:
        for name in launch.kernels:
            users.setdefault(name, []).append(launch)
    return users


@group()
def _source(kernel: KernelInfo, users: Sequence[LaunchInfo]) -> RenderResult:
    """A kernel's source below a head of comments that says where it comes from and what it works on."""
    for line in _head(kernel, users):
        yield Text(f"// {line}", "dim", overflow="fold")
    yield Text(kernel.source.rstrip("\n"), overflow="fold")


def _head(kernel: KernelInfo, users: Sequence[LaunchInfo]) -> Iterator[str]:
    for user in users:
        names = " ".join(filter(None, (_instruction(user), user.source.op_name, user.source.user_line)))
        yield names + (f": {', '.join(user.fused)}" if user.fused else "")
    grid = f"{plural(kernel.blocks, 'block')} of {kernel.threads} threads"
    moved = f"reads {size_text(kernel.bytes_read)}, writes {size_text(kernel.bytes_written)}"
    yield f"{kernel.schedule}: {grid}, {moved}"
    if kernel.resources is not None:
        taken = kernel.resources
        yield (
            f"{taken.registers} registers, {size_text(taken.spill_stores)} spilled, "
            f"{size_text(taken.stack)} stack, {size_text(taken.shared)} shared"
        )
    yield from (f"p{number} = {text}" for number, text in enumerate(kernel.reads))
    yield from (f"out{number} = {text}" for number, text in enumerate(kernel.writes))


#: Functions, and files that cannot be read, that are listed unless everything is asked for.
_INSPECT_LISTED = 40


class InspectReport(Report[InspectRecord]):
    """Functions, then modules in detail where there is one or all are asked for, then totals.

    When quiet, without details; when verbose, with everything of every module.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in self._parts():
            yield part
            yield Text("")
        yield from self._failures()
        yield self._totals()

    def _parts(self) -> Iterator[RenderableType]:
        modules = self.record.modules
        if len(modules) > 1:
            yield _functions(self.record, self.verbose)
        if not self.quiet and (len(modules) == 1 or self.verbose):
            yield from (module_report(module, self.verbose) for module in modules if module.stages)
        for stage in (stage for module in modules for stage in module.stages):
            if (peak := stage.memory.at_peak) is not None:
                yield memory_report(stage, peak, self.quiet, self.verbose)
        for module in modules:
            if module.compile_time is not None:
                yield compile_time_report(module.name, module.compile_time, self.verbose)
        yield from alarm_lines(self.record.alarms)
        kernels = [module.kernels for module in modules if module.kernels is not None]
        yield from (kernels_report(found, quiet=self.quiet) for found in kernels)

    def _failures(self) -> Iterator[Text]:
        failures = _all_failures(self.record)
        shown = failures if self.verbose else failures[:_INSPECT_LISTED]
        yield from map(_failure, shown)
        if len(shown) < len(failures):
            more = plural(len(failures) - len(shown), "more file")
            yield Text(f"! {more} not read (--verbose lists them)", "magenta")

    def _totals(self) -> Text:
        record = self.record
        counts = [
            plural(len(record.functions), "function"),
            plural(len(record.modules), "module"),
            plural(sum(len(module.labels) for module in record.modules), "stage"),
        ]
        failed = len(_all_failures(record))
        counts += [f"{plural(failed, 'file')} could not be read"] if failed else []
        return Text.assemble((", ".join(counts), "bold"), (f" · {seconds(record.seconds)}", "dim"))


def _all_failures(record: InspectRecord) -> list[FailedFile]:
    return [*record.failures, *(failure for module in record.modules for failure in module.failures)]


def _failure(failure: FailedFile) -> Text:
    message = failure.error.message
    where = "" if failure.file in message else f"{failure.file}: "
    return Text.assemble(("! ", "magenta"), f"{where}{message}")


@group()
def _functions(record: InspectRecord, verbose: bool) -> RenderResult:
    """One line per function, with the numbers of its largest program."""
    rows = [(function, _largest(function, record.modules)) for function in record.functions]
    rows.sort(key=lambda row: -_instructions(row[1]))
    shown = rows if verbose else rows[:_INSPECT_LISTED]
    folders = [function.folder for function, _ in rows]
    shared = os.path.commonpath(folders) if len(set(folders)) > 1 else None
    table = plain_table()
    cells = [_cells(function, module) for function, module in shown]
    table.add_column("function", overflow="ellipsis", no_wrap=True)
    for name, column in zip(_COLUMNS, zip(*cells)):
        # Only names give way when the terminal is narrow.
        table.add_column(name, justify="right", min_width=max(map(len, (name, *column))))
    for (function, _), numbers in zip(shown, cells):
        folder = "" if shared is None else f"{function.folder}/".removeprefix(f"{shared}/" if shared else "")
        table.add_row(Text.assemble((folder, "dim"), function.function), *numbers)
    yield table
    if len(shown) < len(rows):
        yield Text(f"{plural(len(rows) - len(shown), 'more function')} (--verbose lists them)", "dim")
    if again := sum(function.compilations > 1 for function, _ in rows):
        command = shlex.join(["hlotool", "check", *record.paths])
        yield Text(f"{plural(again, 'function')} compiled more than once: {command} says why", "dim")


_COLUMNS = ("compiled", "instructions", "fusions", "arguments", "peak memory", "flops", "bytes")


def _largest(function: FunctionInfo, modules: Sequence[ModuleInfo]) -> ModuleInfo:
    return max((modules[number] for number in function.modules), key=_instructions)


def _instructions(module: ModuleInfo) -> int:
    return module.stages[-1].instructions if module.stages else 0


def _cells(function: FunctionInfo, module: ModuleInfo) -> Sequence[str]:
    if not module.stages:
        return _compiled(function), *("–" for _ in _COLUMNS[1:])
    first, last = module.stages[0], module.stages[-1]
    instructions = " → ".join(dict.fromkeys(str(stage.instructions) for stage in (first, last)))
    memory, costs = last.memory, last.costs_with_loops
    return (
        _compiled(function),
        instructions,
        str(last.fusions),
        size_text(memory.arguments),
        size_text(memory.peak),
        amount(costs.flops + costs.transcendentals),
        size_text(costs.bytes_accessed),
    )


def _compiled(function: FunctionInfo) -> str:
    """`3×`, and how many different programs these are, where some are the same."""
    times = f"{function.compilations}×"
    if function.programs in (0, function.compilations):
        return times
    return f"{times} ({plural(function.programs, 'program')})"
