"""What a worker process and its parent say to each other: length-prefixed MessagePack.

The argument of a call is a pickle (parent and worker are the same program of the same user); the answer is
MessagePack only, so that a worker gone mad can send garbage but never code.
"""

from __future__ import annotations

import struct
from typing import IO, Literal, TypeAlias

import msgspec

from hlotool.workers.plain import encoded

#: Written once by a worker before its first message. Whatever an interpreter's start-up files print to
#: stdout comes before it and is passed over.
GREETING = b"\0hlotool worker\0"

#: Written by a worker to its log before each call: what lies before it belongs to others.
CALL_MARK = b"\0hlotool call\0\n"

_LENGTH = struct.Struct("<Q")
#: No message is as long as this; a longer one is garbage.
_LONGEST = 1 << 32


class Call(msgspec.Struct, frozen=True, tag=True):
    """Parent to worker: run `function` (`package.module:name`) on the unpickled `argument`.

    Meanwhile it may take `memory_share` bytes more than it has, 0 for no limit.
    """

    function: str
    argument: bytes
    memory_share: int = 0


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: imports are done; `notes` are warnings for the user."""

    notes: list[str]


class Returned(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: the function's result in MessagePack, and how long it took."""

    value: bytes
    seconds: float


class Doing(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: what the function is busy with, in words for the user; no answer yet."""

    text: str


class SoFar(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: something that the function has found, in MessagePack; no answer yet.

    It is all there is if the process ends before its function does.
    """

    value: bytes


#: What went wrong: no memory; a device of no more use, perhaps because a kernel ran for too long; anything.
RaisedKind: TypeAlias = Literal["memory", "timeout", "broken", "exception"]


class Raised(msgspec.Struct, frozen=True, tag=True):
    """Worker to parent: the function raised; but for plain exceptions, the worker should be replaced."""

    kind: RaisedKind
    message: str
    traceback: str
    seconds: float


Answer: TypeAlias = Ready | Doing | SoFar | Returned | Raised

_encoder = msgspec.msgpack.Encoder()
_calls = msgspec.msgpack.Decoder(Call)
_answers = msgspec.msgpack.Decoder(Answer)


def write_message(stream: IO[bytes], message: Call | Answer) -> None:
    """Send `message`; raises OSError when nobody listens any more."""
    content = encoded(message, _encoder.encode)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def read_call(stream: IO[bytes]) -> Call | None:
    """The next call, or None when the parent is gone."""
    content = _read_frame(stream)
    return None if content is None else _calls.decode(content)


def read_answer(stream: IO[bytes]) -> Answer | None:
    """The next answer, or None when the worker is gone (or what it sent is damaged)."""
    try:
        content = _read_frame(stream)
        return None if content is None else _answers.decode(content)
    except msgspec.DecodeError:
        return None


def skip_to_greeting(stream: IO[bytes]) -> bool:
    """Pass over everything up to and including GREETING; False when the stream ends before."""
    recent = b""
    while byte := stream.read(1):
        recent = (recent + byte)[-len(GREETING) :]
        if recent == GREETING:
            return True
    return False


def _read_frame(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > _LONGEST:
        return None
    content = stream.read(size)
    return content if len(content) == size else None
