"""The JSON that `hlotool mutate --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord, ErrorRecord, Record, SourceRecord
from hlotool.replay.options import RunOptions


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
