"""The reports of `bisect`, `repro verify`, `exec`, `reduce` and `extract` for people.

Each culprit is shown with spot, values and reasons; of `exec`, what `run` says, what `bisect` says, and how
the program ended.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.blame.bisection.records import BisectedModule, CulpritRecord, FlagsRecord, Verification
from hlotool.interface.report.command_records import (
    BisectRecord,
    ExecRecord,
    ExtractRecord,
    ReduceRecord,
    VerifyRecord,
)
from hlotool.interface.report.compiled import CompileReport
from hlotool.interface.report.console import Report, cut, facts, next_line, path_text, plain_table
from hlotool.interface.report.evidence import scale_facts
from hlotool.interface.report.finding import quoted_source, what_became
from hlotool.interface.report.leaf import leaf_diff, source_facts
from hlotool.interface.report.located import device_facts
from hlotool.interface.report.next_command import (
    command_after_bisect,
    command_after_death,
    command_after_reduce,
)
from hlotool.interface.report.terminal import RunReport
from hlotool.interface.report.words import LOOKS, not_in_a_dump, plural, seconds, style_of
from hlotool.judge.verdicts import DIFFERING, Verdict
from hlotool.runs.options.kept import RunOptions

#: Lines of a program that are shown unless everything is asked for.
_LINES = 30
#: Names of instructions and modules shown, likewise.
_NAMES = 6

_LEVELS = {
    "pass": "pass",
    "codegen": "code generation",
    "runtime-library": "run-time library",
    "flaky": "flaky",
}


class BisectReport(Report[BisectRecord]):
    """A whole bisection: culprits, what could not be judged, totals, the next command.

    When quiet, only the culprits in one line each.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.flags:
            for one in record.flags:
                yield from _of_flags(one)
            judged = plural(sum(one.judged for one in record.flags), "compilation")
            yield Text(f"{plural(len(record.flags), 'module')} · {judged} · {seconds(record.seconds)}", "dim")
            if command := command_after_bisect(record):
                yield next_line(command)
            return
        for number, culprit in enumerate(record.culprits, start=1):
            yield _headline(culprit, number, len(record.culprits))
            if not self.quiet:
                yield from _details(culprit, self.verbose)
                yield Text("")
        if not self.quiet:
            yield from _histories(record.modules)
            yield from _silent(record.modules, self.verbose)
        yield self._totals()
        if unknown := _left_open(record.options):
            yield Text(unknown, "dim")
        if record.stages_only and not record.culprits and not self.quiet:
            yield Text(f"{not_in_a_dump(m.name for m in record.modules)} --backend xla", "dim")
        if command := command_after_bisect(record):
            yield next_line(command)

    def _totals(self) -> Text:
        record = self.record
        text = Text.assemble((f"{plural(len(record.culprits), 'culprit')}", "bold"))
        text.append(f" · {plural(len(record.healthy), 'healthy module')}")
        text.append(f" · {plural(record.comparisons, 'comparison')} · {seconds(record.seconds)}", "dim")
        if record.unusable:
            text.append(f" · {plural(record.unusable, 'step')} without an answer", "yellow")
        if record.interrupted:
            text.append("\ninterrupted; run the same command again to resume", "yellow")
        return text


def _of_flags(found: FlagsRecord) -> Iterator[Text]:
    """With which flags a module is wrong, or which make it right."""
    sign, style = LOOKS[found.verdict]
    given = f" with {', '.join(found.given)}" if found.given else " without any flag"
    yield Text.assemble((f"{sign} {found.verdict.value}", style), f"  {found.module}{given}: {found.reason}")
    for flags in found.wrong_with:
        if flags:
            yield Text(
                f"  wrong with {' and '.join(flags)} alone, and not with less: a second run agrees", "bold"
            )
        elif found.given:
            yield Text("  wrong without any of these flags, too")
    for flags in found.right_with:
        yield Text(f"  right with {' and '.join(flags)}")
    if found.wrong_with == [[]] and not found.right_with:
        yield Text("  no single flag makes it right", "yellow")
    if found.refused:
        yield Text(f"  not known to {found.backend}: {', '.join(found.refused)}", "yellow")


