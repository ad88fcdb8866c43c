"""What is known of one output: how it differs, or what it holds when there was nothing to compare it with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.findings.comparison import BucketRecord, EvidenceRecord, HeatMapRecord
from hlotool.findings.outputs import output_name
from hlotool.findings.records import SourceRecord
from hlotool.findings.verdict import Verdict
from hlotool.locate.records import ElementRecord
from hlotool.replay.records import LeafRecord, OutputRecord
from hlotool.report.links import user_line_text
from hlotool.report.tables import facts, plain_table
from hlotool.report.words import (
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

#: What two programs show where nothing is rounded.
_WIDE = {
    "equal": "both programs compute the same",
    "within": "both programs compute the same, up to constants that the compiler rounded",
    "range": "one of the programs is not finite there, either",
    "outside": "the two programs differ there, too, where nothing is rounded",
}

#: Width of a full histogram bar.
_BAR = 30


@group()
def leaf_diff(leaf: LeafRecord, name: str = "", verbose: bool = False) -> RenderResult:
    """The difference of one output, or of two arrays that have a name; `verbose` with a map of where."""
    yield Text.assemble(
        (name or output_name(leaf.index), "bold"),
        f"  {leaf.shape}  ",
        (verdict_text(leaf.verdict), style_of(leaf.verdict)),
    )
    yield Padding(facts(leaf_facts(leaf)), (0, 0, 0, 2))
    if leaf.verdict is Verdict.ROUNDING:
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


def leaf_facts(leaf: LeafRecord) -> Iterator[tuple[str, str | Text]]:
    """Why the verdict on an output is what it is, and how far it is off, by name."""
    if leaf.evidence is not None:
        yield from _evidence_facts(leaf, leaf.evidence)
    elif leaf.verdict not in (Verdict.IDENTICAL, Verdict.WRONG):
        yield "reason", leaf.reason
    if leaf.exact is not None and leaf.exact.relation == "refused":
        yield "exactly", f"nothing is known: {leaf.exact.reason}"
    if leaf.exact is not None and leaf.exact.relation == "equal where":
        yield "exactly", f"the same where it was covered: {leaf.exact.reason}"
    if leaf.mismatched and leaf.evidence is None:
        yield "mismatched", share(leaf.mismatched, leaf.total)
    if leaf.worst_absolute:
        yield "worst absolute", _worst(number(leaf.worst_absolute.absolute), leaf.worst_absolute)
    if leaf.worst_relative:
        yield "worst relative", _worst(number(leaf.worst_relative.relative), leaf.worst_relative)
    if leaf.nan_mismatches:
        yield "NaN", f"{leaf.nan_mismatches} on one side only"
    if leaf.inf_mismatches:
        yield "infinite", f"{leaf.inf_mismatches} on one side only, or with another sign"
    if leaf.verdict not in (Verdict.DIFFERS, Verdict.UNEQUAL):
        yield from _tolerance_facts(leaf)
    if leaf.decision:
        yield "note", f"made of floats by {leaf.decision}, where one ulp can flip it"
    if leaf.source:
        yield from source_facts(leaf.source)


def _evidence_facts(leaf: LeafRecord, evidence: EvidenceRecord) -> Iterator[tuple[str, str | Text]]:
    """Why the verdict is what it is, for readers who know nothing of ensembles."""
    yield "because", leaf.reason
    if evidence.wide:
        yield "in f64", _WIDE[evidence.wide]
    if evidence.beyond:
        yield "out of reach", share(evidence.beyond, leaf.total)
    if evidence.members:
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
    executions = plural(evidence.members, "legal execution")
    return f"{executions} of the reference{where}{spread} (seed {evidence.seed})"


def _worst(amount: str, element: ElementRecord) -> str:
    distance = f", {ulps(element.ulps)}" if element.ulps is not None else ""
    values = f"expected {element.expected}, actual {element.actual}"
    return f"{amount}{at(element.index)}: {values}{distance}"


def _tolerance_facts(leaf: LeafRecord) -> Iterator[tuple[str, str]]:
    """What was accepted, and what would have been enough; neither says anything of other functions."""
    if leaf.tolerance and leaf.evidence is None:
        yield "tolerance", accepted(leaf.tolerance)
    minimum = leaf.minimum_tolerance
    if minimum is None:
        return
    if minimum.joint is None:
        yield "would pass with", "no tolerance: NaN or infinity on one side only"
    else:
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
