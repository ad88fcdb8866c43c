"""What lies in no file of its own, kept as one for the worker processes: pipes, archives in archives."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from typing import Any

from hlotool.cache.passing import passing_folder
from hlotool.dump.compression import Limits, copy_bounded
from hlotool.dump.files import File, Stamp, open_file, stamp
from hlotool.dump.source import Source

#: What standard input is called on the command line, and in messages.
PATH, SHOWN = "-", "<stdin>"
_STDIN = "/dev/stdin"


def is_pipe(path: str) -> bool:
    """Whether `path` names what this process has open: standard input, or a shell's `<(command)`."""
    return path == _STDIN or os.path.dirname(path) in ("/dev/fd", "/proc/self/fd")


def stdin_source(limits: Limits) -> Source:
    """Standard input as something to read, as often as it is asked for.

    Raises:
        DumpError: it holds more than `limits.file_bytes`.
    """
    return Source(_spooled(sys.stdin, limits), shown=SHOWN)


def pipe_source(path: str, limits: Limits) -> Source:
    """What `is_pipe` knows, likewise; raises DumpError also when it is not open."""
    if path == _STDIN:
        return stdin_source(limits)
    return Source(_spooled(path, limits), shown=path)


@cache
def _spooled(stream: Any, limits: Limits) -> str:
    """The path of a file with all of a stream, or of a pipe of that name, which can be read only once."""
    handle, path = tempfile.mkstemp(dir=_folder())
    with open(handle, "wb") as copy:
        if isinstance(stream, str):
            with open_file(File(stream), limits) as raw:
                copy_bounded(raw, copy, limits.file_bytes, stream)
        else:
            copy_bounded(getattr(stream, "buffer", stream), copy, limits.file_bytes, SHOWN)
    return path


def unpacked(archive: Source, limits: Limits) -> str:
    """The path of a file with the content of an archive that lies in another one; raises DumpError."""
    return _unpacked(archive, limits, stamp(archive.file))


@cache
def _unpacked(archive: Source, limits: Limits, known: Stamp) -> str:
    content = archive.read_bytes(limits)
    handle, path = tempfile.mkstemp(".zip" if content.startswith(b"PK") else ".tar", dir=_folder())
    with open(handle, "wb") as copy:
        copy.write(content)
    return path


#: Removed when the process ends.
_folder = cache(passing_folder)
