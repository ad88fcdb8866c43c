"""What a run exercised, as plain data."""

from __future__ import annotations

from hlotool.system.records import Record, SourceRecord


class DecisionRecord(Record, frozen=True, kw_only=True):
    """One decision of a program.

    Attributes:
        kind: what is decided, such as `comparison` or `trip count`.
        dimension: of the indexed array, of a start index; None for others.
        source: the instruction that decides.
        occurred: outcomes that were seen.
        never: outcomes that sensible inputs may have and none had.
        odd: outcomes that only unusual inputs have (NaN, indices out of range, overflow) and none had.
        unreachable: outcomes that no inputs have, as is proved.
        counts: sensible inputs may decide in several ways.
    """

    kind: str
    dimension: int | None = None
    source: SourceRecord
    occurred: list[str] = []
    never: list[str] = []
    odd: list[str] = []
    unreachable: list[str] = []
    counts: bool = True


class CoverageRecord(Record, frozen=True, kw_only=True):
    """Which outcomes decisions of a program had: all of the reference, or those that only the tested one has.

    Attributes:
        decisions: how many sensible inputs may decide in several ways.
        covered: those of which every sensible outcome occurred or is unreachable.
        outcomes: sensible outcomes of those decisions, without unreachable ones.
        occurred: how many of these were seen.
        odd_outcomes: outcomes that only unusual inputs have, of all decisions.
        odd_occurred: how many of these were seen.
        never: decisions that are not covered, in textual order.
        listing: all decisions, where that was asked for.
    """

    decisions: int
    covered: int
    outcomes: int
    occurred: int
    odd_outcomes: int = 0
    odd_occurred: int = 0
    never: list[DecisionRecord] = []
    listing: list[DecisionRecord] = []
