"""Reports of the lab's commands: conformance of a backend, a campaign of random programs, planted faults."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from hlotool.interface.report.console import (
    Report,
    facts,
    next_line,
    path_text,
    place_text,
    plain_table,
)
from hlotool.interface.report.lab_records import (
    STATUSES,
    CellRecord,
    ConformanceRecord,
    FaultRecord,
    FuzzRecord,
    MutantRecord,
    MutatedRecord,
    MutateRecord,
    Status,
    TrialRecord,
    arguments_file,
)
from hlotool.interface.report.next_command import command_after_fuzz
from hlotool.interface.report.words import plural, seconds
from hlotool.ir.types import ElementType

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


#: Reasons and problems that are shown without `--verbose`.
_FUZZ_SHOWN = 5


class FuzzReport(Report[FuzzRecord]):
    """What a campaign found."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.interrupted:
            yield Text("interrupted; run the same command again to resume", "yellow")
        for fault in record.faults:
            if fault.status == "new":
                yield from self._fault(fault)
        known = [fault for fault in record.faults if fault.status == "known"]
        if known and not self.quiet:
            yield _known(known)
            yield Text()
        if not self.quiet:
            yield from self._reached()
        yield from self._totals()
        if command := command_after_fuzz(record):
            yield next_line(command)

    def _fault(self, fault: FaultRecord) -> Iterator[Text]:
        cases = f"  {plural(fault.count, 'case')}" if fault.count > 1 else ""
        yield Text.assemble(("✗ ", "bold red"), (f"{fault.number}  {fault.title}", "bold"), cases)
        sizes = f"{fault.before} → {plural(fault.instructions, 'instruction')}"
        triggers = "triggers" if fault.triggers else "does not trigger"
        yield Text(f"  {fault.signature}; {fault.reason}; {sizes}; on {fault.backend}")
        if fault.bundle:
            yield Text.assemble("  ", path_text(fault.bundle), f"  {triggers}")
        else:
            yield Text.assemble("  ", path_text(fault.program))
        for problem in fault.problems if self.verbose else fault.problems[:1]:
            yield Text(f"  {problem}", "dim")

    def _reached(self) -> Iterator[Text]:
        tally = self.record.tally
        opcodes = {word for word in tally.words if " " not in word and ":" not in word and "<" not in word}
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.kinds.items()))
        yield Text(f"{plural(tally.drawn, 'program')}: {kinds or 'none'}")
        yield Text(
            f"{plural(len(opcodes), 'opcode')}, {len(tally.words)} pairs of opcode, type and attribute; "
            f"{len(tally.passes)} passes that changed something"
        )
        if self.verbose and tally.passes:
            yield Text(f"passes: {', '.join(tally.passes)}", "dim")
        for title, reasons in (("refused", tally.refused), ("not judged", tally.unjudged)):
            ordered = sorted(reasons.items(), key=lambda item: -item[1])
            for reason, count in ordered if self.verbose else ordered[:_FUZZ_SHOWN]:
                yield Text(f"  {title} {count} ×: {reason}", "dim")

    def _totals(self) -> Iterator[Text]:
        record = self.record
        statuses: Counter[str] = Counter(fault.status for fault in record.faults)
        parts = [plural(record.distinct, "distinct fault")]
        for status, words in (
            ("known", "known"),
            ("duplicate", "further cases"),
            ("unconfirmed", "not a second time"),
            ("excused", "by rounding"),
        ):
            if statuses[status]:
                parts.append(f"{statuses[status]} {words}")
        if record.pending:
            parts.append(f"{plural(record.pending, 'failure')} not looked into")
        yield Text.assemble(
            (parts[0], "bold"),
            "".join(f" · {part}" for part in parts[1:]),
            f" · {record.rate:.0f} programs a minute · {seconds(record.seconds)}",
        )


def _known(faults: list[FaultRecord]) -> Table:
    table = plain_table()
    for title in ("known", "cases", "report"):
        table.add_column(title, overflow="fold")
    for fault in faults:
        table.add_row(fault.known, str(fault.count), fault.link)
    return table


_FATES = ("killed", "equivalent", "survived")


class MutateReport(Report[MutateRecord]):
    """The score of a program's inputs."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        program = self.record.program
        if program is None:
            return
        if not self.quiet:
            yield _families(program.mutants)
            yield Text()
            yield from self._survivors(program)
        count = self.record.counts
        noticed, open_ = count.get("killed", 0), count.get("survived", 0)
        yield Text.assemble(
            (f"these inputs notice {100 * self.record.score:.0f} % of single faults", "bold"),
            f": {noticed} of {noticed + open_}; {count.get('equivalent', 0)} more change nothing, provably",
            f" · {seconds(self.record.seconds)}",
        )
        sets = program.sets
        named = ", ".join(sets if self.verbose or len(sets) <= _SHOWN else [*sets[:_SHOWN], "…"])
        yield Text(f"{plural(len(sets), 'set')} of inputs: {named}", style="dim")

    def _survivors(self, program: MutatedRecord) -> Iterator[Text | Table]:
        survivors = [mutant for mutant in program.mutants if mutant.fate == "survived"]
        if not survivors:
            return
        table = plain_table()
        for title in ("not noticed", "at", "line of the program"):
            table.add_column(title, overflow="fold")
        for mutant in survivors if self.verbose else survivors[:_SHOWN]:
            source = mutant.source
            excused = f" ({mutant.by})" if mutant.by else ""
            where = f" (line {source.line})" if source.line else ""
            table.add_row(
                mutant.fault + excused, f"{source.opcode} %{source.instruction}{where}", place_text(source)
            )
        yield table
        planted = Text("planted in ", style="dim").append_text(path_text(program.path))
        yield planted.append(f", judged by {program.judged_by}")
        if not self.verbose and len(survivors) > _SHOWN:
            yield Text(f"{len(survivors) - _SHOWN} more: --verbose", style="dim")
        yield Text()


def _families(mutants: list[MutantRecord]) -> Table:
    table = plain_table()
    table.add_column("fault", no_wrap=True)
    for fate in _FATES:
        table.add_column(fate, justify="right")
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants:
        counts.setdefault(mutant.family, Counter())[mutant.fate] += 1
    for family, count in sorted(counts.items()):
        table.add_row(family, *(str(count[fate] or "–") for fate in _FATES))
    return table