def _left_open(options: RunOptions) -> str:
    """What stands in for things that the dump leaves open, all stages alike; empty where nothing does."""
    parts = []
    if options.elided == "generate":
        parts.append("constants whose values the dump leaves out are generated")
    if options.opaque:
        parts.append("custom calls are replaced by stand-ins (no public semantics)")
    return f"assumes: {', and '.join(parts)}, the same in every stage" if parts else ""


#: In place of a pass that is not known.
_NO_PASS = "unknown: the dump has no per-pass files (add --xla_dump_hlo_pass_re=.*)"


def _headline(culprit: CulpritRecord, number: int, total: int) -> Text:
    counter = f"culprit {number} of {total}  " if total > 1 else ""
    text = Text.assemble(("✗ ", "bold red"), counter, (_LEVELS[culprit.level], "bold"))
    if culprit.level == "pass":
        text.append(f" {culprit.pass_name or _NO_PASS}", "bold red")
    if not culprit.confirmed:
        text.append("  not confirmed: a second run gave another result", "yellow")
    return text


def _details(culprit: CulpritRecord, verbose: bool) -> Iterator[RenderableType]:
    if culprit.spot is not None and culprit.spot.divergence is not None:
        yield Padding(Text(what_became(culprit.spot.divergence), "bold"), (0, 0, 0, 2))
    if culprit.source is not None:
        yield from (Padding(line, (0, 0, 0, 4)) for line in quoted_source(culprit.source))
    yield Padding(facts(_facts(culprit, verbose)), (0, 0, 0, 2))
    yield from (Padding(part, (1, 0, 0, 2)) for part in _spot(culprit, verbose))
    yield from (Padding(part, (1, 0, 0, 2)) for part in _values(culprit, verbose))
    yield Padding(Text("why"), (1, 0, 0, 2))
    yield from (Padding(Text(f"- {line}"), (0, 0, 0, 4)) for line in culprit.evidence)


def _facts(culprit: CulpritRecord, verbose: bool) -> Iterator[tuple[str, str | Text]]:
    yield "module", culprit.module
    if culprit.others:
        yield "", f"and {_listed(culprit.others, verbose)}, which fail in the same way"
    if culprit.comparison is not None and culprit.comparison.scaled is not None:
        yield from scale_facts(culprit.comparison.scaled, verbose)
    if culprit.pipeline:
        yield "pipeline", culprit.pipeline
    yield "last good", culprit.stage_before
    yield "first bad", culprit.stage
    if len(culprit.candidates) > 1:
        names = dict.fromkeys(c.name for c in culprit.candidates if c.name)
        yield "or", f"{', '.join(names)}: stages in between could not be judged"
    if culprit.source is not None:
        operation, (_, instruction) = culprit.source.op_name, [*source_facts(culprit.source)][-1]
        yield from [("operation", operation)] if operation and verbose else []
        yield "instruction", instruction
    if culprit.instructions:
        yield "changed", _listed([f"%{name}" for name in reversed(culprit.instructions)], verbose)
    if culprit.spot and culprit.spot.inside:
        yield "", f"%{culprit.spot.inside} of its scalar computation is not as it was"
    yield from (("" if number else "inside", part) for number, part in enumerate(culprit.place))
    if culprit.spot and culprit.spot.divergence:
        yield from device_facts(culprit.spot.divergence)
    yield "failure", culprit.signature
    if culprit.trigger is not None:
        yield "compiler", culprit.trigger.summary
    if culprit.repro:
        yield "repro", path_text(culprit.repro)


def _listed(names: list[str], verbose: bool) -> str:
    shown = names if verbose else names[:_NAMES]
    more = f", … ({len(names)})" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


def _spot(culprit: CulpritRecord, verbose: bool) -> Iterator[RenderableType]:
    """The HLO of the spot: both sides, or the one kernel."""
    spot = culprit.spot
    if spot is None or not spot.after:
        return
    if spot.before:
        table = plain_table(3)
        table.add_column("before", overflow="fold", ratio=1)
        table.add_column("after", overflow="fold", ratio=1)
        table.add_row(Text(_body(spot.before, verbose)), Text(_body(spot.after, verbose)))
        yield table
    else:
        yield Text(f"the kernel\n{_body(spot.after, verbose)}")
    if culprit.minimal:
        yield Text(f"the smallest program that fails in the same way\n{_body(culprit.minimal, verbose)}")


