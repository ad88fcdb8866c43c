"""What a comparison means for a search, and how a failure is told from others."""

from __future__ import annotations

from hlotool.findings.verdict import AGREEING, DIFFERING, Verdict
from hlotool.replay.records import ModuleRecord
from hlotool.search.answers import Answer

#: The sides differ and the program is not wrong for it.
_EXCUSED = frozenset({Verdict.RANGE, Verdict.SEMANTICS})


def answer_of(row: ModuleRecord) -> Answer:
    """Good where the two sides agree, bad where one is wrong, unusable where nothing can be said."""
    if row.verdict in DIFFERING:
        return Answer.BAD
    return Answer.GOOD if row.verdict in AGREEING | _EXCUSED else Answer.UNUSABLE


def wrong_outputs(row: ModuleRecord) -> list[tuple[int, ...]]:
    """Indices of the leaves that are wrong."""
    return [tuple(leaf.index) for leaf in row.leaves if leaf.verdict in DIFFERING]


def signature(row: ModuleRecord) -> str:
    """How a module fails, in a form that is equal for failures of one kind."""
    wrong = [leaf for leaf in row.leaves if leaf.verdict in DIFFERING]
    if not wrong:
        return row.verdict.value
    sources = dict.fromkeys(leaf.source.opcode for leaf in wrong if leaf.source)
    kinds = dict.fromkeys("NaN" if leaf.nan_mismatches else "value" for leaf in wrong)
    made = f" of {', '.join(sources)}" if sources else ""
    return f"{row.verdict.value}: {' and '.join(kinds)}{made}"
