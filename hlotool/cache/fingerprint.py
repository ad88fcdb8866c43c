"""Keys of contents: equal for equal bytes, whatever the files are called and whenever they were written.

A file is read once per process as long as nothing touches it. Between processes these keys believe nothing
but the bytes, for a time of change can be set at will and a checkout sets it anew; whoever believes more
(`fleet/contents.py` believes the stamps of large directories, by git's rule) says so there.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from functools import lru_cache
from pathlib import Path

_SIZE = 20
_CHUNK = 1 << 20


def digest(*parts: str | bytes) -> str:
    """A key for `parts`; their boundaries count."""
    whole = hashlib.blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little"))
        whole.update(data)
    return whole.hexdigest()


def processor_features() -> str:
    """What the processor can do, on which libraries choose their code; its name where the system hides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def stamp_of(status: os.stat_result) -> tuple[int, ...]:
    """What a file shows of a change while one process watches it."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def path_fingerprint(path: Path) -> str:
    """A key for the content of a file, or of all files below a folder with their relative names.

    What is missing or cannot be read has a key of its own, for that decides about an answer, too.
    """
    if not path.is_dir():
        return _file_fingerprint(path)
    files = sorted(file for file in path.rglob("*") if not file.is_dir())
    return digest(
        *(part for file in files for part in (str(file.relative_to(path)), _file_fingerprint(file)))
    )


def _file_fingerprint(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "no file"  # to open a pipe is to wait for who writes into it
        return _content(path, stamp_of(status))
    except OSError as error:
        return f"errno {error.errno}"


@lru_cache(maxsize=4096)
def _content(path: Path, _: tuple[int, ...]) -> str:
    whole = hashlib.blake2b(digest_size=_SIZE)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
    return whole.hexdigest()
