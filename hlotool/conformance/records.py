"""What became of trials, as plain data: sent by workers, kept in journals, printed as JSON."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hlotool.findings.records import Record

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
