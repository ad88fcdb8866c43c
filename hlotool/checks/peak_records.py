"""What `hlotool inspect --memory` finds, as plain records."""

from __future__ import annotations

from hlotool.facts.memory_kinds import Change, Kind
from hlotool.system.records import Record, SourceRecord


class LiveInfo(Record, frozen=True, kw_only=True):
    """A value that is alive at the peak.

    Attributes:
        source: the instruction that makes it, and the line of the user's program.
        index: of the leaf of that instruction's result.
        shape: with layout.
        bytes: of the array.
        kind: what it is to the program; a loop's state is what it was before the loop.
        space: memory space of its layout, 0 for the device's own.
    """

    source: SourceRecord
    index: list[int]
    shape: str
    bytes: int
    kind: Kind
    space: int = 0


class SavingInfo(Record, frozen=True, kw_only=True):
    """A change of the program that frees memory at the peak.

    Attributes:
        change: `donate` an argument that is not used from then on; `rematerialize` what is cheap to make, and
            used before and after the peak only; `offload` what is not cheap, and is not used for long.
        value: in question.
        bytes: that are free at the peak; what has to live longer instead is deducted.
        unused: instructions of its computation, among them the peak, that run without the value.
        result: of a donated argument, the leaf of the result that its memory can hold; it has that shape.
        peak: of the program with this change alone.
    """

    change: Change
    value: LiveInfo
    bytes: int
    unused: int
    result: list[int] | None = None
    peak: int


class PeakInfo(Record, frozen=True, kw_only=True):
    """The moment when a program needs the most memory, by the estimate `MemoryInfo.peak`.

    Attributes:
        at: the instruction that runs then.
        within: names of the loops and calls that it runs in, the outermost first.
        live: what is alive then, the largest first; the bytes add up to the peak.
        savings: that free at least a hundredth of the peak each, the most effective first.
    """

    at: SourceRecord
    within: list[str]
    live: list[LiveInfo]
    savings: list[SavingInfo]
