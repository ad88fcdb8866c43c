"""The report of `hlotool run` for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult, group
from rich.padding import Padding
from rich.text import Text

from hlotool.interface.report.baseline import baseline_lines
from hlotool.interface.report.console import Report, facts, next_line, place_text
from hlotool.interface.report.evidence import (
    AnnotatedSource,
    coverages_of,
    coverages_of_tested,
    covered_text,
    never_texts,
)
from hlotool.interface.report.leaf import births_of
from hlotool.interface.report.module import (
    groups,
    happened,
    module_details,
    module_table,
    without_twins,
    worst_last,
)
from hlotool.interface.report.next_command import command_after_run
from hlotool.interface.report.records import CauseRecord, FolderRecord, RunRecord, is_unproved
from hlotool.interface.report.words import (
    is_silent,
    not_in_a_dump,
    plural,
    seconds,
    style_of,
    verdict_text,
)
from hlotool.judge.verdicts import AGREEING, DIFFERING, EXCUSED, Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import REALITY, InputsRecord, ModuleRecord
from hlotool.runs.trials import CAPTURED, NO_RESULT, execution_of

#: Differing modules shown in full unless everything is asked for.
_DETAILED = 3
#: With more rows, what they come from is listed in their place.
_ROWS = 100
#: Groups of failures, or causes, listed, likewise.
_GROUPS = 12
#: Places named of those where something never happened.
_NEVER = 3


class RunReport(Report[RunRecord]):
    """A whole run: table, failures in groups, details of what differs, totals, the next command.

    When quiet, without what agrees; when verbose, with everything of every module.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.findings()
        if command := self.next_command():
            yield next_line(command)

    def next_command(self) -> str:
        """What to type next; empty when nothing failed."""
        return command_after_run(self.record, self.verbose)

    def findings(self) -> Iterator[RenderableType]:
        """Everything but what to type next."""
        for part in self._parts():
            yield part
            yield Text("")
        if self.record.options.coverage:
            yield AnnotatedSource(coverages_of(self.record.modules))
            yield Text("")
        if self.record.options.fp8:
            from hlotool.interface.report.fp8 import float8_lost

            yield from float8_lost(self.record.modules)
        yield self._totals()
        if self.record.baseline is not None:
            yield from (Text(line) for line in baseline_lines(self.record.baseline))
        if not self.quiet:
            yield from (Text(line, "dim") for line in basis_lines(self.record))

    def _parts(self) -> Iterator[RenderableType]:
        modules = self.record.modules
        listed = modules
        if self.quiet:
            listed = [m for m in modules if m.verdict not in AGREEING or m.nothing_but_nan]
        if len(modules) == 1:
            yield from (module_details(module, self.verbose) for module in listed)
            return
        detailed = self._detailed()
        if len(listed) > _ROWS and not self.verbose:
            yield from self._causes(len(listed))
            yield from (module_details(module, self.verbose) for module in detailed)
            return
        if listed:
            distinct, where = (listed, []) if self.verbose else without_twins(listed)
            yield module_table(distinct)
            yield from where
        shown = set(map(id, detailed))
        found = groups([module for module in modules if id(module) not in shown])
        if (hidden := len(found) - _GROUPS) > 0 and not self.verbose:
            yield Text(f"{plural(hidden, 'more group')} of failures, shown by --verbose", "dim")
            found = found[hidden:]
        yield from found
        yield from _weaker([module for module in listed if id(module) not in shown])
        yield from births_of([module for module in listed if id(module) not in shown])
        named = [m for m in listed if id(m) not in shown and m.verdict in AGREEING]
        yield from (Text(what, "dim") for what in happened(leaf for m in named for leaf in m.leaves))
        yield from (module_details(module, self.verbose) for module in detailed)

    def _causes(self, rows: int) -> Iterator[RenderableType]:
        """In place of a very long table: what its rows come from."""
        causes = self.record.causes
        if (hidden := len(causes) - _GROUPS) > 0:
            yield Text(f"{plural(hidden, 'more cause')}, shown by --html FILE", "dim")
            causes = causes[hidden:]
        if causes:
            yield cause_list(causes)
        yield Text(
            f"{rows} rows are not listed here, but in --verbose, and with a search in --html FILE", "dim"
        )

    def _detailed(self) -> Sequence[ModuleRecord]:
        """The records to show in full: all if asked for, else the worst that differ."""
        if self.quiet:
            return []
        ordered = worst_last(self.record.modules)
        if self.verbose:
            return ordered
        ordered = [module for module in ordered if not module.twin_of]
        shown = DIFFERING | {Verdict.DIFFERS}
        return [module for module in ordered if module.verdict in shown][-_DETAILED:]

    def _totals(self) -> Text:
        run = self.record
        text = Text.assemble((f"{plural(len(run.modules), 'result')}: ", "bold"))
        counts = [Text(f"{amount} {name}", style_of(Verdict(name))) for name, amount in run.summary.items()]
        if empty := sum(bool(module.nothing_but_nan) for module in run.modules):
            counts.append(Text(f"{empty} with an output that is all NaN", "yellow"))
        text.append_text(Text(" · ", "dim").join(counts))
        if twins := sum(bool(module.twin_of) for module in run.modules):
            text.append(f" · {len(run.modules) - twins} distinct", "dim")
        text.append(f" · {seconds(run.seconds)}", "dim")
        if run.interrupted:
            text.append("\ninterrupted; the same command goes on with what is left", "yellow")
        return text


