"""The report of `hlotool compile`: whether programs compile, what they need, what was made of them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.backends.registry import portable
from hlotool.checks.explain.records import MatchRecord
from hlotool.checks.records import StageInfo, TrafficInfo
from hlotool.interface.report.console import Report, facts, next_line, path_text
from hlotool.interface.report.records import CompileRecord
from hlotool.interface.report.terminal import RunReport
from hlotool.interface.report.words import plural, seconds, style_of, verdict_text
from hlotool.judge.verdicts import AGREEING, Verdict
from hlotool.runs.ahead_records import COMPILES, REFUSED, CompiledRecord, SpaceRecord
from hlotool.system.user_input import size_text

#: Warnings that are shown unless everything is asked for.
_SHOWN = 3
#: Programs of which there is nothing to say that have a block each; more of them are told together.
_BLOCKS = 8
#: Of a memory, from where on it is said in yellow, and by program.
_TIGHT = 0.9


class CompileReport(Report[CompileRecord]):
    """A block for each program, one for those that fail alike, what was found when it ran, and the totals.

    Many programs of which there is nothing to say have one block together, unless it is verbose. When quiet,
    only what does not compile or is wrong; when verbose, the rows of the run, too.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        common = _common_warnings(record.programs)
        unremarkable = [] if self.verbose else [p for p in record.programs if _is_unremarkable(p, common)]
        together = unremarkable if len(unremarkable) > _BLOCKS else []
        for alike in _alike(record.programs):
            if alike[0] not in together and (not self.quiet or not _is_fine(alike[0])):
                yield from self._program(alike)
                yield Text("")
        if together and not self.quiet:
            yield from _together(together)
            yield Text("")
        run = record.run
        if run is not None and (self.verbose or any(m.verdict not in AGREEING for m in run.modules)):
            report = RunReport(run, not self.verbose, self.verbose)
            yield from report.findings()
            yield Text("")
        yield self._total()
        if record.dump:
            yield Text.assemble(("dump ", "dim"), path_text(record.dump))
        if run is not None and record.dump and (command := RunReport(run).next_command()):
            yield next_line(command)
        elif refused := [p.path for p in record.programs if p.outcome == REFUSED and not _is_script(p)]:
            yield next_line(shlex.join(["hlotool", "check", refused[0]]))

    def _program(self, alike: Sequence[CompiledRecord]) -> Iterator[RenderableType]:
        program = alike[0]
        is_made = program.outcome == COMPILES
        sign, style = ("✓", "green") if is_made else ("✗", "bold red")
        name = program.name if len(alike) == 1 else plural(len(alike), "program")
        yield Text.assemble((f"{sign} {program.outcome}", style), "  ", (name, "bold"), _took(alike))
        yield Padding(facts(self._facts(program, alike[1:])), (0, 0, 0, 2))

    def _facts(
        self, program: CompiledRecord, others: Sequence[CompiledRecord]
    ) -> Iterator[tuple[str, str | Text]]:
        if others:
            shown = others if self.verbose else others[: _SHOWN - 1]
            more = "" if len(shown) == len(others) else f", … {len(others) - len(shown)} more (--verbose)"
            yield "programs", f"{', '.join(one.name for one in (program, *shown))}{more}"
        if program.compiler:
            yield "by", program.compiler
        if program.error is not None:
            yield "because", Text(program.error.message, "red")
        yield from (("" if n else "memory", _space(space)) for n, space in enumerate(_shown_spaces(program)))
        if program.parts and self.verbose:
            yield (
                "parts",
                ", ".join(f"{n.replace('_', ' ')} {size_text(s)}" for n, s in program.parts.items()),
            )
        yield from _work(program)
        warned = program.warnings if self.verbose else program.warnings[:_SHOWN]
        yield from (("" if n else "warnings", Text(text, "yellow")) for n, text in enumerate(warned))
        if len(warned) < len(program.warnings):
            yield "", Text(f"… and {len(program.warnings) - len(warned)} more (--verbose)", "dim")
        for match in program.explained:
            yield from _explained(match)
        if program.verdict:
            verdict = Verdict(program.verdict)
            why = "" if verdict in AGREEING and not self.verbose else program.reason
            yield "result", Text.assemble((verdict_text(verdict), style_of(verdict)), f"  {why}".rstrip())

    def _total(self) -> Text:
        programs = self.record.programs
        counts = Counter(program.outcome for program in programs)
        parts = [f"{count} {outcome}" for outcome, count in counts.items()]
        verdicts = Counter(program.verdict for program in programs if program.verdict)
        parts += [f"{count} {verdict}" for verdict, count in verdicts.items()]
        target = portable(f"aot:{self.record.target}").removeprefix("aot:")
        heads = f"{plural(len(programs), 'program')} for {target}: {' · '.join(parts) or 'none'}"
        return Text.assemble((heads, "bold"), (f" · {seconds(self.record.seconds)}", "dim"))


