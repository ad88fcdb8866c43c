"""The report of `hlotool run` for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult, group
from rich.padding import Padding
from rich.text import Text

from hlotool.interface.report.baseline import baseline_lines
from hlotool.interface.report.console import Report, next_line, place_text
from hlotool.interface.report.evidence import (
    AnnotatedSource,
    coverages_of,
    coverages_of_tested,
    covered_text,
    never_texts,
)
from hlotool.interface.report.located import births_of
from hlotool.interface.report.module import (
    happened,
    module_details,
    module_table,
    without_twins,
    worst_last,
)
from hlotool.interface.report.next_command import command_after_run
from hlotool.interface.report.records import CauseRecord, FolderRecord, RunRecord, is_unproved
from hlotool.interface.report.words import (
    UNDECIDED,
    compared_stages,
    is_silent,
    not_in_a_dump,
    output_counts,
    plural,
    seconds,
    style_of,
    verdict_text,
)
from hlotool.judge.verdicts import AGREEING, DIFFERING, EXCUSED, Answer, Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import CAPTURED, NO_RESULT, REALITY, InputsRecord, ModuleRecord, execution_of

#: Differing modules shown in full unless everything is asked for.
_DETAILED = 3
#: More modules that agree than these are a number, unless everything is asked for.
_AGREEING = 8
#: Causes listed, likewise; and modules named of each.
_CAUSES, _NAMED = 12, 4
#: Places named of those where the inputs left something out, and characters of what.
_NEVER, _LONGEST = 2, 60


class RunReport(Report[RunRecord]):
    """A whole run: what is wrong in full, other causes, what agrees, how far that reaches, the next command.

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
        yield from (module_details(module, self.verbose) for module in detailed)
        shown = set(map(id, detailed))
        rest = [module for module in listed if id(module) not in shown]
        if not self.verbose:
            yield from self._causes(shown)
        agreeing = [module for module in rest if module.verdict in AGREEING]
        yield from self._table(listed if self.verbose else agreeing)
        yield from _weaker(rest)
        yield from births_of(rest)
        if notes := happened(leaf for m in agreeing for leaf in m.leaves):
            yield Text("\n".join(notes), "dim")

    def _causes(self, shown: set[int]) -> Iterator[RenderableType]:
        """What the rows that are not shown in full come from, the gravest first."""
        modules = self.record.modules
        causes = []
        for cause in reversed(self.record.causes):
            rows = [modules[row] for row in cause.rows if id(modules[row]) not in shown]
            if rows:
                causes.append(cause_lines(cause, rows, in_full=len(cause.rows) - len(rows)))
        yield from causes[:_CAUSES]
        if (hidden := len(causes) - _CAUSES) > 0:
            yield Text(f"{plural(hidden, 'more cause')} (--verbose, or with a search --html FILE)", "dim")

    def _table(self, rows: Sequence[ModuleRecord]) -> Iterator[RenderableType]:
        """The rows one by one, where they are few or all are asked for."""
        if not rows:
            return
        if len(rows) > _AGREEING and not self.verbose:
            every = "all " if len(rows) == len(self.record.modules) else ""
            yield Text.assemble(("✓ ", "green"), f"{every}{len(rows)} results agree (--verbose lists them)")
            return
        distinct, where = (rows, []) if self.verbose else without_twins(rows)
        yield module_table(distinct)
        yield from where

    def _detailed(self) -> Sequence[ModuleRecord]:
        """The records to show in full, the worst first: all if asked for, else the worst that differ."""
        if self.quiet:
            return []
        ordered = worst_last(self.record.modules)[::-1]
        if self.verbose:
            return ordered
        shown = DIFFERING | {Verdict.DIFFERS}
        return [m for m in ordered if m.verdict in shown and not m.twin_of][:_DETAILED]

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
            text.append("\ninterrupted; run the same command again to resume", "yellow")
        return text


def _weaker(modules: Sequence[ModuleRecord]) -> Iterator[Text]:
    """What programs no longer ask of a backend, of those that are not shown in full, each line once."""
    said = {text: module.name for module in reversed(modules) for text in module.weaker}
    for text, name in list(said.items())[:_CAUSES]:
        yield Text(f"weaker in {name}: {text}", "yellow")


