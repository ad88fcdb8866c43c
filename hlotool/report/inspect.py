"""The report of `hlotool inspect`: functions, the largest first; a single module in detail."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult, group
from rich.text import Text

from hlotool.amounts import size_text
from hlotool.check.findings import FailedFile
from hlotool.inspect.records import FunctionInfo, ModuleInfo
from hlotool.report.inspect_kernels import kernels_report
from hlotool.report.inspect_module import module_report
from hlotool.report.inspect_records import InspectRecord
from hlotool.report.tables import Report, plain_table
from hlotool.report.words import amount, plural, seconds

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
