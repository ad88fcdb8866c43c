"""Answers kept for later commands: a file for each, below a folder that many processes and hosts may share.

A file comes into being under a name of its own and is then renamed, so that nobody reads half of one. Each
has a checksum. Whatever is damaged, or of another version, counts as absent, and a folder that cannot be
written costs nothing but the time of doing things again.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hlotool.cache.folder import cache_folder
from hlotool.cache.sealed import sealed, unsealed
from hlotool.cache.whole import write_whole

_FORM = "answer 1"

#: Bytes that a store may take; the oldest answers give way.
LIMIT: Final = 512 << 20
#: Likewise of indexes, of which one of twenty thousand files takes 3 MB.
INDEX_LIMIT: Final = 64 << 20
#: What pruning leaves of the limit, so that it is not needed again at once.
_LEFT: Final = 0.8
#: Seconds after which an answer that is used counts as young again; fewer would write at every use.
_DAY: Final = 86400.0
#: Seconds after which a file that was never renamed is one of a dead process.
_ABANDONED: Final = 3600.0
#: Folders below the store: one for each value of a key's first two digits.
_FOLDERS: Final = 256


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store holds.

    Attributes:
        entries: number of answers.
        size: their bytes.
        oldest: seconds since the epoch when the oldest was last of use; 0 without any.
    """

    entries: int = 0
    size: int = 0
    oldest: float = 0.0


class Store:
    """Answers by key. Keys are hexadecimal digests, values plain data: what JSON can hold.

    Args:
        folder: is made when the first answer is kept.

    Attributes:
        problem: why answers are no longer kept; empty as long as they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem = ""
        self._last = ""

    def get(self, key: str) -> Any:
        """The answer of that key; None without one that can be believed."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                content = file.read()
                status = os.fstat(file.fileno())
        except OSError:
            return None
        found = unsealed(_FORM, content)
        if found is None or found[0] != key:
            return None
        if time.time() - status.st_mtime > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)
        return found[1]

    def put(self, key: str, value: Any) -> None:
        """Keep an answer. What cannot be written is not kept, and `problem` says why."""
        if self.problem:
            return
        try:
            write_whole(self._path(key), sealed(_FORM, key, value))
        except OSError as error:
            self.problem = f"verdicts cannot be kept for later runs: {error.strerror or error}"
        self._last = key

    def close(self, limit: int = LIMIT) -> None:
        """Nothing more is added now. Where the store seems too large it is pruned to `limit` bytes.

        Keys are digests, so that one folder tells the size of all.
        """
        if self._last:
            sample = os.path.dirname(self._path(self._last))
            if sum(size for _, size, _ in _files(sample)) * _FOLDERS > limit:
                self.prune(limit)

    def contents(self) -> Contents:
        """What the store holds."""
        found = [(size, used) for _, size, used in self._entries()]
        if not found:
            return Contents()
        return Contents(len(found), sum(size for size, _ in found), min(used for _, used in found))

    def prune(self, limit: int = LIMIT) -> Contents:
        """Remove the answers that were of no use for the longest time; returns what was removed.

        Args:
            limit: bytes that may stay; nothing is removed as long as no more are there.
        """
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        left = sum(size for _, size, _ in entries)
        aim = left if left <= limit else limit * _LEFT
        count = size_removed = 0
        oldest = entries[0][2] if entries else 0.0
        for path, size, _ in entries:
            if left <= aim:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                count, size_removed = count + 1, size_removed + size
            left -= size
        return Contents(count, size_removed, oldest if count else 0.0)

    def clear(self) -> Contents:
        """Remove all answers; returns what was removed."""
        return self.prune(0)

    def _entries(self) -> Iterator[tuple[str, int, float]]:
        """Path, size and last use of each answer; what dead processes have left is removed."""
        with contextlib.suppress(OSError):
            folders = [entry.path for entry in os.scandir(self.folder) if entry.is_dir()]
            for path, size, used in (file for folder in folders for file in _files(folder)):
                if "." not in os.path.basename(path):
                    yield path, size, used
                elif time.time() - used > _ABANDONED:
                    with contextlib.suppress(OSError):
                        os.unlink(path)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key[2:])


def _files(folder: str) -> Iterator[tuple[str, int, float]]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime


def verdict_store() -> Store:
    """The store of verdicts in the cache folder."""
    return Store(cache_folder() / "verdicts")


def index_store() -> Store:
    """The store in the cache folder of what is known of the files of dumps."""
    return Store(cache_folder() / "indexes")
