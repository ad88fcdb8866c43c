"""What `hlotool exec --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.capture.processes import ProcessRecord
from hlotool.errors import ExitCode
from hlotool.findings.records import CommandRecord, ErrorRecord, Record
from hlotool.report.bisect_records import BisectRecord
from hlotool.report.records import RunRecord


class ProgramRecord(Record, frozen=True, kw_only=True):
    """The program that was run.

    Attributes:
        command: as given.
        status: its exit status; negative: the number of the signal that ended it.
        seconds: wall time.
        processes: those that loaded XLA.
    """

    command: list[str]
    status: int
    seconds: float
    processes: list[ProcessRecord] = []


class ExecRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool exec --json` prints.

    Attributes:
        program: what was run, and how it ended.
        dump: folder of the dump; empty where it was removed, as nothing in it is worth a second look.
        run: what the replays found, as `hlotool run` has it.
        bisect: what the search found, where one was asked for and something was wrong.
        error: why the whole command came to nothing.
        interrupted: the user stopped the replays or the search; what is here was finished before.
    """

    schema: Literal["hlotool.exec/1"] = "hlotool.exec/1"
    versions: dict[str, str]
    program: ProgramRecord
    dump: str = ""
    run: RunRecord
    bisect: BisectRecord | None = None
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0

    @property
    def notes(self) -> list[str]:
        """Of both parts."""
        return self.run.notes + (self.bisect.notes if self.bisect else [])


def exec_exit_code(replays: int, status: int) -> int:
    """The exit status of the command.

    A mismatch is what the command was called for; else the program's own failure is passed on, with 128 and
    the number of the signal as a shell does it; else what the replays say.
    """
    if replays == ExitCode.MISMATCH or not status:
        return replays
    return status if status > 0 else 128 - status
