"""What a file is, judged by its content: for names that say nothing, and for names that lie."""

from __future__ import annotations

import re

from hlotool.dump.names import Format, Kind
from hlotool.dump.sections import looks_like_hlo
from hlotool.parse.proto.wire import varint

#: As much of a file as is looked at.
HEAD_BYTES = 1 << 16

_TEXT_PROTO_MODULE = re.compile(rb"^\s*(?:hlo_module|hlo)\s*:?\s*\{")
_HEADER_NAME = re.compile(rb"^HloModule[ \t]+%?([^\s,]+)", re.MULTILINE)
#: Each of the messages read here begins with another one (or, HloModuleProto, with its name), so the number
#: of messages that open one in the other before the first string tells them apart. HloProto and the small
#: form of HloUnoptimizedSnapshot look alike; the reader of PLAIN protos takes either. The large form of the
#: latter begins with its length.
_NESTING = {0: Kind.PLAIN, 1: Kind.PLAIN, 2: Kind.SNAPSHOT}


def sniff(head: bytes) -> tuple[Kind, Format]:
    """Kind and format of a file that begins with `head`: PLAIN, SNAPSHOT, or UNKNOWN."""
    if _is_text(head):
        if _TEXT_PROTO_MODULE.match(head):
            return Kind.UNOPTIMIZED_SNAPSHOT, Format.TEXT_PROTO
        return (Kind.PLAIN, Format.TEXT) if looks_like_hlo(head) else (Kind.UNKNOWN, Format.OTHER)
    kind = _NESTING.get(_proto_nesting(head), Kind.UNKNOWN)
    if kind is Kind.UNKNOWN and _proto_nesting(head, has_length=True) == 1:
        kind = Kind.UNOPTIMIZED_SNAPSHOT
    return kind, Format.PROTO if kind is not Kind.UNKNOWN else Format.OTHER


def module_name(head: bytes) -> str:
    """The name on the HloModule line, or empty."""
    found = _HEADER_NAME.search(head)
    return found.group(1).decode("utf-8", errors="backslashreplace") if found else ""


def _is_text(head: bytes) -> bool:
    return b"\0" not in head[:4096] and not any(c < 9 for c in head[:256])


def _proto_nesting(head: bytes, has_length: bool = False) -> int:
    """How many messages are opened, each as field 1 of the one around it, before a plausible module name.

    -1 where there is no such name. With `has_length` the outermost message stands behind its length.
    """
    try:
        at, depth = varint(head)[0] if has_length else 0, 0
        while depth <= max(_NESTING) and head[at : at + 1] == b"\x0a":
            start, length = varint(head, at + 1)
            content = head[start : start + length]
            if len(content) == length and content and _is_name(content):
                return depth
            at, depth = start, depth + 1
    except ValueError:
        pass
    return -1


def _is_name(content: bytes) -> bool:
    return len(content) < 4096 and all(32 < c != 127 for c in content)
