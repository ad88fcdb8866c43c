"""Results into a store, and whether that is possible."""

from __future__ import annotations

from pathlib import Path

from hlotool.errors import UsageError
from hlotool.stores.access import ask
from hlotool.stores.urls import is_url, is_web


def write_bytes(path: str, content: bytes) -> None:
    """Write a whole file, of this machine or of a store; what was there is replaced.

    Raises:
        UsageError: web servers take nothing.
        DumpError: the store refuses, or fails to answer.
        OSError: a file of this machine cannot be written.
    """
    if not is_url(path):
        Path(path).write_bytes(content)
        return
    if is_web(path):
        raise UsageError(f"{path}: a web server takes no files; write to a store (s3://…, gs://…) or here")
    ask(path, lambda files, inner: files.pipe_file(inner, content), "written")
