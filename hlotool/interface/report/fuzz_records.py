"""The JSON that `hlotool fuzz --json` prints."""

from __future__ import annotations

from typing import Literal

import msgspec

from hlotool.judge.failures import Signature
from hlotool.system.records import CommandRecord, ErrorRecord, Record

#: What became of a program. `refused`: the backend says that it cannot do it; `unjudged`: it is unknown what
#: is right.
Kind = Literal["agree", "wrong", "crashed", "hang", "nondeterministic", "refused", "unjudged"]
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


class Tally(Record, frozen=True, kw_only=True):
    """The counts of a campaign.

    Attributes:
        drawn: programs that were drawn and judged.
        kinds: programs by what became of them.
        origins: programs by what made them.
        refused: why the backend refuses programs, without names and numbers.
        unjudged: the same for reasons why what is right is unknown.
        passes: that changed programs, of those that were looked at.
        words: opcodes, types and attributes that were compiled.
        seconds: of all calls.
        looked: seconds of these that looking into failures took.
    """

    drawn: int = 0
    kinds: dict[str, int] = {}
    origins: dict[str, int] = {}
    refused: dict[str, int] = {}
    unjudged: dict[str, int] = {}
    passes: list[str] = []
    words: list[str] = []
    seconds: float = 0.0
    looked: float = 0.0

    @property
    def accepted(self) -> int:
        """Programs that the backend did not refuse."""
        return self.drawn - self.kinds.get("refused", 0)

    @property
    def rate(self) -> float:
        """Programs a minute, while programs were judged."""
        judging = self.seconds - self.looked
        return 60.0 * self.drawn / judging if judging > 0 else 0.0


class CampaignOptions(Record, frozen=True, kw_only=True):
    """What a campaign is.

    Attributes:
        backend: in question.
        reference: that gives the expected values.
        paths: real programs to change, as given.
        minutes: it may take; null for no limit.
        programs: to judge; 0 for no limit.
        seed: of programs and inputs.
        integers: only programs without floats.
        devices: that programs are for.
        jobs: processes.
        known: files of known faults, as given.
    """

    backend: str
    reference: str = "numpy"
    paths: list[str] = []
    minutes: float | None = None
    programs: int = 0
    seed: int = 0
    integers: bool = False
    devices: int = 1
    jobs: int = 0
    known: list[str] = []


class FuzzRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool fuzz --json` prints.

    Attributes:
        schema: name and version of this format.
        versions: of hlotool, Python, the packages that compute, the platform and the backend.
        options: what the campaign is.
        folder: of the campaign: programs that failed in `raw/`, bundles in `faults/`.
        tally: programs by what became of them, and what was reached.
        rate: programs a minute, while programs were judged.
        faults: every failure that was looked into: faults of their own, known ones, further cases, and what
            did not fail a second time.
        distinct: how many faults of their own.
        pending: failures that have not been looked into; running the same command again does.
        error: what ended the command.
        interrupted: the user stopped it.
        notes: what else is to be said.
        exit_code: the command's exit status.
        seconds: wall time of this call.
    """

    schema: Literal["hlotool.fuzz/1"] = "hlotool.fuzz/1"
    versions: dict[str, str]
    options: CampaignOptions
    folder: str
    tally: Tally = Tally()
    rate: float = 0.0
    faults: list[FaultRecord] = []
    distinct: int = 0
    pending: int = 0
    error: ErrorRecord | None = None
    interrupted: bool = False
    notes: list[str] = []
    exit_code: int = 0
    seconds: float = 0.0
