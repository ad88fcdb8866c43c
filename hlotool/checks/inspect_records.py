"""What `hlotool inspect` finds with `--memory` and with `--compile-time`, as plain records."""

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
        lost: bytes that lie unused between the values.
        live: what is alive then, the largest first; `lost` and what is in memory space 0 add up to it.
        savings: that free at least a hundredth of the peak each, the most effective first.
    """

    at: SourceRecord
    within: list[str]
    lost: int = 0
    live: list[LiveInfo]
    savings: list[SavingInfo]


class PassInfo(Record, frozen=True, kw_only=True):
    """A pass of the compiler, all its runs on one module together; those that change nothing leave no file.

    Attributes:
        name: as XLA names it; `code generation` for what follows the last file of HLO.
        pipelines: that it ran in.
        runs: that changed something.
        seconds: from the file before each of them to its own, passes between them that left no file included;
            None where files do not bear the times at which the compiler wrote them.
        added: instructions that were not there before.
        removed: instructions that are no longer there.
    """

    name: str
    pipelines: list[str]
    runs: int
    seconds: float | None = None
    added: int = 0
    removed: int = 0


class FoldedInfo(Record, frozen=True, kw_only=True):
    """A constant that a pass computed.

    Attributes:
        constant: its name in the stage where it first stands.
        shape: with layout.
        bytes: of the array.
        by: the pass.
        source: what it was computed by, and the line of the user's program.
    """

    constant: str
    shape: str
    bytes: int
    by: str
    source: SourceRecord


class UnrolledInfo(Record, frozen=True, kw_only=True):
    """A loop that became a copy of its body for each step.

    Attributes:
        by: the pass; `the frontend` for a loop of Python.
        added: instructions that this pass added in all; of the frontend those of the copies.
        what: in words.
        source: the loop, or the first copy, and the line of the user's program.
    """

    by: str
    added: int
    what: str
    source: SourceRecord


class AlarmInfo(Record, frozen=True, kw_only=True):
    """A slow operation that XLA has complained about in a log.

    Attributes:
        file: the log.
        what: `constant folding` or `compilation`.
        seconds: that it took; or the bound after which XLA said so, where it did not say more.
        is_over: XLA says how long it took in the end.
        module: that was compiled, where XLA says so, or has an instruction of that name.
        instruction: that was folded, as the log has it; empty for a whole compilation.
        source: the same, with the line of the user's program; None where no module here has it.
    """

    file: str
    what: str
    seconds: float
    is_over: bool = False
    module: str = ""
    instruction: str = ""
    source: SourceRecord | None = None


class CompileTimeInfo(Record, frozen=True, kw_only=True):
    """Where the time of a compilation went, as far as its dump shows.

    Attributes:
        seconds: from the first file to the last one; None where files do not bear their times.
        first: instructions that the compiler was given.
        last: instructions in the end.
        passes: that changed something, those that took longest first; by changes where times are not known.
        folded: large constants that passes made, the largest first.
        unrolled: loops.
        unfinished: that the compilation did not come to an end, and where.
    """

    seconds: float | None = None
    first: int = 0
    last: int = 0
    passes: list[PassInfo] = []
    folded: list[FoldedInfo] = []
    unrolled: list[UnrolledInfo] = []
    unfinished: str = ""