def basis_lines(run: RunRecord) -> Iterator[str]:
    """How far the agreement was checked, so that it is not over-read."""
    yield from _in_full(run)
    yield from _frontend(run.modules)
    yield from _memory(run)
    yield from _unfinished(run)
    yield from _exactness(run)
    yield from _repeats(run)
    agreeing = [module for module in run.modules if module.verdict in AGREEING]
    yield from _undecided(run)
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
    inputs = f"inputs {' and '.join(origins)}{_extra_sets(agreeing)}{unknown}"
    yield f"checked with: {inputs}; reference {', '.join(backends)}"
    yield from filter(None, [covered_text(coverages, coverages_of_tested(agreeing))])
    if (never := never_texts(coverages)) and not run.options.coverage:
        lines = plural(len(never), "line")
        some = " · ".join(map(_cut, never[:_NEVER]))
        yield f"not exercised by the inputs ({lines}; --coverage): {some}"
    if any(module.verdict is not Verdict.IDENTICAL for module in agreeing):
        yield from _tolerance(run)
    yield from _cancellations(agreeing)
    if len(agreeing) == len(run.modules) and not any(map(_is_of_real_code, run.modules)):
        is_captured = any(module.inputs and module.inputs.origin == CAPTURED for module in agreeing)
        yield (
            f"of captured executions no result: {NO_RESULT}"
            if is_captured
            else f"{not_in_a_dump(module.name for module in run.modules)} --test xla"
        )


def _cut(text: str) -> str:
    """A place whole, and the first of what is missing there."""
    place, _, missing = text.partition(" ")
    return text if len(missing) <= _LONGEST else f"{place} {missing[:_LONGEST]} …"


def _in_full(run: RunRecord) -> Iterator[str]:
    """How many of what is wrong is shown in full, and how to get the rest."""
    wrong = sum(module.verdict in DIFFERING and not module.twin_of for module in run.modules)
    if wrong > _DETAILED:
        yield f"{_DETAILED} of {wrong} wrong results are shown in full (--verbose or --html FILE shows all)"


def _undecided(run: RunRecord) -> Iterator[str]:
    """Of how many nothing is decided, and how many were not checked, by what that comes from."""
    compared = AGREEING | DIFFERING | EXCUSED | {Verdict.DIFFERS}
    for what, counted in (("undecided", EXCUSED), ("not checked", set(Verdict) - compared)):
        found = Counter(module.verdict for module in run.modules if module.verdict in counted)
        if found:
            kinds = ", ".join(f"{count} {UNDECIDED[verdict]}" for verdict, count in found.most_common())
            yield f"{found.total()} of {len(run.modules)} {what}: {kinds}"


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
        verb = "is" if count == 1 else "are"
        yield (
            f"{count} of {plural(len(outputs), 'output')} {verb} in part nothing but rounding error: terms "
            "cancel, and those elements are not judged"
        )


def _memory(run: RunRecord) -> Iterator[str]:
    """Which results are not of this run."""
    if (remembered := run.remembered) is None:
        return
    oldest, newest = remembered.oldest.partition("T")[0], remembered.newest.partition("T")[0]
    when = oldest if oldest == newest else f"{oldest} to {newest}"
    of_all = f"all {len(run.modules)} results are" if remembered.results == len(run.modules) else ""
    of_some = f"{remembered.results} of {plural(len(run.modules), 'result')}"
    of_some += " is" if remembered.results == 1 else " are"
    yield (
        f"{of_all or of_some} from the verdict cache, from {when} with the same versions and options"
        " (--no-cache replays them)"
    )


def _unfinished(run: RunRecord) -> Iterator[str]:
    """Which verdicts are all that was found in the time."""
    if cut := [module for module in run.modules if module.unfinished]:
        verb = "was" if len(cut) == 1 else "were"
        yield f"{len(cut)} of {len(run.modules)} {verb} not finished after the verdict: {cut[0].unfinished}"


def _extra_sets(agreeing: Sequence[ModuleRecord]) -> str:
    """How many sets beside the plain one, and the unusual values of some; `--verbose` names them."""
    counts = [len(module.inputs.sets) for module in agreeing if module.inputs]
    if not any(counts):
        return ""
    number = str(max(counts)) if min(counts) == max(counts) else f"up to {max(counts)}"
    unusual = sorted({odd for m in agreeing if m.inputs for one in m.inputs.sets for odd in one.odd})
    words = f" with {', '.join(unusual)}" if unusual else ""
    silent = Counter(
        one.verdict for m in agreeing if m.inputs for one in m.inputs.sets if is_silent(one.verdict)
    )
    if silent:
        kinds = ", ".join(f"{count} {UNDECIDED[verdict]}" for verdict, count in silent.most_common())
        words += f"; {silent.total()} of these sets undecided: {kinds}"
    if cut := sum(bool(module.inputs and module.inputs.sets_cut) for module in agreeing):
        words += f"; for {plural(cut, 'module')} as many as time allowed"
    return f", {number} extra input sets{words}"


