"""What is known of one output: how it differs or what it holds, and the instruction where that begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.interface.report.console import facts, plain_table, user_line_text
from hlotool.interface.report.words import (
    accepted,
    at,
    number,
    plural,
    position,
    share,
    style_of,
    sufficient,
    ulps,
    verdict_text,
)
from hlotool.judge.records import (
    BucketRecord,
    ElementRecord,
    EvidenceRecord,
    HeatMapRecord,
    output_name,
)
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import LeafRecord, OutputRecord
from hlotool.system.records import SourceRecord

#: What two programs show in double precision; that they differ there, too, is in the reason.
_WIDE = {
    "equal": "both programs compute the same",
    "within": "both programs compute the same, up to constants that the compiler rounded",
    "range": "one of the programs is not finite there, either",
}

#: Width of a full histogram bar.
_BAR = 30


@group()
def leaf_diff(
    leaf: LeafRecord, name: str = "", verbose: bool = False, is_located: bool = False
) -> RenderResult:
    """The difference of one output, or of two arrays that have a name.

    Args:
        leaf: the output.
        name: what to call it; by its place in the result where this is empty.
        verbose: with a map of where it differs.
        is_located: the instruction that it comes from is shown beside it, and its own need not be.
    """
    extent = _extent(leaf)
    yield Text.assemble(
        (name or output_name(leaf.index), "bold"),
        f"  {leaf.shape}  ",
        (verdict_text(leaf.verdict), style_of(leaf.verdict)),
        f"  {extent}" if extent else "",
    )
    is_brief = is_located and not verbose
    yield Padding(facts(leaf_facts(leaf, is_brief)), (0, 0, 0, 2))
    if leaf.verdict is Verdict.ROUNDING or is_brief:
        return
    if leaf.top:
        yield Padding(_elements(leaf.top), (1, 0, 0, 2))
    if leaf.histogram:
        yield Padding(_histogram(leaf.histogram), (1, 0, 0, 2))
    if verbose and leaf.heat is not None:
        yield Padding(_heat(leaf.heat), (1, 0, 0, 2))


@group()
def output_summary(output: OutputRecord) -> RenderResult:
    """What one output holds."""
    yield Text.assemble((output_name(output.index), "bold"), f"  {output.shape}")
    yield Padding(facts(output_facts(output)), (0, 0, 0, 2))


def _extent(leaf: LeafRecord) -> str:
    """How many of the elements differ, or are where no correct run is; empty of a single one."""
    if leaf.total == 1:
        return ""
    if leaf.evidence is not None and leaf.evidence.beyond:
        return f"{share(leaf.evidence.beyond, leaf.total)} elements outside the rounding range"
    return f"differs in {share(leaf.mismatched, leaf.total)} elements" if leaf.mismatched else ""


def leaf_facts(leaf: LeafRecord, is_brief: bool = False) -> Iterator[tuple[str, str | Text]]:
    """Why the verdict on an output is what it is, and how far it is off, by name; the most of it if brief."""
    if leaf.evidence is not None:
        yield from _evidence_facts(leaf, leaf.evidence, is_brief)
    elif leaf.verdict not in (Verdict.IDENTICAL, Verdict.WRONG):
        yield "reason", leaf.reason
    if leaf.exact is not None and leaf.exact.relation == "refused":
        yield "exactly", f"not decided: {leaf.exact.reason}"
    if leaf.exact is not None and leaf.exact.relation == "equal where":
        yield "exactly", f"the same in all cases that were reached: {leaf.exact.reason}"
    if leaf.worst_absolute:
        yield "largest error", _worst(number(leaf.worst_absolute.absolute), leaf.worst_absolute)
    if leaf.worst_relative and leaf.worst_relative != leaf.worst_absolute and not is_brief:
        yield "relative", _worst(number(leaf.worst_relative.relative), leaf.worst_relative)
    if leaf.nan_mismatches:
        yield "NaN", f"{leaf.nan_mismatches} on one side only"
    if leaf.inf_mismatches:
        yield "infinite", f"{leaf.inf_mismatches} on one side only, or with another sign"
    if leaf.verdict not in (Verdict.DIFFERS, Verdict.UNEQUAL):
        yield from _tolerance_facts(leaf)
    if leaf.decision and leaf.verdict is not Verdict.WRONG:
        yield "note", f"made of floats by {leaf.decision}, where one ulp can flip it"
    if leaf.source and not is_brief:
        yield from source_facts(leaf.source)


def _evidence_facts(
    leaf: LeafRecord, evidence: EvidenceRecord, is_brief: bool
) -> Iterator[tuple[str, str | Text]]:
    """Why the verdict is what it is, for readers who know nothing of ensembles."""
    yield "because", leaf.reason
    if evidence.wide in _WIDE:
        yield "in f64", _WIDE[evidence.wide]
    if evidence.members and not is_brief:
        yield "judged by", _basis(evidence)
    if evidence.instruction:
        lines = [value for _, value in source_facts(evidence.instruction)]
        yield (
            "cancelled in" if evidence.cancelled else "amplified by",
            Text("\n").join(Text(v) if isinstance(v, str) else v for v in lines),
        )


def _basis(evidence: EvidenceRecord) -> str:
    """How the ensemble was drawn, so that it can be drawn again."""
    spread = f", which differ by {number(evidence.width)} of the values" if evidence.width else ""
    where = " in f64" if evidence.wide == "outside" else ""
    runs = plural(evidence.members, "correct run")
    return f"{runs} of the reference{where} with other rounding{spread} (seed {evidence.seed})"


def _worst(amount: str, element: ElementRecord) -> str:
    parts = [f"relative {number(element.relative)}"] if element.relative is not None else []
    parts += [ulps(element.ulps)] if element.ulps is not None else []
    more = f" ({', '.join(parts)})" if parts else ""
    return f"{amount}{at(element.index)}: expected {element.expected}, actual {element.actual}{more}"


def _tolerance_facts(leaf: LeafRecord) -> Iterator[tuple[str, str]]:
    """What was accepted, and what would have been enough; neither says anything of other functions."""
    if leaf.tolerance and leaf.evidence is None:
        yield "tolerance", accepted(leaf.tolerance)
    minimum = leaf.minimum_tolerance
    # Of a result that rounding does not explain a tolerance would only hide the fault.
    is_offered = leaf.evidence is None or leaf.verdict is Verdict.ROUNDING
    if is_offered and minimum is not None and minimum.joint is not None:
        yield (
            "would pass with",
            f"--rtol {sufficient(minimum.joint)} --atol {sufficient(minimum.joint)}, or alone "
            f"--rtol {sufficient(minimum.relative)} or --atol {sufficient(minimum.absolute)}",
        )


def source_facts(source: SourceRecord) -> Iterator[tuple[str, str | Text]]:
    """The user's own line first, the HLO name after it."""
    if source.file:
        yield "source", user_line_text(source)
    if source.op_name:
        yield "operation", source.op_name
    line = f", line {source.line} of the HLO text" if source.line else ""
    yield "instruction", f"{source.opcode} %{source.instruction}{line}"


