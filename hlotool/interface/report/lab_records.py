"""What `fuzz`, `conformance` and `mutate` found, as plain data: the JSON formats."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from hlotool.judge.failures import Signature
from hlotool.runs.options.kept import RunOptions
from hlotool.system.records import CommandRecord, ErrorRecord, Record, SourceRecord

#: What became of a program. `refused`: the backend says that it cannot do it; `unjudged`: it is unknown what
#: is right.
Kind = Literal["agree", "wrong", "crashed", "hang", "nondeterministic", "refused", "unjudged"]
#: What became of a failure: a fault of its own; one that is in a file of known ones; the same as an earlier
#: one of this campaign; not there the second time; a difference that is no fault, since what the passes make
#: is the same function of real numbers, and a tie or a loss of digits decides.
FuzzStatus = Literal["new", "known", "duplicate", "unconfirmed", "excused"]


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
        cure: passes without which the result is right, the accused one where there is one.
        place: how far a compiler came that died, where its dump was asked for that.
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
    status: FuzzStatus
    kind: Kind
    key: str = ""
    title: str = ""
    signature: str = ""
    reason: str = ""
    level: str = ""
    pass_name: str = msgspec.field(name="pass", default="")
    cure: list[str] = []
    place: str = ""
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


#: What became of a trial, from best to worst.
Status: TypeAlias = Literal["passed", "allowed", "refused", "crashed", "failed"]
STATUSES: tuple[Status, ...] = ("passed", "allowed", "refused", "crashed", "failed")


class TrialRecord(Record, frozen=True, kw_only=True):
    """What became of one trial.

    Attributes:
        name: by which it is made again, such as `add:17` or `add#1234/0`.
        opcode: that it is about.
        element_type: of the data that it works on; empty where there are only tokens.
        title: what it shows.
        status: `passed`, the expected values; `allowed`, others that a freedom explains; `failed`, others
            that nothing explains; `refused`, the backend says that it cannot; `crashed`, it died, hung, or
            raised an error that is none of hlotool's.
        freedoms: that the result takes, by name.
        ulps: the furthest that a value is off within them, in the unit of the tolerance that allows it: ulps
            of the value, of the largest one of the array, or of the sum of absolute terms.
        message: what is wrong, or why there is no result.
        elements: how large it is, arguments and results together.
        in_company: alone it passes; what failed is a module that holds others, too.
        holds: of one that failed or crashed, the other operations in it, such as `add f32`.
        because: of these, the ones that fail by themselves.
    """

    name: str
    opcode: str
    element_type: str
    title: str
    status: Status
    freedoms: list[str] = []
    ulps: int = 0
    message: str = ""
    elements: int = 0
    in_company: bool = False
    holds: list[str] = []
    because: list[str] = []


class ExaminedRecord(Record, frozen=True, kw_only=True):
    """What a worker found.

    Attributes:
        trials: one record for each.
        fault: of hlotool's own, which no backend is to be blamed for: a traceback; empty where there is none.
    """

    trials: list[TrialRecord]
    fault: str = ""


class CellRecord(Record, frozen=True, kw_only=True):
    """An opcode on an element type.

    Attributes:
        opcode: see above.
        element_type: see above; empty for tokens.
        status: the worst of its trials.
        passed: trials that gave the expected values.
        allowed: others that a freedom explains.
        refused: those that the backend cannot run.
        crashed: those that it died of.
        failed: those that nothing explains.
        freedoms: that were taken, with the number of trials that took each.
        ulps: the furthest that a value is off within them.
    """

    opcode: str
    element_type: str
    status: Status
    passed: int = 0
    allowed: int = 0
    refused: int = 0
    crashed: int = 0
    failed: int = 0
    freedoms: dict[str, int] = {}
    ulps: int = 0

    @property
    def compared(self) -> int:
        """Trials that gave a result."""
        return self.passed + self.allowed + self.failed


class ConformanceRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool conformance --json` prints.

    Attributes:
        schema: name and version of this format.
        versions: of hlotool, Python, the packages that compute, and the platform.
        backend: as given.
        backend_version: what it says of itself.
        device: that it computes on.
        only: opcodes that were asked for; empty for all.
        types: element types likewise.
        cases: random cases for each opcode.
        seed: of these.
        counts: trials by status.
        cells: opcodes on element types, in the order of the table of opcodes.
        failures: trials whose result nothing explains, and those that the backend died of.
        smallest: of each cell with failures, the name of the smallest.
        refusals: trials that the backend does not run, with its reason.
        freedoms: that were taken, with what each allows.
        files: what was written of the smallest failures: by name of the trial, the program.
        error: what ended the command.
        notes: what else is to be said.
        exit_code: the command's exit status.
        seconds: wall time.
    """

    schema: Literal["hlotool.conformance/1"] = "hlotool.conformance/1"
    versions: dict[str, str]
    backend: str
    backend_version: str = ""
    device: str = ""
    only: list[str] = []
    types: list[str] = []
    cases: int = 0
    seed: int = 0
    counts: dict[str, int] = {}
    cells: list[CellRecord] = []
    failures: list[TrialRecord] = []
    smallest: list[str] = []
    refusals: list[TrialRecord] = []
    freedoms: dict[str, str] = {}
    files: dict[str, str] = {}
    error: ErrorRecord | None = None
    notes: list[str] = []
    exit_code: int = 0
    seconds: float = 0.0


