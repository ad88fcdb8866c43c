"""Records as bytes, whatever names files have.

A file name is bytes; those that are no UTF-8 come to Python as lone surrogates, which no format of text can
hold. In records and reports they appear as `\\xNN`, as such bytes of a text do.
"""

from __future__ import annotations

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
