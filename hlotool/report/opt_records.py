"""What `hlotool opt --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import Record


class PassRecord(Record, frozen=True, kw_only=True):
    """One run of one pass.

    Attributes:
        pipeline: it ran in.
        name: of the pass.
        changes: how often each transformation happened.
        instructions_before: in the whole module.
        instructions_after: likewise.
        seconds: it took.
    """

    pipeline: str
    name: str
    changes: dict[str, int]
    instructions_before: int
    instructions_after: int
    seconds: float


class OptRecord(Record, frozen=True, kw_only=True):
    """What `hlotool opt --json` prints.

    Attributes:
        schema: name and version of this format.
        versions: of hlotool, Python, the packages that compute, and the platform.
        path: as given.
        passes: as given.
        runs: of passes, in order.
        changed: some pass changed the program.
        text: of the program as it became; empty when it was written to a file.
        output: the file.
        exit_code: the command's exit status.
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


class OptionRecord(Record, frozen=True, kw_only=True):
    """One option of a pass.

    Attributes:
        name: as in `--passes 'pass{name=value}'`.
        values: what it takes, in words.
        default: its value when it is not given; null when it must be.
        about: what it means.
    """

    name: str
    values: str
    default: str | None
    about: str


class PassDescription(Record, frozen=True, kw_only=True):
    """A pass that `--passes` takes, or a pipeline of them.

    Attributes:
        name: as on the command line.
        about: what it does; of a pipeline the passes that it stands for.
        options: of a pass.
        error: why it cannot be loaded.
    """

    name: str
    about: str
    options: list[OptionRecord] = []
    error: str = ""


class PassesRecord(Record, frozen=True, kw_only=True):
    """What `hlotool opt --list-passes --json` prints.

    Attributes:
        schema: name and version of this format.
        passes: by name.
        pipelines: names that stand for several passes.
        exit_code: the command's exit status.
    """

    schema: Literal["hlotool.passes/1"] = "hlotool.passes/1"
    passes: list[PassDescription]
    pipelines: list[PassDescription]
    exit_code: int = 0
