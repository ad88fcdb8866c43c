"""The table of modules, grouped by cause, and everything known of one of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct, structs
from rich.console import RenderableType, RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.interface.report.console import facts, path_text, plain_table
from hlotool.interface.report.evidence import (
    covered_text,
    never_texts,
    outcome_counts,
    repeated_text,
    scale_facts,
)
from hlotool.interface.report.leaf import leaf_diff, output_summary
from hlotool.interface.report.located import first_divergence, first_not_finite
from hlotool.interface.report.words import (
    compared_stages,
    distance,
    is_silent,
    plural,
    row_verdict,
    seconds,
    short_names,
    style_of,
    within,
)
from hlotool.judge.records import FreedomsRecord, output_name
from hlotool.judge.verdicts import AGREEING, Answer, Verdict
from hlotool.runs.records import REALITY, LeafRecord, ModuleRecord, SetRecord
from hlotool.system.records import ErrorRecord

#: Outputs shown in full unless everything is asked for.
_DETAILED = 3
#: Lines of a dead process's log, likewise.
_LOG_LINES = 6
#: What tells sets of one kind apart: `mixture 12`, `seed +1`.
_NUMBER = re.compile(r" \+?\d+(?= \(|$)")


@group()
def module_details(module: ModuleRecord, verbose: bool = False) -> RenderResult:
    """One record in full: the finding, its outputs, and what was compared; `verbose` shows all of them."""
    yield Text.assemble(
        row_verdict(module),
        "  ",
        (module.name, "bold"),
        (f"  {seconds(module.seconds)}", "dim"),
    )
    if module.error is not None:
        yield from _error_lines(module.error, verbose)
    if module.divergence is not None:
        yield _block(first_divergence(module.divergence, module.verdict, verbose), 0)
    yield from (_block(first_not_finite(made)) for made in module.origins)
    yield from map(_block, _outputs(module, verbose))
    yield _block(facts(module_facts(module, verbose)), int(bool(module.leaves or module.outputs)))


def _outputs(module: ModuleRecord, verbose: bool) -> Iterator[RenderableType]:
    shown = [leaf for leaf in module.leaves if verbose or leaf.verdict not in AGREEING]
    limit = None if verbose else _DETAILED
    if limit is not None:
        shown.sort(key=_is_unexplained)
    is_located = module.divergence is not None
    yield from (leaf_diff(leaf, verbose=verbose, is_located=is_located) for leaf in shown[:limit])
    yield from map(output_summary, module.outputs)
    if limit is not None and (hidden := shown[limit:]):
        names = ", ".join(output_name(leaf.index) for leaf in hidden)
        yield Text(
            f"{plural(len(hidden), 'more output')} with a finding: {names} (--verbose shows them)", "dim"
        )
    if verbose and module.unexplained:
        count = plural(module.unexplained, "wrong output")
        yield Text(f"{count} not looked at for a pattern (--thorough does)", "dim")
    later = {tuple(index) for one in _sets(module) for index in one.wrong}
    agreeing = [leaf for leaf in module.leaves if leaf.verdict in AGREEING]
    agreeing = [leaf for leaf in agreeing if tuple(leaf.index) not in later]
    if agreeing and not verbose:
        on_sets = _on_sets(module) if module.verdict.answer is Answer.BAD else ""
        yield Text(_agreement(agreeing, "other output" if shown else "output") + on_sets, "dim")
        yield from (Text(what, "dim") for what in happened(agreeing))


def happened(leaves: Iterable[LeafRecord]) -> list[str]:
    """What made differences that are no faults, where it has a name, each once."""
    named = (leaf.evidence.happened for leaf in leaves if leaf.evidence and leaf.evidence.happened)
    found = list(dict.fromkeys(named))
    more = f"and {plural(len(found) - _DETAILED, 'more cause')} (--verbose)" if len(found) > _DETAILED else ""
    return [*found[:_DETAILED], *filter(None, [more])]


def _sets(module: ModuleRecord) -> Sequence[SetRecord]:
    return module.inputs.sets if module.inputs is not None else ()


def _on_sets(module: ModuleRecord) -> str:
    """How far the agreement of the other outputs reaches: on these inputs, and on how many others."""
    sets = _sets(module)
    good = sum(one.verdict in AGREEING for one in sets)
    silent = sum(is_silent(one.verdict) for one in sets)
    if not good:
        return ", on these inputs only"
    unsaid = f" ({silent} more undecided)" if silent else ""
    return f", also on {plural(good, 'extra input set')}{unsaid}"


def _is_unexplained(leaf: LeafRecord) -> bool:
    """Whether less is known of it than of others that are wrong."""
    return leaf.evidence is not None and not leaf.evidence.explained


def _agreement(leaves: list[LeafRecord], noun: str) -> str:
    verb = "agrees" if len(leaves) == 1 else "agree"
    exactly = "; mathematically equivalent" if _are_proved(leaves) else ""
    if all(leaf.verdict is Verdict.IDENTICAL for leaf in leaves):
        return f"{plural(len(leaves), noun)} {verb} bit for bit{exactly}"
    distance = within(max(leaf.max_ulp or 0 for leaf in leaves))
    return f"{plural(len(leaves), noun)} {verb}: {distance}{exactly}"


def _are_proved(leaves: list[LeafRecord]) -> bool:
    """Whether all that are not identical are known to be the same functions, and at least one is."""
    asked = [leaf.exact.relation for leaf in leaves if leaf.exact is not None]
    is_complete = all(leaf.exact is not None or leaf.verdict is Verdict.IDENTICAL for leaf in leaves)
    return is_complete and set(asked) == {"equal"}


def _block(part: RenderableType, above: int = 1) -> Padding:
    return Padding(part, (above, 0, 0, 2))


def _sides(module: ModuleRecord) -> Iterator[tuple[str, str]]:
    """Which stage ran where; nothing of stages that never ran."""
    if module.verdict is Verdict.NOT_COMPARED:
        yield "ran", f"{module.stage_reference} on {module.reference}"
    elif module.stage_reference is None and module.tested is not None:
        yield "on", module.tested
    elif module.tested is not None and module.tested == module.reference and module.stage_tested != REALITY:
        yield "compared", f"{module.stage_tested} with {module.stage_reference}, both on {module.reference}"
    elif module.tested is not None:
        yield "compared", f"{_actual(module)} with {module.stage_reference} on {module.reference}"
    elif module.stage_tested:
        yield "stage", module.stage_tested


def _actual(module: ModuleRecord) -> str:
    """A stage on a backend, or where the real result comes from."""
    stage = module.stage_tested
    return f"{stage} {module.tested}" if stage == REALITY else f"{stage} on {module.tested}"


def _freedoms(allowed: FreedomsRecord) -> str:
    """What a correct run may do."""
    target = f"{allowed.target}, known from {allowed.told_by}" if allowed.target else "of an unknown target"
    excess = "excess precision" if allowed.excess_precision else "no excess precision"
    found = ["sums in any order", "contraction", excess, *filter(None, [allowed.products]), *allowed.flags]
    return f"{target}: {'; '.join(found)}"


def module_facts(module: ModuleRecord, verbose: bool) -> Iterator[tuple[str, str | Text]]:
    """What was compared, on which inputs, and what that rests on, by name."""
    yield from _sides(module)
    if module.inputs is not None:
        yield "inputs", module.inputs.description
        if module.inputs.file:
            yield "saved", path_text(module.inputs.file)
        if verbose:
            yield from (("", rule) for rule in module.inputs.rules)
            if module.inputs.sets_cut:
                yield "extra inputs", module.inputs.sets_cut
            if module.inputs.sets:
                yield "sets", f"{len(module.inputs.sets)} extra ones: {_set_names(module.inputs.sets)}"
    if verbose and module.freedoms is not None:
        yield "freedoms", _freedoms(module.freedoms)
    if module.in_place is not None:
        yield "ran within", module.in_place.text
    if module.scaled is not None:
        yield from scale_facts(module.scaled, verbose)
    if module.generated_constants:
        yield "constants", f"{module.generated_constants} generated: their values are not in the dump"
    if module.opaque_calls:
        yield "opaque calls", f"{module.opaque_calls} replaced by stand-ins (no public semantics)"
    yield from (("" if number else "note", note) for number, note in enumerate(module.notes))
    yield from (("" if number else "weaker", text) for number, text in enumerate(module.weaker))
    yield "file", path_text(module.path)
    if module.repeated is not None:
        yield "runs", repeated_text(module.repeated)
    if module.unfinished:
        yield "not finished", module.unfinished
    if module.divergence_missing:
        yield "first divergence", module.divergence_missing
    yield from _special_facts(module)
    yield from _coverage_facts(module, verbose)
    if saved := _saved(module):
        yield "saved in", path_text(saved)
    if module.reason and module.error is None and not module.leaves:
        yield "reason", module.reason


def _special_facts(module: ModuleRecord) -> Iterator[tuple[str, str]]:
    """How many elements of each array are not finite."""
    for number, found in enumerate(module.special_values):
        kinds = ((found.nan, "NaN"), (found.inf, "infinite"))
        counts = ", ".join(f"{count} of {found.total} {name}" for count, name in kinds if count)
        yield "" if number else "not finite", f"{output_name(found.index)}: {counts}"
    if module.origins_missing:
        yield "made by", module.origins_missing


def _coverage_facts(module: ModuleRecord, verbose: bool) -> Iterator[tuple[str, str]]:
    """What the inputs exercise: of an agreement the end of the report says it, unless everything is shown."""
    if not verbose and module.verdict is not Verdict.NOT_COMPARED:
        return
    if module.coverage_missing:
        yield "coverage", module.coverage_missing
    of_tested = [] if module.coverage_tested is None else [module.coverage_tested]
    if module.coverage is not None and (covers := covered_text([module.coverage], of_tested)):
        yield "coverage", f"{covers}; {outcome_counts(module.coverage)}"
        if verbose:
            missing = never_texts([module.coverage, *of_tested])
            yield from (("" if n else "not exercised", text) for n, text in enumerate(missing))


def _saved(module: ModuleRecord) -> str:
    """The folder that `--save-outputs` filled; every file in it is named after its output."""
    files = [leaf.expected_file for leaf in module.leaves] + [output.file for output in module.outputs]
    return next((os.path.dirname(file) for file in files if file), "")


def _error_lines(error: ErrorRecord, verbose: bool) -> Iterator[RenderableType]:
    yield Padding(Text(error.message, style_of(Verdict.BAD_INPUT)), (0, 0, 0, 2))
    lines = error.log.splitlines()
    if not verbose and len(lines) > _LOG_LINES:
        lines = [
            f"… {plural(len(lines) - _LOG_LINES, 'line')} more, shown by --verbose",
            *lines[-_LOG_LINES:],
        ]
    for line in lines:
        yield Padding(Text(line, "dim"), (0, 0, 0, 4))


def _set_names(sets: Sequence[SetRecord]) -> str:
    """Names of further sets, with verdicts that do not simply agree; sets of one kind by their number."""
    texts = [one.name if one.verdict in AGREEING else f"{one.name} ({one.verdict.value})" for one in sets]
    kinds = Counter(_NUMBER.sub("", text) for text in texts)
    return ", ".join(kind if count == 1 else f"{count} × {kind}" for kind, count in kinds.items())


#: Names of the same program that are listed.
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
    short = short_names(module.name for module in modules)
    named = [structs.replace(module, name=short[module.name]) for module in worst_last(modules)]
    rows = [[column.cell(module) for column in columns] for module in named]
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


class _Column(Struct, frozen=True):
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
