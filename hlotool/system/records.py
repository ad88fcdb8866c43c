r"""Records that every room passes on, and records as bytes, whatever names files have.

A file name is bytes; those that are no UTF-8 come to Python as lone surrogates, which no format of text can
hold. In records and reports they appear as `\xNN`, as such bytes of a text do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

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
        columns: of the line, from and up to, in bytes from 0; up to 0 is to its end, (0, 0) is unknown.
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
    columns: tuple[int, int] = (0, 0)
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


#: Every lone surrogate as text; Python keeps the byte 0xNN of a name as U+DCNN.
SURROGATES = {
    code: f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
    for code in range(0xD800, 0xE000)
}


def encoded(value: object, encode: Callable[[object], bytes]) -> bytes:
    """`value` by an encoder of msgspec's."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return encode(_legible(msgspec.to_builtins(value, builtin_types=(bytes,), str_keys=False)))


#: What turns the direction of text, or commands a terminal, and JSON lets through: marks of direction, DEL
#: and the C1 controls, as UTF-8.
_MARKS = re.compile(rb"\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]|\x7f|\xc2[\x80-\x9f]")


def json_of(value: object) -> bytes:
    """`value` as one line of JSON in which names cannot control a terminal; it reads back the same."""
    text = encoded(value, msgspec.json.encode)
    return _MARKS.sub(lambda mark: b"\\u%04x" % ord(mark[0].decode()), text)


def legible(text: str) -> str:
    """`text` with lone surrogates as `\\xNN`, so that it can be written as UTF-8."""
    return text.translate(SURROGATES)


def _legible(value: Any) -> Any:
    match value:
        case str():
            return legible(value)
        case dict():
            return {_legible(key): _legible(item) for key, item in value.items()}
        case list() | tuple():
            return [_legible(item) for item in value]
    return value
