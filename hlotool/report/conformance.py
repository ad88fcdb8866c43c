"""The report of `hlotool conformance`: opcodes by element types, what was allowed, and what failed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from hlotool.ir.types import ElementType
from hlotool.report.conformance_records import (
    STATUSES,
    CellRecord,
    ConformanceRecord,
    Status,
    TrialRecord,
    arguments_file,
)
from hlotool.report.tables import Report, facts, next_line, plain_table
from hlotool.report.words import plural, seconds

#: Sign and style of what became of the trials of a cell; the sign tells them apart where there is no colour.
LOOKS: Final[dict[Status, tuple[str, str]]] = {
    "passed": ("✓", "green"),
    "allowed": ("~", "green"),
    "refused": ("?", "yellow"),
    "crashed": ("!", "magenta"),
    "failed": ("✗", "bold red"),
}

#: Where `--out` in a line to type next leads.
FOLDER: Final = "conformance-failures"

#: Failures that are shown without `--verbose`.
_SHOWN = 10


def columns() -> list[tuple[str, tuple[str, ...]]]:
    """Headings of the table with the element types below each: those of one kind share a column."""
    kinds = list(ElementType)
    groups: list[tuple[str, list[ElementType]]] = [
        ("pred", [t for t in kinds if t is ElementType.PRED]),
        ("s", [t for t in kinds if t.is_signed]),
        ("u", [t for t in kinds if t.is_unsigned]),
        ("f4 f8", [t for t in kinds if t.is_narrow_float and t.bits <= 8]),
        *((t.value, [t]) for t in (ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64)),
        *((t.value, [t]) for t in (ElementType.C64, ElementType.C128)),
    ]
    return [(name, tuple(t.value for t in types)) for name, types in groups]


class ConformanceReport(Report[ConformanceRecord]):
    """What a backend makes of each opcode."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if not record.cells:
            return
        if not self.quiet:
            yield self._matrix()
            yield Text("  ".join(f"{LOOKS[status][0]} {status}" for status in STATUSES), style="dim")
            yield Text("a column of several types shows the worst; --verbose names the types", style="dim")
            yield Text()
            if record.freedoms:
                yield from self._freedoms()
        yield from self._failures()
        if self.verbose and record.refusals:
            yield from self._refusals()
        yield self._totals()
        if command := command_after(record):
            yield next_line(command)

    def _matrix(self) -> Table:
        table = plain_table()
        table.add_column("opcode", no_wrap=True)
        for heading, _ in columns():
            table.add_column(heading, justify="center", no_wrap=True)
        for heading in ("passed", "ulps"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("allowed", overflow="fold")
        rows: dict[str, list[CellRecord]] = {}
        for cell in self.record.cells:
            rows.setdefault(cell.opcode, []).append(cell)
        for opcode, cells in rows.items():
            signs = [self._sign([c for c in cells if c.element_type in types]) for _, types in columns()]
            passed, compared = sum(c.passed for c in cells), sum(c.compared for c in cells)
            ulps = max(cell.ulps for cell in cells)
            names = sorted({name for cell in cells for name in cell.freedoms})
            table.add_row(
                opcode, *signs, f"{passed}/{compared}" if compared else "–", str(ulps or ""), ", ".join(names)
            )
        return table

    def _sign(self, cells: Sequence[CellRecord]) -> Text:
        """The worst of some cells; in full the types that it is about."""
        if not cells:
            return Text()
        worst = max((cell.status for cell in cells), key=STATUSES.index)
        sign, style = LOOKS[worst]
        if self.verbose and len(cells) > 1 and worst != "passed":
            named = [cell.element_type for cell in cells if cell.status == worst]
            return Text(f"{sign} {' '.join(named)}", style=style)
        return Text(sign, style=style)

    def _freedoms(self) -> Iterator[Table | Text]:
        counts = dict.fromkeys(self.record.freedoms, 0)
        for cell in self.record.cells:
            for name, count in cell.freedoms.items():
                counts[name] += count
        yield facts((f"{name} ×{counts[name]}", text) for name, text in self.record.freedoms.items())
        yield Text()

    def _failures(self) -> Iterator[Table | Text]:
        """The smallest of each cell."""
        smallest = set(self.record.smallest)
        chosen = [trial for trial in self.record.failures if trial.name in smallest]
        shown = [trial for trial in chosen if not trial.because]
        if not chosen:
            return
        table = plain_table()
        for title in ("", "opcode", "type", "smallest case", "what is wrong"):
            table.add_column(title, overflow="fold")
        for trial in shown if self.verbose else shown[:_SHOWN]:
            sign, style = LOOKS[trial.status]
            table.add_row(
                Text(sign, style=style), trial.opcode, trial.element_type, _named(trial), _wrong(trial)
            )
        yield table
        if not self.verbose and len(shown) > _SHOWN:
            yield Text(f"{len(shown) - _SHOWN} more opcodes and types: --verbose", style="dim")
        if derived := [trial for trial in chosen if trial.because]:
            named = [f"{t.opcode} {t.element_type} ({', '.join(t.because)})" for t in derived]
            yield Text(f"wrong because of what they hold: {', '.join(named)}", style="dim")
        yield Text()

    def _refusals(self) -> Iterator[Table | Text]:
        reasons: dict[tuple[str, str], list[str]] = {}
        for trial in self.record.refusals:
            reasons.setdefault((trial.opcode, trial.message), []).append(trial.name)
        table = plain_table()
        for title in ("refused", "cases", "why"):
            table.add_column(title, overflow="fold")
        for (opcode, reason), names in reasons.items():
            table.add_row(opcode, str(len(names)), reason)
        yield table
        yield Text()

    def _totals(self) -> Text:
        record = self.record
        parts = [f"{record.counts[status]} {status}" for status in STATUSES if record.counts.get(status)]
        total = sum(record.counts.values())
        where = f"{record.backend_version} on {record.device}" if record.device else record.backend_version
        return Text.assemble(
            (f"{record.backend}: {plural(total, 'case')}", "bold"),
            f": {', '.join(parts)} · {plural(len({c.opcode for c in record.cells}), 'opcode')}, "
            f"{plural(len(record.cells), 'cell')} · {where} · {seconds(record.seconds)}",
        )


def _named(trial: TrialRecord) -> str:
    return trial.name if trial.title.startswith("random") else f"{trial.name} ({trial.title})"


def _wrong(trial: TrialRecord) -> str:
    company = "right alone, wrong in one module with others: " if trial.in_company else ""
    return company + trial.message


def command_after(record: ConformanceRecord) -> str:
    """A complete command line that looks closer at a failure; empty where all is well."""
    trials = {trial.name: trial for trial in record.failures}
    named = [trials[name] for name in record.smallest if name in trials]
    if not named:
        return ""
    first = min(named, key=lambda t: (t.status != "failed", bool(t.because), t.in_company, t.elements))
    if program := record.files.get(first.name):
        return shlex.join(
            ["hlotool", "run", program, "--inputs", arguments_file(program), "--test", record.backend]
        )
    words = ["hlotool", "conformance", "--backend", record.backend, "--only", first.opcode]
    words += ["--types", first.element_type] if first.element_type else []
    words += ["--cases", str(record.cases), "--seed", str(record.seed), "--out", FOLDER]
    return shlex.join(words)