def _together(programs: Sequence[CompiledRecord]) -> Iterator[RenderableType]:
    """What is common to programs that compile and agree, and which of them needs most of each memory."""
    most: dict[str, tuple[SpaceRecord, str]] = {}
    for program in programs:
        for space in _shown_spaces(program):
            if space.space not in most or space.used > most[space.space][0].used:
                most[space.space] = space, program.name
    yield Text.assemble(
        ("✓ compiles", "green"),
        "  ",
        (plural(len(programs), "program"), "bold"),
        _took(programs),
        (" (--verbose lists them)", "dim"),
    )
    rows: list[tuple[str, str | Text]] = [
        ("by", by) for by in dict.fromkeys(p.compiler for p in programs) if by
    ]
    rows += [
        ("" if number else "memory", Text.assemble("at most ", _space(space), f", in {name}"))
        for number, (space, name) in enumerate(most.values())
    ]
    warnings = Counter(text for program in programs for text in set(program.warnings))
    rows += [
        ("" if number else "warnings", Text(f"{text} ({plural(count, 'program')})", "yellow"))
        for number, (text, count) in enumerate(warnings.items())
    ]
    yield Padding(facts(rows), (0, 0, 0, 2))


def _took(programs: Sequence[CompiledRecord]) -> tuple[str, str]:
    return f"  {seconds(sum(one.seconds for one in programs))}", "dim"


def _alike(programs: Sequence[CompiledRecord]) -> Iterator[list[CompiledRecord]]:
    """Programs that fail with messages that mean the same together, the others each by itself."""
    groups: dict[object, list[CompiledRecord]] = {}
    for number, program in enumerate(programs):
        key: object = number
        if program.error is not None:
            means = tuple(match.id for match in program.explained)
            key = program.outcome, means or program.error.message
        groups.setdefault(key, []).append(program)
    yield from groups.values()


def _is_fine(program: CompiledRecord) -> bool:
    return program.outcome == COMPILES and (not program.verdict or Verdict(program.verdict) in AGREEING)


def _common_warnings(programs: Sequence[CompiledRecord]) -> set[str]:
    """Those of so many programs that each says nothing of its own by them: of flags, of the machine."""
    counts = Counter(text for program in programs for text in set(program.warnings))
    return {text for text, count in counts.items() if count > _SHOWN}


def _is_unremarkable(program: CompiledRecord, common: set[str]) -> bool:
    """Whether it compiles and agrees, without warnings of its own, and no memory is nearly full."""
    has_room = all(
        space.capacity is None or space.used <= _TIGHT * space.capacity for space in program.memory
    )
    return _is_fine(program) and common.issuperset(program.warnings) and not program.explained and has_room


def _is_script(program: CompiledRecord) -> bool:
    return program.path.rpartition(":")[0].endswith(".py")


def _shown_spaces(program: CompiledRecord) -> list[SpaceRecord]:
    return [space for space in program.memory if space.used]


def _space(space: SpaceRecord) -> Text:
    name = space.space.upper() if space.space in ("hbm", "vmem", "smem") else space.space
    if space.capacity is None:
        return Text(f"{name} {size_text(space.used)}")
    share = space.used / space.capacity
    text = f"{name} {size_text(space.used)} of {size_text(space.capacity)} ({share:.1%})"
    return Text(text, "red" if share > 1 else "yellow" if share > _TIGHT else "")


def _work(program: CompiledRecord) -> Iterator[tuple[str, str]]:
    """What is executed: kernels, collectives, what goes to the host."""
    launches = program.launches
    if launches is not None:
        others = f", {plural(launches.calls, 'other step')}" if launches.calls else ""
        yield (
            "kernels",
            f"{launches.kernels}, {plural(launches.launches, 'launch')[:-1]}es{others}"
            if (launches.launches != 1)
            else f"{launches.kernels}, 1 launch{others}",
        )
    made = program.program
    if made is None:
        return
    yield (
        "program",
        f"{plural(made.instructions, 'instruction')}, {plural(made.fusions, 'fusion')}{_devices(made)}",
    )
    for name, rows in (
        ("collectives", made.collectives),
        ("host", made.host_transfers),
        ("calls", made.custom_calls),
    ):
        if rows:
            yield name, ", ".join(map(_traffic, rows))


def _devices(made: StageInfo) -> str:
    count = made.replicas * made.partitions
    return f", on {count} devices" if count > 1 else ""


def _traffic(row: TrafficInfo) -> str:
    return f"{row.name} ×{row.count} ({size_text(row.bytes)})"


def _explained(match: MatchRecord) -> Iterator[tuple[str, str | Text]]:
    yield "means", Text.assemble((match.id, "bold"), f"  {match.title}")
    yield "", match.cause
    if match.remedy:
        yield "remedy", match.remedy[0]
