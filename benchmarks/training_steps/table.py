"""What the benchmark prints: a line for each comparison, totals by way, faults by kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.training_steps.faults import Planted
from benchmarks.training_steps.measure import Row

_AGREEING = ("identical", "agree", "rounding")


def line(row: Row) -> str:
    """One comparison in Markdown."""
    counts = " · ".join(f"{count} {verdict}" for verdict, count in sorted(row.outputs.items()))
    cells = [row.program, row.way, row.verdict or "–", counts or "–", f"{row.seconds:.1f}", row.reason[:90]]
    return f"| {' | '.join(cells)} |"


def header() -> Iterator[str]:
    yield "| program | way | whole step | outputs | seconds | reason |"
    yield "|---|---|---|---|---|---|"


def totals(rows: Sequence[Row]) -> Iterator[str]:
    """Of each way: how many steps and outputs agree, and what the others are."""
    yield "| way | steps | agree | unstable | other | outputs | agree | unstable | other |"
    yield "|---|---|---|---|---|---|---|---|---|"
    by_way: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_way[row.way or "came to nothing"].append(row)
    for way, some in by_way.items():
        steps = Counter(row.verdict for row in some)
        outputs = sum((Counter(row.outputs) for row in some), Counter[str]())
        yield f"| {way} | {' | '.join([*_shares(steps), *_shares(outputs)])} |"


def _shares(counts: Counter[str]) -> Iterator[str]:
    total = sum(counts.values())
    good = sum(counts[verdict] for verdict in _AGREEING)
    others = {v: n for v, n in counts.items() if v not in (*_AGREEING, "unstable")}
    yield str(total)
    yield f"{good} ({100 * good / max(1, total):.1f} %)"
    yield str(counts["unstable"])
    yield " · ".join(f"{n} {v or 'none'}" for v, n in sorted(others.items())) or "0"


def fault_table(faults: Sequence[Planted]) -> Iterator[str]:
    """By kind of fault: planted, without effect, seen, and what the others were called."""
    yield "| fault | planted | no effect | seen | missed as |"
    yield "|---|---|---|---|---|"
    by_kind: dict[str, list[Planted]] = defaultdict(list)
    for fault in faults:
        by_kind[fault.kind].append(fault)
    for kind, some in [*sorted(by_kind.items()), ("all", list(faults))]:
        real = [fault for fault in some if fault.has_effect]
        missed = Counter(fault.verdict for fault in real if not fault.is_seen)
        seen = len(real) - sum(missed.values())
        words = " · ".join(f"{n} {verdict}" for verdict, n in missed.most_common())
        share = f"{seen} of {len(real)} ({100 * seen / len(real):.0f} %)" if real else "0 of 0"
        yield f"| {kind} | {len(some)} | {len(some) - len(real)} | {share} | {words} |"