def _body(text: str, verbose: bool) -> str:
    """A module without its header, cut where it is long."""
    _, _, rest = text.partition("\n")
    return cut(rest.strip("\n").splitlines(), None if verbose else _LINES)


def _values(culprit: CulpritRecord, verbose: bool) -> Iterator[RenderableType]:
    own = culprit.spot.comparison if culprit.spot else None
    row = own or culprit.comparison
    wrong = [leaf for leaf in row.leaves if leaf.verdict in DIFFERING] if row else []
    shown = wrong if verbose else wrong[:1]
    yield from (leaf_diff(leaf, verbose=verbose, is_located=True) for leaf in shown)


def _histories(modules: list[BisectedModule]) -> Iterator[RenderableType]:
    """Histories that turn more than once, and stages that could not be judged."""
    for module in modules:
        if not module.is_monotonic:
            yield Text(f"{module.name}: a fault was made and repaired on the way:", "yellow")
            yield from (Padding(Text(turn), (0, 0, 0, 2)) for turn in module.history)


def _silent(modules: list[BisectedModule], verbose: bool) -> Iterator[RenderableType]:
    """Modules of which nothing is said."""
    silent = [module for module in modules if not module.culprits]
    for module in silent if verbose else silent[:_NAMES]:
        style = style_of(Verdict.NOT_COMPILED) if module.verdict == Verdict.NOT_COMPILED.value else "dim"
        yield Text(f"{module.name}: {module.verdict}, {module.reason}", style)
    if len(silent) > _NAMES and not verbose:
        yield Text(f"and {len(silent) - _NAMES} more modules undecided", "dim")