def _exactness(run: RunRecord) -> Iterator[str]:
    """What is known, or was demanded and is not known, of programs as functions of real numbers."""
    others = sum(module.verdict is Verdict.DIFFERS for module in run.modules)
    if others:
        yield (
            f"{others} of {len(run.modules)} not mathematically equivalent, by less than rounding error: "
            "a mismatch with --exact"
        )
    unknown = [module for module in run.modules if is_unproved(module)]
    if run.options.exact and unknown:
        why = unknown[0].exact_refusal or f"not reached: {unknown[0].exact_gap}"
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


def _tolerance(run: RunRecord) -> Iterator[str]:
    """What the user accepts; without that, a few ulps and what other rounding does."""
    single, options = list(_of_single_outputs(run.options)), run.options
    if options.rtol is None and options.atol is None:
        if single:
            yield f"tolerance: as rounding allows; {'; '.join(single)}"
        return
    joined = " or " if options.either else " "
    given = f"--rtol {options.rtol or 0:g}{joined}--atol {options.atol or 0:g}"
    yield f"tolerance: {'; '.join([f'{given} for all outputs, set by the user', *single])}"


def _of_single_outputs(options: RunOptions) -> Iterator[str]:
    for name, given in (("rtol", options.output_rtol), ("atol", options.output_atol)):
        yield from (f"--{name} {output}:{value:g}" for output, value in given)
    if options.compare_with is not None:
        yield f"--compare-with {options.compare_with}"


#: Folders of one cause that are named.
_FOLDERS = 4


@group()
def cause_lines(cause: CauseRecord, rows: Sequence[ModuleRecord], in_full: int = 0) -> RenderResult:
    """What is wrong, in which line, how often, in which modules, and what to type.

    Args:
        cause: of the rows.
        rows: those to name.
        in_full: how many rows of this cause the report shows in full.
    """
    verdict = Verdict(cause.kind)
    count = f" ×{len(rows)}" if len(rows) > 1 else ""
    count += f" of {plural(cause.programs, 'program')}" if 0 < cause.programs < len(rows) else ""
    more = " more" if in_full else ""
    place = () if cause.source is None or not cause.source.place else ("  ", place_text(cause.source))
    head = f"{verdict_text(verdict)}{count}{more}"
    yield Text.assemble((head, style_of(verdict)), "  ", (cause.what, "bold"), *place)
    names = ", ".join(map(_named, rows[:_NAMED]))
    if (hidden := len(rows) - _NAMED) > 0:
        names += f" and {hidden} more"
    yield Padding(Text(f"in {names}", "dim"), (0, 0, 0, 4))
    if len(cause.folders) > 1 and len(rows) > _NAMED:
        yield Padding(Text(_folders(cause.folders), "dim"), (0, 0, 0, 4))
    counts = dict.fromkeys(filter(None, map(output_counts, rows)))
    yield from (Padding(Text(line, "dim"), (0, 0, 0, 4)) for line in list(counts)[:1])
    if cause.next and verdict.answer is Answer.BAD and not in_full:
        yield Padding(Text(cause.next, no_wrap=True, overflow="ignore"), (0, 0, 0, 4))


def _named(row: ModuleRecord) -> str:
    """A module; with the line where it is broken, or the backend where that is not the reference's."""
    if row.error is not None and row.error.path and row.error.line:
        column = f":{row.error.column}" if row.error.column else ""
        return f"{row.name} ({row.error.path}:{row.error.line}{column})"
    is_other = row.tested is not None and row.tested != row.reference
    return f"{row.name} ({compared_stages(row)})" if is_other else row.name


def _folders(folders: Sequence[FolderRecord]) -> str:
    """Where a cause shows, the place with the most findings first."""
    named = [f"{folder.folder or '.'} ×{folder.count}" for folder in folders[:_FOLDERS]]
    more = len(folders) - _FOLDERS
    return f"{len(folders)} folders: {', '.join(named)}" + (f" and {more} more" if more > 0 else "")