def arguments_file(program: str) -> str:
    """Where the arguments of a program that was saved are."""
    return f"{program.removesuffix('.hlo')}.npz"


class MutantRecord(Record, frozen=True, kw_only=True):
    """One mutant.

    Attributes:
        fault: that was planted.
        family: of the fault: `tie`, `branch`, `movement`.
        imitates: the compiler bug that it stands for.
        computation: that it was planted in.
        source: the instruction that it was planted at.
        fate: `killed` by a set of inputs, `equivalent` by a proof, `unusable`, or `survived`: nothing shows
            it, and nothing is proved.
        by: the set of inputs that shows it, the proof that nothing can, why it is unusable; of a survivor the
            best verdict that was excused, nothing where results were the same on every set.
        seconds: that this took.
    """

    fault: str
    family: str
    imitates: str
    computation: str
    source: SourceRecord
    fate: str
    by: str = ""
    seconds: float = 0.0


class MutatedRecord(Record, frozen=True, kw_only=True):
    """The mutants of one program.

    Attributes:
        name: of the module.
        path: of the file that faults were planted in.
        judged_by: label of the stage that gave the expected values.
        sets: names of the sets of inputs.
        mutants: in the order in which they were drawn.
        is_late: the time was over before all of them were examined.
        notes: what became of the sizes of programs that are too large for this machine.
    """

    name: str
    path: str
    judged_by: str
    sets: list[str]
    mutants: list[MutantRecord]
    is_late: bool = False
    notes: list[str] = []


class MutateRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool mutate --json` prints.

    Attributes:
        schema: name and version of this format.
        versions: of hlotool, Python, the packages that compute, and the platform.
        path: as given.
        options: which inputs were in question.
        program: the mutants and what became of them; None where an error ended the command.
        score: share of the mutants that were killed, of those that are not equivalent; 1 where there is none.
        counts: mutants by fate.
        error: what ended the command.
        notes: what else is to be said.
        exit_code: the command's exit status.
        seconds: wall time.
    """

    schema: Literal["hlotool.mutate/1"] = "hlotool.mutate/1"
    versions: dict[str, str]
    path: str
    options: RunOptions
    program: MutatedRecord | None = None
    score: float = 1.0
    counts: dict[str, int] = {}
    error: ErrorRecord | None = None
    notes: list[str] = []
    exit_code: int = 0
    seconds: float = 0.0