class VerifyReport(Report[VerifyRecord]):
    """What became of each bundle."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for bundle in self.record.bundles:
            yield _verified(bundle)
            yield Padding(Text(bundle.title), (0, 0, 0, 2))
            yield Padding(Text(f"{bundle.found or 'now'}: {bundle.reason}", "dim"), (0, 0, 0, 2))
            if bundle.compared and bundle.fails is not None:
                yield Padding(Text(f"compared: {bundle.compared}", "dim"), (0, 0, 0, 2))
            if bundle.fails and not bundle.same:
                yield Padding(Text(f"when it was made: {bundle.expected}", "dim"), (0, 0, 0, 2))
            if self.verbose and bundle.comparison is not None:
                wrong = [leaf for leaf in bundle.comparison.leaves if leaf.verdict in DIFFERING]
                yield from (Padding(leaf_diff(leaf), (1, 0, 0, 2)) for leaf in wrong)


def _verified(bundle: Verification) -> Text:
    if bundle.fails is None:
        return Text.assemble(("? ", "yellow"), (bundle.folder, "bold"), "  nothing could be compared")
    if not bundle.fails:
        return Text.assemble(("✓ ", "green"), (bundle.folder, "bold"), "  does not fail any more")
    words = "still fails, in the same way" if bundle.same else "fails, but in another way"
    return Text.assemble(("✗ ", "bold red"), (bundle.folder, "bold"), f"  {words}")


#: Events listed unless everything is asked for: the first ones.
_EVENTS = 12


class ExecReport(Report[ExecRecord]):
    """The program in one line, and the reports of what was done with its dump."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._program()
        yield from self._events()
        yield Text("")
        yield from self._replays()
        if self.record.bisect is not None:
            yield Text("")
            yield BisectReport(self.record.bisect, self.quiet, self.verbose)
        if self.record.compiled is not None:
            yield Text("")
            yield CompileReport(self.record.compiled, self.quiet, self.verbose)

    def _program(self) -> Text:
        program = self.record.program
        processes = len(program.processes)
        parts = [
            ended(program.status),
            seconds(program.seconds),
            *([f"{processes} processes"] if processes > 1 else []),
            *([f"dump in {self.record.dump}"] if self.record.dump else []),
        ]
        style = "" if program.status == 0 else "yellow"
        return Text.assemble((f"{shlex.join(program.command)}: ", "bold"), (" · ".join(parts), style))

    def _events(self) -> Iterator[Text]:
        """What `--keep-when` found; of the many of `every` only how many there are of each verdict."""
        listed = [event for event in self.record.events if self.verbose or event.output]
        shown = listed if self.verbose else listed[:_EVENTS]
        for event in shown:
            style = "yellow" if event.verdict is None else style_of(event.verdict)
            yield Text.assemble((str(event), "bold"), "  ", (event.meaning, style))
        if hidden := len(listed) - len(shown):
            yield Text(f"{plural(hidden, 'more event')}, shown by --verbose", "dim")
        if not self.verbose:
            samples = Counter((e.condition, e.module, e.meaning) for e in self.record.events if not e.output)
            yield from (
                Text(f"{condition} in {module}: {plural(count, 'execution')}, {meaning}", "dim")
                for (condition, module, meaning), count in samples.items()
            )

    def _replays(self) -> Iterator[RenderableType]:
        run = self.record.run
        if not run.modules:
            yield Text("nothing to compare: it compiled no program that was dumped", "yellow")
            return
        report = RunReport(run, self.quiet, self.verbose)
        yield from report.findings()
        if self.record.bisect is not None:
            return
        if any(module.verdict in DIFFERING for module in run.modules):
            yield next_line(shlex.join(["hlotool", "exec", "--bisect", "--", *self.record.program.command]))
        elif command := self._after_death() or report.next_command():
            yield next_line(command)

    def _after_death(self) -> str:
        """A program whose compilation killed the process made small, by the XLA that died of it."""
        dead = [row for row in self.record.run.modules if row.verdict is Verdict.NOT_COMPILED]
        if not dead:
            return ""
        folder = os.path.basename(os.path.dirname(dead[-1].path))
        processes = self.record.program.processes
        pythons = [p.command[0] for p in processes if folder.endswith(f"_{p.pid}") and p.command]
        backend = f"xla:python={pythons[0]}" if pythons and os.path.isabs(pythons[0]) else "xla"
        return command_after_death(dead[-1].path, backend)


def ended(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


#: Lines of a program that are shown unless everything is asked for.
_REDUCE_LINES = 40


class ReduceReport(Report[ReduceRecord]):
    """What is left of a program, how it fails, and where it lies."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.interrupted:
            yield Text("interrupted; run the same command again to resume", "yellow")
            return
        sizes = f"{record.instructions_before} → {plural(record.instructions_after, 'instruction')}"
        yield Text.assemble(("✗ ", "bold red"), (sizes, "bold"), f"  {record.failure}")
        yield Padding(facts(_reduce_facts(record)), (0, 0, 1, 2))
        program = record.program.strip().splitlines()
        yield Padding(Text(cut(program, None if self.verbose else _REDUCE_LINES)), (0, 0, 1, 2))
        yield Text(f"{plural(record.programs_judged, 'program')} judged · {seconds(record.seconds)}", "dim")
        if command := command_after_reduce(record):
            yield next_line(command)


def _reduce_facts(record: ReduceRecord) -> Iterator[tuple[str, str | Text]]:
    yield "reason", record.reason
    if record.failure_rate is not None:
        yield "flaky", f"the original fails in {100 * record.failure_rate:.3g} % of its runs"
    if record.inputs is not None:
        yield "inputs", f"{record.inputs.description}, then simplified"
    if record.output:
        yield "program", path_text(record.output)
    if record.passing:
        yield "passes", path_text(record.passing)
    if record.repro:
        yield "repro", path_text(record.repro)


class ExtractReport(Report[ExtractRecord]):
    """The command that runs what was cut out; the program where it is in no file, or when verbose."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if self.verbose or not record.output:
            yield Text(record.program)
        if record.output:
            given = ["--inputs", record.inputs_file] if record.inputs_file else []
            yield next_line(shlex.join(["hlotool", "run", record.output, *given]))
