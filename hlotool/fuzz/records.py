"""What a campaign finds, as records."""

from __future__ import annotations

from typing import Literal

import msgspec

from hlotool.findings.records import Record
from hlotool.findings.signature import Signature
from hlotool.fuzz.oracle import Kind

#: What became of a failure: a fault of its own; one that is in a file of known ones; the same as an earlier
#: one of this campaign; not there the second time; a difference that is no fault, since what the passes make
#: is the same function of real numbers, and a tie or a loss of digits decides.
Status = Literal["new", "known", "duplicate", "unconfirmed", "excused"]


class FailureRecord(Record, frozen=True, kw_only=True):
    """A program that failed once.

    Attributes:
        index: of the program in the campaign.
        kind: `wrong`, `crashed`, `hang` or `nondeterministic`.
        failure: how, as far as a smaller program can fail alike.
        reason: in one line.
        backend: spec that failed.
        reference: what gave the expected values.
        set: of inputs.
        origin: what made the program.
        program: file of it; the arguments lie beside it as .npz.
        cured: spec of the backend without the pass of a frequent fault, with which the result is right; empty
            where there is none.
    """

    index: int
    kind: Kind
    failure: Signature | None = None
    reason: str = ""
    backend: str
    reference: str = "numpy"
    set: str = ""
    origin: str = ""
    program: str = ""
    cured: str = ""


class FaultRecord(Record, frozen=True, kw_only=True):
    """A failure that was looked into, as far as that came.

    Attributes:
        number: of the fault, from 1, in the order in which they were found; 0 for further cases and the like.
        status: see `Status`.
        kind: `wrong`, `crashed`, `hang` or `nondeterministic`.
        key: what failures of one fault share: pass, pattern, opcodes.
        title: in one line.
        signature: how the smallest program fails.
        reason: in one line.
        level: where it came in: `pass`, `codegen`, `runtime-library`; empty where that is not known.
        pass: the accused pass; empty where none is.
        opcodes: of the smallest program.
        work: opcodes of what the accused pass was given at the spot, else of the smallest program, without
            those that only move values about: failures of one fault have them in common.
        families: of the types that the smallest program does this work on, such as `abs of signed`.
        instructions: its size, parameters not counted.
        before: size of the program that failed first.
        backend: spec that fails.
        program: file of the program that failed first.
        index: of that program.
        bundle: folder of the repro bundle; empty where none was written.
        triggers: `repro verify` says of the bundle that it fails in the same way.
        known: name of the known fault that this is.
        link: to its report.
        duplicate_of: number of the fault that it is another case of.
        count: failures that are this fault, this one included.
        problems: stages that came to nothing, a line for each.
        seconds: that it took to look into it.
    """

    number: int = 0
    status: Status
    kind: Kind
    key: str = ""
    title: str = ""
    signature: str = ""
    reason: str = ""
    level: str = ""
    pass_name: str = msgspec.field(name="pass", default="")
    opcodes: list[str] = []
    work: list[str] = []
    families: list[str] = []
    instructions: int = 0
    before: int = 0
    backend: str = ""
    program: str = ""
    index: int = 0
    bundle: str = ""
    triggers: bool = False
    known: str = ""
    link: str = ""
    duplicate_of: int = 0
    count: int = 1
    problems: list[str] = []
    seconds: float = 0.0
