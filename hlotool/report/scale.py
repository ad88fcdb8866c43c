"""That programs ran with smaller sizes than they have: in one line, and size by size."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.report.words import plural
from hlotool.scale.records import ScaleRecord


def scale_facts(scaled: ScaleRecord, verbose: bool) -> Iterator[tuple[str, str]]:
    """What was changed and why, by name; every size, and what this cannot see, where everything is shown."""
    yield "scaled", scaled.text
    if not verbose:
        return
    yield "", scaled.why
    for size in scaled.sizes:
        name = f": {size.name}" if size.name else ""
        yield "", f"{size.old} → {size.new}{name} ({plural(size.dimensions, 'dimension')})"
    for stay in scaled.stay:
        yield "", f"{stay.size} stays: {stay.why} ({plural(stay.dimensions, 'dimension')})"
    if scaled.constants:
        yield "", f"{plural(scaled.constants, 'constant')} changed with them"
    yield (
        "not seen",
        "a fault that only the full sizes show: the remainder of a tile, an index beyond 32 bits",
    )
