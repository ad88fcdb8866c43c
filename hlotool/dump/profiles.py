"""HLO in a profile: the programs that an `.xplane.pb` holds beside its events.

The profiler keeps the HloProto of each program that ran as a statistic of an event's description, in the
plane `/host:metadata`. They are found by the wire format: a profile may be large, and little of it is wanted.

XLA: tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlotool.parse.proto.wire import fields

Span = tuple[int, int]

_PLANES, _PLANE_NAME, _EVENT_DESCRIPTIONS, _MAP_VALUE, _STATISTICS, _BYTES = 1, 2, 4, 2, 5, 6
#: An XSpace begins with its first plane, a plane with its number (if not 0) and its name.
_PROFILE = re.compile(
    rb"\x0a[\x00-\xff]{1,5}?(?:\x08[\x00-\xff]{1,10}?)?"
    rb"\x12[\x01-\x40](?:/host:|/device:|Task Environment|#Chip)"
)
_METADATA = b"/host:metadata"


def is_profile(head: bytes) -> bool:
    """Whether a file that begins with `head` is a profile."""
    return _PROFILE.match(head) is not None


def programs_in(content: bytes) -> list[Span]:
    """Where the HloProtos of a profile begin and end, each program once.

    Raises:
        ValueError: it is damaged.
    """
    found: dict[bytes, Span] = {}
    for plane in _inside(content, (0, len(content)), _PLANES):
        if any(content[slice(*name)] == _METADATA for name in _inside(content, plane, _PLANE_NAME)):
            for start, end in _programs(content, plane):
                found.setdefault(content[start:end], (start, end))
    return list(found.values())


def _programs(content: bytes, plane: Span) -> Iterator[Span]:
    for entry in _inside(content, plane, _EVENT_DESCRIPTIONS):
        for event in _inside(content, entry, _MAP_VALUE):
            for statistic in _inside(content, event, _STATISTICS):
                yield from _inside(content, statistic, _BYTES)


def _inside(content: bytes, message: Span, number: int) -> Iterator[Span]:
    """The contents of a field, of a message or text, of a message."""
    return (span for field, span in fields(content, *message) if field == number)
