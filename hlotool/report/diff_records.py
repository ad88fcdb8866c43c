"""The JSON that `hlotool diff --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.diff.records import ProgramDiffRecord, ResultDiffRecord
from hlotool.findings.records import CommandRecord
from hlotool.findings.verdict import DIFFERING


class DiffRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool diff --json` prints.

    Attributes:
        left: path as given.
        right: likewise.
        kind: `programs` or `results`.
        programs: pairs of programs that were compared.
        results: pairs of arrays that were compared.
        only_left: programs or arrays without a partner.
        only_right: likewise.
        notes: what was passed over.
    """

    schema: Literal["hlotool.diff/1"] = "hlotool.diff/1"
    versions: dict[str, str]
    left: str
    right: str
    kind: str
    programs: list[ProgramDiffRecord] = []
    results: list[ResultDiffRecord] = []
    only_left: list[str] = []
    only_right: list[str] = []
    notes: list[str] = []
    exit_code: int = 0


def differs(record: DiffRecord) -> bool:
    """Whether anything differs, or is on one side only."""
    return bool(
        record.only_left
        or record.only_right
        or any(not program.is_same and program.error is None for program in record.programs)
        or any(result.comparison.verdict in DIFFERING for result in record.results)
    )
