"""How far an agreement was checked, and what is left open: the last lines of a run's report."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from hlotool.interface.report.evidence import (
    coverages_of,
    coverages_of_tested,
    covered_text,
    never_texts,
)
from hlotool.interface.report.records import RunRecord, is_unproved
from hlotool.interface.report.words import UNDECIDED, is_silent, not_in_a_dump, plural
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import AGREEING, DIFFERING, EXCUSED, Verdict, worst
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import CAPTURED, NO_RESULT, REALITY, InputsRecord, ModuleRecord, execution_of

#: Outputs named of those in which terms cancel.
_CANCELLED = 2
#: Of what is wrong so many are shown in full, unless everything is asked for.
DETAILED = 3
#: Places named of those where the inputs left something out, and characters of what.
_NEVER, _LONGEST = 2, 60


def explanation(run: RunRecord) -> Iterator[str]:
    """Where it stands what the gravest verdict means."""
    gravest = worst(module.verdict for module in run.modules)
    if run.modules and gravest not in AGREEING:
        yield f"what {gravest.value} means: hlotool explain {shlex.quote(gravest.value)}"


def basis_lines(run: RunRecord) -> Iterator[str]:
    """How far the agreement was checked, so that it is not over-read."""
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


def in_full(run: RunRecord) -> Iterator[str]:
    """How many of what is wrong is shown in full, and how to get the rest."""
    wrong = sum(module.verdict in DIFFERING and not module.twin_of for module in run.modules)
    if wrong > DETAILED:
        yield f"{DETAILED} of {wrong} wrong results are shown in full (--verbose or --html FILE shows all)"


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
    yield (
        "XLA computes what the program says; a number that is still unexpected comes from the program"
        f"{where}; hlotool gradcheck checks a gradient"
    )


def _cancellations(agreeing: Sequence[ModuleRecord]) -> Iterator[str]:
    """Of how many outputs rounding alone decides about some elements, because terms cancel."""
    outputs = [(module, leaf) for module in agreeing for leaf in module.leaves]
    found = [(m, leaf) for m, leaf in outputs if leaf.evidence is not None and leaf.evidence.cancelled]
    if found:
        # An output has several rows: of the stages, of what was captured.
        names = list(dict.fromkeys(f"{output_name(leaf.index)} of {m.name}" for m, leaf in found))
        more = ", …" if len(names) > _CANCELLED else ""
        verb = "is" if len(found) == 1 else "are"
        yield (
            f"{len(found)} of {plural(len(outputs), 'output')} {verb} in part nothing but rounding error: "
            f"terms cancel, and those elements are not judged ({', '.join(names[:_CANCELLED])}{more})"
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
        runs = max(repeat.runs for repeat in repeated)
        of_all = f"the results of {count} of {len(repeated)} differ from run to run"
        yield f"{runs} runs of each program: {of_all if count else 'the same bits in all of them'}"


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
