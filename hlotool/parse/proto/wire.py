"""The wire format of protos, as far as it is read without their classes."""

from __future__ import annotations

#: Bytes of the longest base-128 number: 64 bits, seven in each.
_LONGEST = 10


def varint(content: bytes, at: int = 0) -> tuple[int, int]:
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
