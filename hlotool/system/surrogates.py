"""Records as bytes, whatever names files have.

A file name is bytes; those that are no UTF-8 come to Python as lone surrogates, which no format of text can
hold. In records and reports they appear as `\\xNN`, as such bytes of a text do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

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
