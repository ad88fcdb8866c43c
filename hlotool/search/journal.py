"""Answers kept on disk, so that a search that was cut short goes on and repeats no finished step.

One JSON object per line: the key of a step, its value, and a checksum. A line is on the disk (fsync) before
the search goes on. Whatever ends the process (Ctrl-C, SIGKILL, a reboot) costs the steps that were running;
a line cut short fails its checksum and is passed over. When the disk is full the search goes on without
keeping its answers, and says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

_CHECK = 8


def digest(*parts: str | bytes) -> str:
    """A key for `parts`; their boundaries count."""
    whole = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


class Journal:
    """An append-only file of answers.

    Args:
        path: of the file; its folder is made when the first answer is kept.

    Attributes:
        problem: why answers are no longer kept, empty as long as they are.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self._descriptor: int | None = None

    def read(self) -> dict[str, Any]:
        """All answers kept so far, by key; the last one where a key appears twice."""
        try:
            content = self.path.read_bytes()
        except OSError:
            return {}
        entries = (_decode(line) for line in content.split(b"\n"))
        return {entry[0]: entry[1] for entry in entries if entry is not None}

    def add(self, key: str, value: Any) -> None:
        """Keep an answer; returns when it is on the disk."""
        if self.problem:
            return
        try:
            if self._descriptor is None:
                self._open()
            assert self._descriptor is not None
            _write_all(self._descriptor, _encode(key, value))
            os.fsync(self._descriptor)
        except OSError as error:
            self.problem = f"steps cannot be kept ({error.strerror or error}): the search goes on without"
            self.close()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._descriptor = os.open(self.path, flags, 0o666)
        if os.fstat(self._descriptor).st_size:
            # The last run may have been cut in the middle of a line.
            _write_all(self._descriptor, b"\n")

    def close(self) -> None:
        """Stop writing; what was added stays."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def remove(self) -> None:
        """The search is through: forget it."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


def _write_all(descriptor: int, content: bytes) -> None:
    """Write everything; a full disk may take a part of a line first."""
    while content:
        content = content[os.write(descriptor, content) :]


def _encode(key: str, value: Any) -> bytes:
    body = json.dumps([key, value], ensure_ascii=False, separators=(",", ":")).encode()
    return _checksum(body) + b" " + body + b"\n"


def _decode(line: bytes) -> tuple[str, Any] | None:
    """The entry in a line; None for a damaged one."""
    check, _, body = line.partition(b" ")
    if len(check) != 2 * _CHECK or check != _checksum(body):
        return None
    try:
        key, value = json.loads(body)
    except ValueError:
        return None
    return key, value


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK).hexdigest().encode()