def _elements(elements: Sequence[ElementRecord]) -> Table:
    table = plain_table(3)
    table.add_column("worst elements", no_wrap=True)
    for name in ("expected", "actual", "absolute", "relative", "ulps"):
        table.add_column(name, justify="right", no_wrap=True)
    for element in elements:
        table.add_row(
            position(element.index),
            element.expected,
            element.actual,
            number(element.absolute),
            number(element.relative),
            "–" if element.ulps is None else ulps(element.ulps).split()[0],
        )
    return table


def _histogram(buckets: Sequence[BucketRecord]) -> Table:
    table = plain_table(3)
    table.add_column("magnitude", no_wrap=True)
    table.add_column("mismatched", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, style="red")
    for bucket in buckets:
        table.add_row(magnitudes(bucket), f"{bucket.mismatched} of {bucket.total}", _bar(bucket))
    return table


def _heat(heat: HeatMapRecord) -> Text:
    """The map, from blank for no error to a full block for a tenth of the largest one and more."""
    worst = max((cell for row in heat.cells for cell in row if cell is not None), default=0.0)
    lines = ["".join(_shade(cell, worst) for cell in row) for row in heat.cells]
    size = f"{heat.rows} × {heat.columns} elements"
    legend = f"where, {size}: █ ≥ {number(worst / 10)}  ▓ ≥ {number(worst / 100)}  ░ less"
    special = "  ! not finite on one side" if any(cell is None for row in heat.cells for cell in row) else ""
    return Text("\n").join([Text(f"{legend}{special}"), *(Text(f"│{line}│", "red") for line in lines)])


def _shade(error: float | None, worst: float) -> str:
    if error is None:
        return "!"
    if not error:
        return " "
    return "█" if error >= worst / 10 else "▓" if error >= worst / 100 else "░"


def magnitudes(bucket: BucketRecord) -> str:
    """The range of a bucket, in words."""
    if bucket.high == 0:
        return "0"
    if bucket.high is None:
        return f"above {number(bucket.low)}"
    return f"up to {number(bucket.high)}"


def _bar(bucket: BucketRecord) -> str:
    """Share of the bucket that mismatches; any mismatch shows."""
    if not bucket.mismatched:
        return ""
    return "█" * max(1, round(_BAR * bucket.mismatched / bucket.total))


def output_facts(output: OutputRecord) -> Iterator[tuple[str, str]]:
    """What an array holds, by name."""
    if output.minimum is not None:
        bounds = f"min {number(output.minimum, 6)}, max {number(output.maximum, 6)}"
        yield "values", f"{bounds}, mean {number(output.mean, 6)}"
    if output.nan or output.inf:
        yield "not finite", f"{output.nan} NaN, {output.inf} infinite, of {output.total}"
    if output.first:
        more = ", …" if output.total > len(output.first) else ""
        yield "first", ", ".join(output.first) + more
