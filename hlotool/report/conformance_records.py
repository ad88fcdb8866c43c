"""The JSON that `hlotool conformance --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.conformance.records import CellRecord, TrialRecord
from hlotool.findings.records import CommandRecord, ErrorRecord


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
