"""The report of `hlotool inspect`: functions, a single module in detail, or launches of kernels.

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
)
from hlotool.interface.report.command_records import InspectRecord
from hlotool.interface.report.inspect_module import module_report
from hlotool.interface.report.tables import Report, place_text, plain_table
from hlotool.interface.report.words import amount, plural, seconds
from hlotool.system.user_input import size_text


@group()
def kernels_report(found: KernelsInfo, quiet: bool = False) -> RenderResult:
    """A program as kernels; `quiet` leaves out the sources."""
    yield Text.assemble(("kernels of ", "dim"), (found.file, "bold"))
    for part in _parts(found, quiet):
        yield Padding(part, (0, 0, 0, 2))


def _parts(found: KernelsInfo, quiet: bool) -> Iterator[RenderableType]:
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
            table.add_row(*first, *_numbers(kernels[name]))
    return table


def _instruction(launch: LaunchInfo) -> str:
    fused = f" ({len(launch.fused)} fused)" if launch.fused else ""
    return f"{launch.source.opcode} %{launch.source.instruction}{fused}"


def _numbers(kernel: KernelInfo) -> Iterator[str]:
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
_LISTED = 40


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
        kernels = [module.kernels for module in modules if module.kernels is not None]
        yield from (kernels_report(found, quiet=self.quiet) for found in kernels)

    def _failures(self) -> Iterator[Text]:
        failures = _all_failures(self.record)
        shown = failures if self.verbose else failures[:_LISTED]
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
    shown = rows if verbose else rows[:_LISTED]
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