def _weaker(modules: Sequence[ModuleRecord]) -> Iterator[Text]:
    """What programs no longer ask of a backend, of those that are not shown in full, each line once."""
    said = {text: module.name for module in reversed(modules) for text in module.weaker}
    for text, name in list(said.items())[:_GROUPS]:
        yield Text(f"weaker in {name}: {text}", "yellow")


def basis_lines(run: RunRecord) -> Iterator[str]:
    """What the agreement rests on, so that it is not over-read."""
    yield from _memory(run)
    yield from _unfinished(run)
    yield from _exactness(run)
    yield from _repeats(run)
    agreeing = [module for module in run.modules if module.verdict in AGREEING]
    if not agreeing:
        yield from _hint(run)
        return
    origins = _origins([module.inputs for module in agreeing if module.inputs])
    backends = sorted({module.reference for module in agreeing if module.reference})
    made = sum(module.generated_constants for module in agreeing)
    calls = sum(module.opaque_calls for module in agreeing)
    unknown = f"; {plural(made, 'generated constant')}" if made else ""
    unknown += f"; stand-ins for {plural(calls, 'opaque call')}" if calls else ""
    coverages = coverages_of(agreeing)
    text = covered_text(coverages, coverages_of_tested(agreeing))
    covers = f"; {text}" if text else ""
    inputs = f"inputs {' and '.join(origins)}{_further_sets(agreeing)}{unknown}"
    yield f"agreement rests on: {inputs}; reference {', '.join(backends)}{covers}"
    if (never := never_texts(coverages)) and not run.options.coverage:
        more = f" … and {len(never) - _NEVER} more lines" if len(never) > _NEVER else ""
        yield f"never: {' · '.join(never[:_NEVER])}{more} (--coverage shows the source)"
    if any(module.verdict is not Verdict.IDENTICAL for module in agreeing):
        yield f"tolerance: {_tolerance(run)}"
    yield from _cancellations(agreeing)
    excused = sum(module.verdict in EXCUSED for module in run.modules)
    if excused:
        yield f"{excused} of {len(run.modules)} differ, and no fault is shown: each row says why"
    compared = AGREEING | DIFFERING | EXCUSED | {Verdict.DIFFERS}
    skipped = sum(module.verdict not in compared for module in run.modules)
    if skipped:
        yield f"nothing is said of {skipped} of {len(run.modules)}: they could not be compared"
    yield from _frontend(run.modules)
    if len(agreeing) == len(run.modules) and not any(map(_is_of_real_code, run.modules)):
        is_captured = any(module.inputs and module.inputs.origin == CAPTURED for module in agreeing)
        yield (
            f"of captured executions no result: {NO_RESULT}"
            if is_captured
            else f"{not_in_a_dump(module.name for module in run.modules)} --test xla"
        )


