"""What is kept on disk between runs and can be done without: journals of commands, and answers.

Every entry has a checksum: what a process that died, a full disk or another version wrote counts as absent.
A checksum finds accidents. It is no protection from somebody who may write to the folder and means harm.

A journal lets a command that was cut short go on and repeat nothing that is finished. One line per answer:
a checksum, and a JSON list of the answer's key and its value. A line is on the disk (fsync) before the
command goes on. Whatever ends the process (Ctrl-C, SIGKILL, a reboot) costs what was running; a line cut
short fails its checksum and is passed over. When the disk is full the command goes on without keeping its
answers, and says so.

A store has a file for each answer, below a folder that many processes and hosts may share. A file is
written under a name of its own and then renamed, so that it is never read half written. A folder that
cannot be written costs nothing but the time of doing things again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hlotool._version import __version__
from hlotool.system.files import write_whole


def cache_folder() -> Path:
    """`$HLOTOOL_CACHE`, else the platform's place for caches, such as `~/.cache/hlotool`.

    Users without such a place (no home, or one that cannot be written) have a folder among the temporary
    files.
    """
    if given := os.environ.get("HLOTOOL_CACHE"):
        return Path(given)
    import platformdirs

    try:
        folder = platformdirs.user_cache_path("hlotool", appauthor=False)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: the home directory is unknown
        return _temporary_folder()
    return folder if os.access(folder, os.W_OK) else _temporary_folder()


def _temporary_folder() -> Path:
    """One for all processes of this user and for no other user, as compiled kernels are loaded from it."""
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"hlotool-{user}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user
    if is_ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return folder
    return Path(tempfile.mkdtemp(prefix="hlotool-"))


_CHECK = 8


def sealed(form: str, key: str, value: Any) -> bytes:
    """A line, without its end, that holds a key and a value of plain data.

    Args:
        form: names what the value is, and its version: lines of other forms are not believed.
        key: of the value.
        value: what JSON can hold.
    """
    body = json.dumps([key, value], separators=(",", ":")).encode()
    return _checksum(form, body) + b" " + body


def unsealed(form: str, line: bytes) -> tuple[str, Any] | None:
    """Key and value of a line; None for a damaged or foreign one."""
    check, _, body = line.partition(b" ")
    if len(check) != 2 * _CHECK or check != _checksum(form, body):
        return None
    key, value = json.loads(body)
    return key, value


def _checksum(form: str, body: bytes) -> bytes:
    version = f"hlotool {__version__} {form}".encode()
    return hashlib.blake2b(body, digest_size=_CHECK, key=version).hexdigest().encode()


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


_FORM = "answer 1"

#: Bytes that a store may take; the oldest answers give way.
LIMIT: Final = 512 << 20
#: The same for indexes: one of twenty thousand files takes 3 MB.
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


def failure_store() -> Store:
    """The store in the cache folder of what failed in the last run of a command."""
    return Store(cache_folder() / "failures")


def index_store() -> Store:
    """The store in the cache folder of what is known of the files of dumps."""
    return Store(cache_folder() / "indexes")
