"""Answers kept on disk, so that a command that was cut short goes on and repeats nothing that is finished.

One line per answer: a checksum, and a JSON list of the answer's key and its value. A line is on the disk
(fsync) before the command goes on. Whatever ends the process (Ctrl-C, SIGKILL, a reboot) costs what was
running; a line cut short fails its checksum and is passed over, and so is one of another version of hlotool.
When the disk is full the command goes on without keeping its answers, and says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import Any

from hlotool.cache.folder import cache_folder
from hlotool.cache.sealed import sealed, unsealed

_logger = logging.getLogger(__name__)

#: The number changes with the form of a line.
FORM = "journal 1"


class Journal:
    """An append-only file of answers. Values are plain data: what JSON can hold.

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
        entries = (unsealed(FORM, line) for line in content.split(b"\n"))
        found = {entry[0]: entry[1] for entry in entries if entry is not None}
        _logger.info("%s: %d answers of an interrupted command", self.path, len(found))
        return found

    def add(self, key: str, value: Any) -> None:
        """Keep an answer; returns when it is on the disk."""
        if self.problem:
            return
        try:
            descriptor = self._opened()
            _write_all(descriptor, sealed(FORM, key, value) + b"\n")
            os.fsync(descriptor)
        except OSError as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Nothing can be kept any more."""
        reason = getattr(error, "strerror", None) or error
        self.problem = f"the journal cannot be written, so an interruption would cost steps: {reason}"
        self.close()

    def _opened(self) -> int:
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            if os.fstat(self._descriptor).st_size:
                # The last run may have been cut in the middle of a line.
                _write_all(self._descriptor, b"\n")
        return self._descriptor

    def close(self) -> None:
        """Stop writing; what was added stays."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def remove(self) -> None:
        """The command is through: forget it."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


def journal_of(command: str, key: str) -> Journal:
    """The journal of a command in the cache folder.

    Args:
        command: its name, such as `bisect`.
        key: of its arguments: the same ones find it again.
    """
    return Journal(cache_folder() / "journals" / name_of_journal(command, key))


def name_of_journal(command: str, key: str) -> str:
    """What it is called wherever it is kept."""
    return f"{command}-{key}.jsonl"


def _write_all(descriptor: int, content: bytes) -> None:
    """Write everything; a full disk may take a part of a line first."""
    while content:
        content = content[os.write(descriptor, content) :]
