"""What `hlotool inspect --compile-time` finds, as plain records."""

from __future__ import annotations

from hlotool.system.records import Record, SourceRecord


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
