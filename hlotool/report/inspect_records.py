"""The JSON that `hlotool inspect --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.check.findings import FailedFile
from hlotool.findings.records import CommandRecord
from hlotool.inspect.records import FunctionInfo, ModuleInfo


class InspectRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool inspect --json` prints.

    Attributes:
        paths: as given.
        functions: of the user's program, in the order of the dump.
        modules: in the order of the dump.
        failures: paths that hold no HLO, where there are others that do.
        notes: what was passed over.
    """

    schema: Literal["hlotool.inspect/1"] = "hlotool.inspect/1"
    versions: dict[str, str]
    paths: list[str]
    functions: list[FunctionInfo] = []
    modules: list[ModuleInfo] = []
    failures: list[FailedFile] = []
    notes: list[str] = []
    exit_code: int = 0
    seconds: float = 0.0
