"""What is said of passes and of what they did, as plain data."""

from __future__ import annotations

from hlotool.system.records import Record


class OptionRecord(Record, frozen=True):
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


class PassDescription(Record, frozen=True):
    """A pass that `--passes` takes, or a pipeline of them.

    Attributes:
        name: as on the command line.
        about: what it does; of a pipeline the passes that it stands for.
        options: of a pass.
        xla: what XLA calls it; empty where that is the same, or where it has none like it.
        error: why it cannot be loaded.
    """

    name: str
    about: str
    options: list[OptionRecord] = []
    xla: str = ""
    error: str = ""


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
