"""Two executions layer by layer: a table in the terminal, a picture in the page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from hlotool.blame.diff_records import LayerRecord, LayersRecord
from hlotool.interface.report.console import facts, plain_table
from hlotool.interface.report.leaf import leaf_diff, source_facts
from hlotool.interface.report.words import number, plural, style_of, verdict_text
from hlotool.judge.verdicts import AGREEING

#: Rows around the first wrong layer that are shown, unless all are wanted.
_BEFORE, _AFTER = 8, 4


def layers_report(record: LayersRecord, quiet: bool, verbose: bool) -> Iterator[RenderableType]:
    """The table, and the first layer that leaves legal spread."""
    layers = record.layers
    first = len(layers) if record.first is None else record.first
    shown = (
        range(len(layers))
        if verbose
        else range(max(0, first - _BEFORE), min(len(layers), first + _AFTER + 1))
    )
    if not quiet:
        yield _table(record, shown)
        if hidden := len(layers) - len(shown):
            yield Text(f"{plural(hidden, 'more layer')} (--verbose shows them)", "dim")
    if record.first is not None:
        yield from _first(layers[record.first])


def _table(record: LayersRecord, shown: Sequence[int]) -> RenderableType:
    table = plain_table()
    for name in ("verdict", "layer of A", "of B", "shape", "by"):
        table.add_column(name, no_wrap=name != "layer of A", overflow="fold")
    for name in ("difference", "legal", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for place in shown:
        row = record.layers[place]
        style = style_of(row.verdict)
        # What comes behind the first wrong layer computes with what that gave.
        follows = record.first is not None and place > record.first
        table.add_row(
            Text(verdict_text(row.verdict), "dim" if follows else style),
            Text(_left(row), "bold" if place == record.first else ""),
            row.right_layers[0] if row.right_layers else row.right,
            row.left_shape + _moved(row),
            row.aligned_by,
            number(row.difference),
            number(row.spread),
            number(row.ratio, 2),
        )
    return table


def _left(row: LayerRecord) -> str:
    operation = row.source.op_name if row.source is not None else ""
    return row.layers[0] if row.layers else operation or row.left


def _moved(row: LayerRecord) -> str:
    if row.left_shape.partition("[")[2] == row.right_shape.partition("[")[2]:
        return "" if row.axes == sorted(row.axes) else " transposed"
    return f" of {row.right_shape}"


def _first(row: LayerRecord) -> Iterator[RenderableType]:
    yield Text(f"first layer outside the rounding range: {row.name}", "bold red")
    where = source_facts(row.source) if row.source is not None else ()
    yield Padding(facts([("because", row.reason), *where]), (0, 0, 0, 2))
    if row.comparison is not None:
        yield leaf_diff(row.comparison, row.right)


def layers_total(record: LayersRecord) -> Text:
    """How many of each verdict, and what they rest on."""
    counts = Counter(row.verdict for row in record.layers)
    said = ", ".join(
        f"{count} {verdict.value}" for verdict, count in sorted(counts.items(), key=lambda c: c[0].rank)
    )
    total = Text(f"{plural(len(record.layers), 'layer')} compared: {said}", "bold")
    return total.append(f"\nlegal: {record.basis}", "not bold dim")


# The picture: how far each layer is off, and how far legal executions are, both on a logarithmic axis.

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 900, 240, 60, 20
#: Where the axis ends: nothing is closer than a bit of f64 but what is equal.
_LEAST, _MOST = -18, 2


@dataclass(frozen=True, slots=True)
class Mark:
    """A layer in the picture.

    Attributes:
        x: from the left.
        y: of its difference.
        legal: y of what legal executions differ by.
        state: class of its colour.
        about: what a pointer on it shows.
    """

    x: float
    y: float
    legal: float
    state: str
    about: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The picture.

    Attributes:
        width: of all.
        height: likewise.
        left: where the axis stands.
        marks: layers, in order.
        legal: the points of the line of legal executions.
        ticks: powers of ten, and where they stand.
    """

    width: int
    height: int
    left: int
    marks: Sequence[Mark]
    legal: str
    ticks: Sequence[tuple[str, float]]


def plot_of(record: LayersRecord) -> Plot:
    """The picture of a record."""
    exponents = [math.log10(v) for row in record.layers for v in (row.difference, row.spread) if v]
    low = max(_LEAST, math.floor(min(exponents, default=-8)))
    high = max(low + 1, min(_MOST, math.ceil(max(exponents, default=0))))

    def y(value: float | None) -> float:
        exponent = high if value is None else low if value == 0 else math.log10(value)
        share = (min(max(exponent, low), high) - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - 2 * _BOTTOM), 1)

    step = (_WIDTH - _LEFT - 20) / max(len(record.layers), 1)
    marks = [
        Mark(
            round(_LEFT + (place + 0.5) * step, 1),
            y(row.difference),
            y(row.spread),
            "passed" if row.verdict in AGREEING else "failed" if place == record.first else "skipped",
            f"{row.name}, {row.right}: {number(row.difference)}, legal {number(row.spread)}",
        )
        for place, row in enumerate(record.layers)
    ]
    ticks = [
        (f"1e{exponent}", y(10.0**exponent)) for exponent in range(low, high + 1, max(1, (high - low) // 6))
    ]
    legal = " ".join(f"{mark.x},{mark.legal}" for mark in marks)
    return Plot(_WIDTH, _HEIGHT, _LEFT, marks, legal, ticks)
