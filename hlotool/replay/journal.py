"""What an interrupted run had finished, kept so that the same command can go on.

One JSONL file per command in the user's cache folder. A line is keyed by everything its answer depends on:
the texts of the module, the inputs, the options, the version of hlotool. A line cut short is dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import msgspec

from hlotool.backends.cache import cache_folder
from hlotool.replay.records import ModuleRecord


class Entry(msgspec.Struct, frozen=True):
    """One line: the rows of one module."""

    key: str
    rows: list[ModuleRecord]


_decoder = msgspec.json.Decoder(Entry)


def digest(parts: Iterable[bytes]) -> str:
    """A key for `parts`, which may be long; their boundaries count."""
    whole = hashlib.blake2b(digest_size=20)
    for part in parts:
        whole.update(hashlib.blake2b(part, digest_size=20).digest())
    return whole.hexdigest()


class Journal:
    """The journal of one command.

    Args:
        command: key of the command; the file's name.
        folder: where journals lie.

    Attributes:
        problem: why nothing can be kept, empty when it can.
    """

    def __init__(self, command: str, folder: Path | None = None) -> None:
        self.path = (folder or cache_folder() / "journals") / f"{command}.jsonl"
        self.problem = ""
        self._file: IO[bytes] | None = None

    def read(self) -> dict[str, list[ModuleRecord]]:
        """What an earlier run of the same command finished, by key."""
        found: dict[str, list[ModuleRecord]] = {}
        with contextlib.suppress(OSError):
            for line in self.path.read_bytes().splitlines():
                with contextlib.suppress(msgspec.MsgspecError):
                    entry = _decoder.decode(line)
                    found[entry.key] = entry.rows
        return found

    def add(self, key: str, rows: list[ModuleRecord]) -> None:
        """Keep the rows of one finished module."""
        if self.problem:
            return
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("ab")
                # The last run may have been cut in the middle of a line.
                self._file.write(b"\n" if self._file.tell() else b"")
            self._file.write(msgspec.json.encode(Entry(key, rows)) + b"\n")
            self._file.flush()
        except OSError as error:
            self.problem = f"the journal cannot be written, so an interrupted run starts anew: {error}"

    def close(self) -> None:
        """Stop writing; what was added stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """The command is through: forget it."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()
