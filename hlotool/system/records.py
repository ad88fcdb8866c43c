"""Records that every room passes on: where an instruction comes from, and why something came to nothing."""

from __future__ import annotations

import math

import msgspec


class Record(msgspec.Struct, frozen=True):
    """Base of all records."""


class ConfigurationRecord(Record, frozen=True, kw_only=True):
    """A configuration that a command took defaults of options from.

    Attributes:
        file: where it stands; empty where the user wanted none.
        named: the user named the file, or wanted none; otherwise it was found.
        options: keys that it sets for this command, and that the command line leaves to it.
        replaced: keys that it sets, and that the command line or the environment sets, too.
    """

    file: str
    named: bool
    options: list[str] = []
    replaced: list[str] = []


class CommandRecord(Record, frozen=True, kw_only=True):
    """What a command prints with `--json`. What several have they call alike.

    Attributes:
        schema: name and version of this format.
        configuration: where defaults of options come from; null where no file sets any.
        versions: of hlotool, Python, the packages that compute, and the platform.
        exit_code: the command's exit status.
        seconds: wall time.
    """

    schema: str = ""
    configuration: ConfigurationRecord | None = None


def finite_or_none(value: float) -> float | None:
    """What JSON can hold of a number: None for NaN and infinities."""
    return float(value) if math.isfinite(value) else None


class SourceRecord(Record, frozen=True, kw_only=True):
    """Where an instruction comes from.

    Attributes:
        instruction: its HLO name.
        opcode: its opcode.
        line: in the HLO text, 0 when unknown.
        op_name: the frontend's name path, such as `jit(step)/dot_general`.
        file: of the user's program, empty when the dump does not tell.
        file_line: line in `file`.
        function: of the user's program.
        library: the innermost frame, `FILE:LINE`, where that is in an installed package; `file` is then who
            called it, as far as the dump tells.
    """

    instruction: str
    opcode: str
    line: int = 0
    op_name: str = ""
    file: str = ""
    file_line: int = 0
    function: str = ""
    library: str = ""

    @property
    def user_line(self) -> str:
        """`train.py:12`, without a number that is not known; empty where the file is not."""
        return f"{self.file}:{self.file_line}" if self.file and self.file_line else self.file

    @property
    def place(self) -> str:
        """The user's line, else the frontend's name, else a library's line; empty where nothing is known."""
        return self.user_line or self.op_name or self.library


class ErrorRecord(Record, frozen=True, kw_only=True):
    """Why a module (or the whole command) came to nothing.

    Attributes:
        kind: name of the error class in `hlotool.errors`.
        message: one line.
        instruction: the instruction's name, if one is to blame.
        path: file of the position below.
        line: 0 when unknown.
        column: 0 when unknown.
        log: last lines that the dead process wrote, or the text around a syntax error.
    """

    kind: str
    message: str
    instruction: str | None = None
    path: str | None = None
    line: int = 0
    column: int = 0
    log: str = ""
