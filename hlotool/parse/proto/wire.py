"""The wire format of protos, as far as it is read without their classes."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap

#: Bytes of the longest base-128 number: 64 bits, seven in each.
_LONGEST = 10
#: How a field's content is written: a base-128 number, behind its length, or in so many bytes.
_VARINT, _LENGTH, _FIXED = 0, 2, {1: 8, 5: 4}


def varint(content: bytes | mmap, at: int = 0) -> tuple[int, int]:
    """The base-128 number at `at`: the position after it, and the number.

    Raises:
        ValueError: the content ends in it, or it is too long to be one.
    """
    value = 0
    for i, byte in enumerate(content[at : at + _LONGEST]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return at + i + 1, value
    raise ValueError("no base-128 number")


def fields(content: bytes | mmap, start: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """The fields of a message from `start` to `end`: their numbers, and where each one's content stands.

    Raises:
        ValueError: it is no message, or is cut short.
    """
    at = start
    while at < end:
        at, key = varint(content, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            after, _ = varint(content, at)
        elif wire_type == _LENGTH:
            at, length = varint(content, at)
            after = at + length
        elif wire_type in _FIXED:
            after = at + _FIXED[wire_type]
        else:
            raise ValueError(f"no field: wire type {wire_type}")
        if after > end:
            raise ValueError("the message ends within a field")
        yield number, (at, after)
        at = after
