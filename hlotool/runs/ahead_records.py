"""What compilers make of programs that they were given, for programs and people."""

from __future__ import annotations

from hlotool.checks.explain.records import MatchRecord
from hlotool.checks.records import StageInfo
from hlotool.system.records import ErrorRecord, Record

#: What a program is that its compiler takes, and one that it does not take.
COMPILES, REFUSED = "compiles", "refused"


class SpaceRecord(Record, frozen=True, kw_only=True):
    """A memory of a device.

    Attributes:
        space: `hbm`, `vmem`, `smem`, `host`, or what else the compiler calls it.
        used: bytes that the program takes of it, its arguments and results included.
        capacity: bytes that there are; None where that is not known.
    """

    space: str
    used: int
    capacity: int | None = None


class LaunchesRecord(Record, frozen=True, kw_only=True):
    """What a GPU is asked to do by one execution, loops once.

    Attributes:
        kernels: that were compiled.
        launches: of these.
        calls: everything else that is executed: calls of libraries, copies, loops, collectives.
    """

    kernels: int
    launches: int
    calls: int


class CompiledRecord(Record, frozen=True, kw_only=True):
    """A program, compiled.

    Attributes:
        name: of the program.
        path: where it stands.
        outcome: `compiles`, `refused` (the message says why), or how the compiler ended: `crashed`,
            `timed out`, `out of memory`; `unsupported` where there is none, `bad input` of no program.
        compiler: its version, and what it compiles for; empty where it did not get that far.
        folder: its dump.
        error: why it does not compile.
        memory: that one device needs, by space.
        parts: bytes by what they are for, as the compiler counts them; those with `host_` are the host's.
        launches: of a GPU's program.
        program: what the compiler ends with; None where it does not compile, or cannot be read.
        warnings: what the compiler complained of.
        explained: what is known of those, and of the error.
        verdict: of the program as it was compiled by the one that was given; empty where they were not run.
        reason: for the verdict, in one line.
        seconds: of the compilation.
    """

    name: str
    path: str
    outcome: str
    compiler: str = ""
    folder: str = ""
    error: ErrorRecord | None = None
    memory: list[SpaceRecord] = []
    parts: dict[str, int] = {}
    launches: LaunchesRecord | None = None
    program: StageInfo | None = None
    warnings: list[str] = []
    explained: list[MatchRecord] = []
    verdict: str = ""
    reason: str = ""
    seconds: float = 0.0
