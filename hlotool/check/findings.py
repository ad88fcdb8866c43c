"""What `hlotool check` finds, as plain records."""

from __future__ import annotations

import enum

from hlotool.errors import DumpError
from hlotool.findings.errors import error_record
from hlotool.findings.records import ErrorRecord, Record, SourceRecord


class Severity(enum.Enum):
    """From gravest to least."""

    #: XLA rejects the program, or computes something else than it says.
    ERROR = "error"
    #: Legal, and very likely not what was meant.
    WARNING = "warning"
    #: Worth knowing.
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


class Finding(Record, frozen=True, kw_only=True):
    """One finding.

    Attributes:
        rule: its id.
        severity: how grave.
        message: what is wrong, in one sentence.
        file: where the HLO stands.
        line: in that file, 0 when the finding is about the whole.
        module: of the dump.
        instruction: that is concerned, empty when the finding is about the whole.
        source: the instruction, and the line of the user's program.
        path: instructions on the way from the cause to the finding, in order.
        details: further lines: what differs from what, what is allowed.
        remedy: what to do.
    """

    rule: str
    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    module: str = ""
    instruction: str = ""
    source: SourceRecord | None = None
    path: list[SourceRecord] = []
    details: list[str] = []
    remedy: str = ""


class FailedFile(Record, frozen=True, kw_only=True):
    """A file that could not be checked.

    Attributes:
        file: its path.
        module: of the dump.
        error: why.
    """

    file: str
    module: str
    error: ErrorRecord


def unreadable(path: str, error: DumpError) -> FailedFile:
    """What stands for a path under which there is no program."""
    return FailedFile(file=path, module="", error=error_record(error))
