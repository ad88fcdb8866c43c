"""What became of mutants, as plain data."""

from __future__ import annotations

from hlotool.findings.records import Record, SourceRecord


class MutantRecord(Record, frozen=True, kw_only=True):
    """One mutant.

    Attributes:
        fault: that was planted.
        family: of the fault: `tie`, `branch`, `movement`.
        imitates: the compiler bug that it stands for.
        computation: that it was planted in.
        source: the instruction that it was planted at.
        fate: `killed`, `equivalent`, `survived` or `unusable`.
        by: the set of inputs that shows it, the proof that nothing can, or why it is not known.
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
