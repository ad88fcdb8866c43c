"""What `conformance` and `mutate` found, as plain data: the JSON formats."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hlotool.runs.options.kept import RunOptions
from hlotool.system.records import CommandRecord, ErrorRecord, Record, SourceRecord

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
