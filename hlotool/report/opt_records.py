"""What `hlotool opt --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord
from hlotool.passes.manager import PassRecord
from hlotool.passes.pipeline import PassDescription


class OptRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool opt --json` prints.

    Attributes:
        path: as given.
        passes: as given.
        runs: of passes, in order.
        changed: some pass changed the program.
        text: of the program as it became; empty when it was written to a file.
        output: the file.
    """

    schema: Literal["hlotool.opt/1"] = "hlotool.opt/1"
    versions: dict[str, str]
    path: str
    passes: str
    runs: list[PassRecord]
    changed: bool
    text: str = ""
    output: str = ""
    exit_code: int = 0


class PassesRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool opt --list-passes --json` prints.

    Attributes:
        passes: by name.
        pipelines: names that stand for several passes.
    """

    schema: Literal["hlotool.passes/1"] = "hlotool.passes/1"
    passes: list[PassDescription]
    pipelines: list[PassDescription]
    exit_code: int = 0
