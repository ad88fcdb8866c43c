"""The reports of `hlotool bisect`, each culprit with spot, values and reasons, and of `repro verify`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.findings.verdict import DIFFERING, Verdict
from hlotool.replay.options import RunOptions
from hlotool.report.bisect_records import BisectRecord, VerifyRecord
from hlotool.report.divergence import device_facts
from hlotool.report.leaf import leaf_diff, source_facts
from hlotool.report.links import path_text
from hlotool.report.next_command import command_after_bisect
from hlotool.report.scale import scale_facts
from hlotool.report.tables import Report, cut, facts, next_line, plain_table
from hlotool.report.words import NOT_IN_A_DUMP, plural, seconds, style_of
from hlotool.search.bisection.records import BisectedModule, CulpritRecord, Verification

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
            yield Text(f"{NOT_IN_A_DUMP} --backend xla", "dim")
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
            text.append("\ninterrupted; the same command goes on with what is left", "yellow")
        return text


def _left_open(options: RunOptions) -> str:
    """What stands in for things that the dump leaves open, all stages alike; empty where nothing does."""
    parts = []
    if options.elided == "generate":
        parts.append("constants whose values the dump leaves out are generated")
    if options.opaque:
        parts.append("custom calls that nobody else can execute have stand-ins")
    return f"rests on: {', and '.join(parts)}, the same in every stage" if parts else ""


def _headline(culprit: CulpritRecord, number: int, total: int) -> Text:
    counter = f"culprit {number} of {total}  " if total > 1 else ""
    text = Text.assemble(("✗ ", "bold red"), counter, (_LEVELS[culprit.level], "bold"))
    if culprit.level == "pass":
        text.append(f" {culprit.pass_name or 'unknown: no dump tells'}", "bold red")
    if not culprit.confirmed:
        text.append("  not confirmed: asked again, the answer was another", "yellow")
    return text


def _details(culprit: CulpritRecord, verbose: bool) -> Iterator[RenderableType]:
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
    yield "right", culprit.stage_before
    yield "wrong", culprit.stage
    if len(culprit.candidates) > 1:
        names = dict.fromkeys(c.name for c in culprit.candidates if c.name)
        yield "or", f"{', '.join(names)}: stages in between could not be judged"
    if culprit.source is not None:
        yield from source_facts(culprit.source)
    if culprit.instructions:
        yield "to blame", _listed([f"%{name}" for name in reversed(culprit.instructions)], verbose)
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
    yield from map(leaf_diff, wrong if verbose else wrong[:1])


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
        yield Text(f"and {len(silent) - _NAMES} modules more of which nothing can be said", "dim")


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