def _frontend(modules: Sequence[ModuleRecord]) -> Iterator[str]:
    """What is left to look at where all numbers that came from a device are right."""
    real = [module for module in modules if module.stage_tested == REALITY]
    if not real or any(module.verdict not in AGREEING for module in modules):
        return
    sources = [leaf.source for leaf in real[-1].leaves if leaf.source is not None and leaf.source.place]
    where = f" ({sources[-1].place})" if sources else ""
    yield f"XLA computes what this program says: of an unexpected number, see what the frontend wrote{where}"


def _cancellations(agreeing: Sequence[ModuleRecord]) -> Iterator[str]:
    """Of how many outputs rounding alone decides about some elements, because terms cancel."""
    outputs = [leaf for module in agreeing for leaf in module.leaves]
    if count := sum(bool(leaf.evidence and leaf.evidence.cancelled) for leaf in outputs):
        verb = "holds" if count == 1 else "hold"
        yield (
            f"{count} of {plural(len(outputs), 'output')} {verb} what rounding left of terms that cancel, "
            "where there is nothing to judge"
        )


def _memory(run: RunRecord) -> Iterator[str]:
    """Which results are not of this run."""
    if (remembered := run.remembered) is None:
        return
    oldest, newest = remembered.oldest.partition("T")[0], remembered.newest.partition("T")[0]
    when = f"on {oldest}" if oldest == newest else f"from {oldest} to {newest}"
    of_all = f"all {len(run.modules)} results are" if remembered.results == len(run.modules) else ""
    of_some = f"{remembered.results} of {plural(len(run.modules), 'result')}"
    of_some += " is" if remembered.results == 1 else " are"
    yield (
        f"{of_all or of_some} from the verdict cache, found {when} by the same versions and options"
        " (--no-cache replays them)"
    )


def _unfinished(run: RunRecord) -> Iterator[str]:
    """Which verdicts are all that was found in the time."""
    if cut := [module for module in run.modules if module.unfinished]:
        verb = "was" if len(cut) == 1 else "were"
        yield f"{len(cut)} of {len(run.modules)} {verb} not finished after the verdict: {cut[0].unfinished}"


def _further_sets(agreeing: Sequence[ModuleRecord]) -> str:
    """How many sets beside the plain one, and the unusual values of some; `--verbose` names them."""
    counts = [len(module.inputs.sets) for module in agreeing if module.inputs]
    if not any(counts):
        return ""
    number = str(max(counts)) if min(counts) == max(counts) else f"up to {max(counts)}"
    odd = sorted({odd for m in agreeing if m.inputs for one in m.inputs.sets for odd in one.odd})
    words = f" (some with {', '.join(odd)})" if odd else ""
    silent = Counter(
        one.verdict for m in agreeing if m.inputs for one in m.inputs.sets if is_silent(one.verdict)
    )
    if silent:
        kinds = ", ".join(f"{count} {verdict.value}" for verdict, count in silent.most_common())
        words += f", of {silent.total()} of which nothing can be said ({kinds})"
    if cut := sum(bool(module.inputs and module.inputs.sets_cut) for module in agreeing):
        words += f", of {plural(cut, 'module')} as many as the clock allowed"
    return f" and {number} further sets{words}"


def _exactness(run: RunRecord) -> Iterator[str]:
    """What is known, or was demanded and is not known, of programs as functions of real numbers."""
    others = sum(module.verdict is Verdict.DIFFERS for module in run.modules)
    if others:
        yield (
            f"{others} of {len(run.modules)} are other functions of real numbers than they should be, "
            "by less than rounding shows here: a mismatch with --exact"
        )
    unknown = [module for module in run.modules if is_unproved(module)]
    if run.options.exact and unknown:
        why = unknown[0].exact_refusal or f"what was not covered: {unknown[0].exact_gap}"
        yield f"{len(unknown)} of {len(run.modules)} could not be compared exactly: {why}"


