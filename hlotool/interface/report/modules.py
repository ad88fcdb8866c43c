"""The table of modules, grouped by cause, and the table of causes where there are too many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import structs
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.interface.report.causes import is_open, signature_of_row
from hlotool.interface.report.tables import plain_table
from hlotool.interface.report.words import (
    compared_stages,
    distance,
    output_counts,
    row_verdict,
    style_of,
    verdict_text,
)
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import AGREEING, Verdict
from hlotool.runs.records import ModuleRecord

#: Names of one group that are listed.
_LISTED = 4


def same_programs(modules: Sequence[ModuleRecord]) -> list[list[int]]:
    """Positions of the records, those of the same programs under several names together."""
    found: dict[tuple[str, str | None, str | None], list[int]] = {}
    for number, module in enumerate(modules):
        key = module.twin_of or module.path, module.stage_tested, module.tested
        found.setdefault(key, []).append(number)
    return list(found.values())


def without_twins(modules: Sequence[ModuleRecord]) -> tuple[list[ModuleRecord], list[Text]]:
    """Of the same programs under several names the first, called `NAME ×512`, and where the others are."""
    firsts, where = [], []
    for first, *others in ([modules[n] for n in same] for same in same_programs(modules)):
        if others:
            names = [module.name for module in others]
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            counted = f"{first.name} ×{1 + len(others)}"
            where.append(Text(f"{counted}: also {', '.join(names[:_LISTED])}{more}", "dim"))
            first = structs.replace(first, name=counted)
        firsts.append(first)
    return firsts, where


def module_table(modules: Sequence[ModuleRecord]) -> Table:
    """One line per record, the worst last, because people look at the end of the screen."""
    stages = {compared_stages(module) for module in modules}
    columns = [column for column in _COLUMNS if column.name != "tested" or len(stages) > 1]
    table = plain_table()
    rows = [[column.cell(module) for column in columns] for module in worst_last(modules)]
    for i, column in enumerate(columns):
        widest = max(len(column.name), *(row[i].cell_len for row in rows))
        table.add_column(
            column.name,
            justify=column.justify,
            no_wrap=not column.shrinks,
            overflow="ellipsis",
            # Only names and stages give way when the terminal is narrow.
            min_width=None if column.shrinks else widest,
        )
    for row in rows:
        table.add_row(*row)
    return table


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    cell: Callable[[ModuleRecord], Text]
    justify: Literal["left", "right"] = "left"
    shrinks: bool = False


_COLUMNS = (
    _Column("verdict", lambda module: Text(*row_verdict(module))),
    _Column("module", lambda module: Text(module.name), shrinks=True),
    _Column("tested", lambda module: Text(compared_stages(module), "dim"), shrinks=True),
    _Column("outputs", lambda module: Text(_agreeing_outputs(module)), "right"),
    _Column("difference", lambda module: Text(distance(module), style_of(module.verdict))),
    _Column("seconds", lambda module: Text(f"{module.seconds:.2f}", "dim"), "right"),
)


def worst_last(modules: Sequence[ModuleRecord]) -> list[ModuleRecord]:
    """By verdict; modules of one verdict keep their order."""
    return sorted(modules, key=lambda module: module.verdict.rank)


def _agreeing_outputs(module: ModuleRecord) -> str:
    if not module.leaves:
        return str(len(module.outputs)) if module.outputs else ""
    good = sum(leaf.verdict in AGREEING for leaf in module.leaves)
    return f"{good}/{len(module.leaves)}"


@dataclass(frozen=True, slots=True)
class Group:
    """Records that have the same cause."""

    verdict: Verdict
    reason: str
    modules: Sequence[ModuleRecord]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = ", ".join(module.name for module in self.modules[:_LISTED])
        if (more := len(self.modules) - _LISTED) > 0:
            names += f" and {more} more"
        count = f" ×{len(self.modules)}" if len(self.modules) > 1 else ""
        yield Text.assemble((f"{verdict_text(self.verdict)}{count}", style_of(self.verdict)), f"  {names}")
        yield Padding(Text(self.reason, "dim"), (0, 0, 0, 2))
        counts = dict.fromkeys(filter(None, map(output_counts, self.modules)))
        yield from (Padding(Text(line, "dim"), (0, 0, 0, 2)) for line in list(counts)[:_LISTED])


def groups(modules: Sequence[ModuleRecord]) -> list[Group]:
    """The records that do not agree, those of one cause together, the worst last."""
    found: dict[Signature, list[ModuleRecord]] = {}
    for module in worst_last(modules):
        if is_open(module):
            found.setdefault(signature_of_row(module), []).append(module)
    return [Group(alike[0].verdict, alike[0].reason, alike) for alike in found.values()]
