"""What many findings have in common, as plain data: the part of a record that a fleet is summed up by."""

from __future__ import annotations

from hlotool.findings.records import Record, SourceRecord
from hlotool.findings.signature import Signature


class FolderRecord(Record, frozen=True, kw_only=True):
    """A place in which a cause shows.

    Attributes:
        folder: a dump directory, such as that of a host; empty for the current one.
        count: how many findings of the cause are in it.
    """

    folder: str
    count: int


class CauseRecord(Record, frozen=True, kw_only=True):
    """Findings that come from the same thing, as far as it was located.

    Attributes:
        id: the same for the same cause in another run, wherever its dump is.
        kind: a verdict; of `check` a rule, of `bisect` the level at which the fault came in.
        what: the cause in one line.
        signature: what the findings share, and other ones do not.
        pass_name: the accused pass; empty where none is known.
        source: the first wrong instruction of the example; null where nothing was located.
        count: number of findings.
        programs: of how many different programs, whatever these are called; 0 where nobody looked.
        rows: their positions among the entries that the command lists (`modules`, `findings`, `culprits`).
        example: the module that shows it worst.
        file: of the example.
        folders: where it shows, the place with the most findings first.
        next: the command that looks closer at the example; empty where there is none.
    """

    id: str
    kind: str
    what: str
    signature: Signature
    pass_name: str = ""
    source: SourceRecord | None = None
    count: int
    programs: int = 0
    rows: list[int]
    example: str
    file: str = ""
    folders: list[FolderRecord] = []
    next: str = ""
