"""The report of `hlotool prove`: a row for each pair, witnesses, and what the answers rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.interface.report.command_records import ProveRecord
from hlotool.interface.report.console import Report, facts, path_text, plain_table
from hlotool.interface.report.evidence import scale_facts
from hlotool.interface.report.located import first_divergence
from hlotool.interface.report.words import at, plural, share
from hlotool.judge.records import output_name
from hlotool.runs.exact.records import ProvedLeafRecord, ProvedRecord
from hlotool.runs.exact.sides import one_sided_text

#: Sign and style of each relation; the sign tells it apart where there is no colour.
_LOOKS = {
    "equal": ("✓", "green"),
    "equal where": ("~", "yellow"),
    "unequal": ("✗", "bold red"),
    "refused": ("?", "yellow"),
}
#: Outputs of a pair, and decisions, that are shown unless everything is asked for.
_SHOWN = 5


class ProveReport(Report[ProveRecord]):
    """A table of all pairs, what is unequal or refused in detail, and what the answers rest on.

    When quiet, only pairs that are not equal; when verbose, every output.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        rows = [pair for pair in record.pairs if not self.quiet or pair.relation != "equal"]
        if rows:
            yield _table(rows)
            yield Text("")
        for pair in rows:
            if self.verbose or record.explain or pair.relation != "equal" or pair.scaled is not None:
                yield from self._detailed(pair)
                yield Text("")
        for names, side in ((record.only_left, record.left), (record.only_right, record.right)):
            yield from (Text(f"only in {side}: {name}", "yellow") for name in names)
        yield self._total()
        yield Text(_rests_on(record.pairs), "dim")

    def _detailed(self, pair: ProvedRecord) -> Iterator[RenderableType]:
        yield Text.assemble(_relation(pair.relation), f"  {pair.name}")
        rows: list[tuple[str, str | Text]] = [("first", pair.left), ("second", pair.right)]
        if pair.scaled is not None:
            rows += scale_facts(pair.scaled, self.verbose)
        if pair.reason:
            rows.append(("because", pair.reason))
        if pair.shown_by:
            rows.append(("integers", f"of {pair.shown_by}"))
        if pair.inputs:
            rows.append(("saved", path_text(pair.inputs)))
        wanted = [leaf for leaf in pair.leaves if self.verbose or leaf.relation != "equal"]
        shown = wanted if self.verbose else wanted[:_SHOWN]
        rows += [(output_name(leaf.index), _leaf_text(leaf)) for leaf in shown]
        if hidden := len(wanted) - len(shown):
            rows.append(("", f"{plural(hidden, 'more output')} (--verbose shows them)"))
        rows += self._not_covered(pair)
        if pair.divergence_missing:
            rows.append(("where", f"not found: {pair.divergence_missing}"))
        if self.record.explain:
            rows += _explanation(pair)
        yield Padding(facts(rows), (0, 0, 0, 2))
        if pair.divergence is not None:
            yield Padding(first_divergence(pair.divergence), (1, 0, 0, 2))

    def _not_covered(self, pair: ProvedRecord) -> Iterator[tuple[str, str]]:
        """What the programs were not compared on."""
        sides = [("first", one) for one in pair.left_one_sided]
        sides += [("second", one) for one in pair.right_one_sided]
        shown = sides if self.verbose else sides[:_SHOWN]
        for program, one in shown:
            yield "not covered", one_sided_text(program, one)
        if hidden := len(sides) - len(shown):
            yield "", f"{plural(hidden, 'more case')} (--verbose shows them)"

    def _total(self) -> Text:
        counts = Counter(pair.relation for pair in self.record.pairs)
        parts = [f"{counts[relation]} {relation}" for relation in _LOOKS if counts[relation]]
        return Text(f"{plural(len(self.record.pairs), 'pair')} of programs: {' · '.join(parts)}", "bold")


def _relation(relation: str) -> Text:
    sign, style = _LOOKS[relation]
    return Text(f"{sign} {relation}", style)


def _table(pairs: list[ProvedRecord]) -> Table:
    table = plain_table()
    for name in ("relation", "programs"):
        table.add_column(name, no_wrap=True)
    for name in ("outputs", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in pairs:
        equal = sum(leaf.relation == "equal" for leaf in pair.leaves)
        outputs = f"{equal}/{len(pair.leaves)}" if pair.leaves else "–"
        table.add_row(_relation(pair.relation), pair.name, outputs, f"{pair.seconds:.2f}")
    return table


def _leaf_text(leaf: ProvedLeafRecord) -> Text:
    if leaf.relation == "equal":
        return _relation(leaf.relation)
    text = _relation(leaf.relation)
    if leaf.reason:
        text.append(f": {leaf.reason}", "default")
    if leaf.witness is not None:
        witness = leaf.witness
        place = f"{at(witness.index)} with seed {witness.seed}"
        values = f"expected {witness.expected}, got {witness.actual}"
        text.append(f": {share(leaf.differing, leaf.total)}; {values}{place}", "default")
    return text


def _explanation(pair: ProvedRecord) -> Iterator[tuple[str, str]]:
    """What the answer rests on beyond arithmetic."""
    yield from (("assumed", law) for law in pair.laws)
    for reading in pair.constants:
        yield "constant", f"{reading.constant} is read as {reading.number}: {reading.reason}"
    for side, boxes in (("first", pair.left_boxes), ("second", pair.right_boxes)):
        for box in boxes:
            line = f", line {box.line}" if box.line else ""
            yield "unknown function", f"{box.name} (%{box.instruction} of the {side}{line})"


def _rests_on(pairs: list[ProvedRecord]) -> str:
    """What stands behind the answers, in one line."""
    found = [pair for pair in pairs if pair.error_probability is not None]
    if not found:
        return "nothing was evaluated"
    made = sum(pair.generated_constants for pair in found)
    unknown = f"; with {plural(made, 'generated constant')}" if made else ""
    worst = max(found, key=lambda pair: pair.error_probability or 0.0)
    return (
        f"evaluated at {plural(worst.trials, 'random point')} of a finite field: an element of another"
        f" rational function of degree {worst.degree} passes for equal with probability"
        f" {worst.error_probability:.1g}, in the cases that the points reached"
        f"{_sampled(found)}{unknown}"
    )


def _sampled(found: list[ProvedRecord]) -> str:
    """On how many further sets integers and preds were sampled."""
    counts = [pair.further_sets for pair in found]
    if not any(counts):
        return ""
    number = str(max(counts)) if min(counts) == max(counts) else f"up to {max(counts)}"
    return f"; integers and preds are sampled, {number} extra sets"
