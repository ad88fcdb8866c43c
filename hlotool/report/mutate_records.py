"""The JSON that `hlotool mutate --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord, ErrorRecord
from hlotool.replay.options import RunOptions
from hlotool.search.mutation.records import MutatedRecord


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
