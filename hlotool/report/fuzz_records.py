"""The JSON that `hlotool fuzz --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord, ErrorRecord, Record
from hlotool.fuzz.records import FaultRecord
from hlotool.fuzz.tally import Tally


class CampaignOptions(Record, frozen=True, kw_only=True):
    """What a campaign is.

    Attributes:
        backend: in question.
        reference: that gives the expected values.
        paths: real programs to change, as given.
        minutes: it may take; null for no limit.
        programs: to judge; 0 for no limit.
        seed: of programs and inputs.
        integers: only programs without floats.
        devices: that programs are for.
        jobs: processes.
        known: files of known faults, as given.
    """

    backend: str
    reference: str = "numpy"
    paths: list[str] = []
    minutes: float | None = None
    programs: int = 0
    seed: int = 0
    integers: bool = False
    devices: int = 1
    jobs: int = 0
    known: list[str] = []


class FuzzRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool fuzz --json` prints.

    Attributes:
        schema: name and version of this format.
        versions: of hlotool, Python, the packages that compute, the platform and the backend.
        options: what the campaign is.
        folder: of the campaign: programs that failed in `raw/`, bundles in `faults/`.
        tally: programs by what became of them, and what was reached.
        rate: programs a minute, while programs were judged.
        faults: every failure that was looked into: faults of their own, known ones, further cases, and what
            did not fail a second time.
        distinct: how many faults of their own.
        pending: failures that nobody has looked into; the same command goes on with them.
        error: what ended the command.
        interrupted: the user stopped it.
        notes: what else is to be said.
        exit_code: the command's exit status.
        seconds: wall time of this call.
    """

    schema: Literal["hlotool.fuzz/1"] = "hlotool.fuzz/1"
    versions: dict[str, str]
    options: CampaignOptions
    folder: str
    tally: Tally = Tally()
    rate: float = 0.0
    faults: list[FaultRecord] = []
    distinct: int = 0
    pending: int = 0
    error: ErrorRecord | None = None
    interrupted: bool = False
    notes: list[str] = []
    exit_code: int = 0
    seconds: float = 0.0