def _is_of_real_code(module: ModuleRecord) -> bool:
    """What was judged came from a compiler, and not from the reference that ran another stage."""
    return module.stage_tested == REALITY or module.tested != module.reference


def _origins(inputs: Sequence[InputsRecord]) -> list[str]:
    """Where inputs come from; captured executions are not named one by one, only their numbers, if known."""
    captured = [one for one in inputs if one.origin == CAPTURED]
    numbers = {number for one in captured if (number := execution_of(one))}
    which = (
        f" ({'executions' if len(numbers) > 1 else 'execution'} {', '.join(map(str, sorted(numbers)))})"
        if numbers
        else ""
    )
    others = sorted({one.description for one in inputs if one.origin != CAPTURED})
    return [*([f"captured in the dump{which}"] if captured else []), *others]


def _repeats(run: RunRecord) -> Iterator[str]:
    """Whether results differ from run to run."""
    if repeated := [module.repeated for module in run.modules if module.repeated is not None]:
        count = sum(repeat.results > 1 for repeat in repeated)
        runs = run.options.repeat
        yield f"{runs} runs of each program: the results of {count} of {len(repeated)} differ from run to run"


def _hint(run: RunRecord) -> Iterator[str]:
    """What is missing for a comparison."""
    if run.modules and all(module.verdict is Verdict.NOT_COMPARED for module in run.modules):
        yield "to compare: the whole dump directory, or --inputs and --outputs of an execution"


def _tolerance(run: RunRecord) -> str:
    return "; ".join([_of_all_outputs(run.options), *_of_single_outputs(run.options)])


def _of_single_outputs(options: RunOptions) -> Iterator[str]:
    for name, given in (("rtol", options.output_rtol), ("atol", options.output_atol)):
        yield from (f"--{name} {output}:{value:g}" for output, value in given)
    if options.compare_with is not None:
        yield f"--compare-with {options.compare_with}"


def _of_all_outputs(options: RunOptions) -> str:
    if options.rtol is None and options.atol is None:
        return "a few ulps; further off, other legal executions of the program decide (--verbose shows them)"
    joined = " or " if options.either else " "
    given = f"--rtol {options.rtol or 0:g}{joined}--atol {options.atol or 0:g}"
    return f"{given} for all outputs, set by the user"


# Causes are listed in place of rows where there are more rows than this.

#: Folders of one cause that are named.
_LISTED = 4


@group()
def cause_list(causes: Sequence[CauseRecord]) -> RenderResult:
    """Each cause of a run: how often it shows, where it comes from, the worst example and what to type."""
    for cause in causes:
        verdict = Verdict(cause.kind)
        has_twins = 0 < cause.programs < cause.count
        programs = f" of {plural(cause.programs, 'program')}" if has_twins else ""
        head = f"{verdict_text(verdict)} ×{cause.count}{programs}"
        yield Text.assemble((head, style_of(verdict)), "  ", (cause.what, "bold"))
        yield Padding(facts(_facts(cause)), (0, 0, 1, 2))


def _facts(cause: CauseRecord) -> Iterator[tuple[str, str | Text]]:
    if cause.source is not None and cause.source.place:
        yield "source", place_text(cause.source)
    yield "example", cause.example
    if len(cause.folders) > 1:
        yield "in", _folders(cause.folders)
    if cause.next:
        yield "next", Text(cause.next, no_wrap=True, overflow="ignore")


def _folders(folders: Sequence[FolderRecord]) -> str:
    """Where a cause shows, the place with the most findings first."""
    named = [f"{folder.folder or '.'} ×{folder.count}" for folder in folders[:_LISTED]]
    more = len(folders) - _LISTED
    return f"{len(folders)} folders: {', '.join(named)}" + (f" and {more} more" if more > 0 else "")
