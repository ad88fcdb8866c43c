"""What `--show-scale --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord
from hlotool.scale.records import PlanRecord


class ScalePlansRecord(CommandRecord, frozen=True, kw_only=True):
    """What `--show-scale --json` prints, of whichever command.

    Attributes:
        versions: of hlotool, Python, the packages that compute, and the platform.
        paths: as given.
        scale: as given.
        memory: bytes that a comparison may take; None where there is no limit.
        seconds: that a comparison may take.
        plans: one per module, or per pair of programs.
        notes: what was passed over.
        exit_code: the command's exit status.
    """

    schema: Literal["hlotool.scale/1"] = "hlotool.scale/1"
    versions: dict[str, str]
    paths: list[str]
    scale: str
    memory: int | None
    seconds: float
    plans: list[PlanRecord]
    notes: list[str] = []
    exit_code: int = 0
