"""Results into a store, where that is possible."""

from __future__ import annotations

from hlotool.errors import UsageError
from hlotool.stores.access import ask
from hlotool.stores.masks import taken_in
from hlotool.stores.urls import is_url, is_web


def upload(url: str, content: bytes) -> None:
    """Write a whole object; what was there is replaced.

    Raises:
        UsageError: web servers take nothing.
        DumpError: the store refuses, or fails to answer.
    """
    refuse_web(url)
    ask(url, lambda files, path: files.pipe_file(path, content), "written")


def refuse_web(path: str) -> None:
    """Raise UsageError for what nothing can be written to: the URL of a web server."""
    if is_url(path) and is_web(path):
        raise UsageError(f"{path}: a web server takes no files; write to a store (s3://…, gs://…) or here")


def refuse_url(option: str, path: str) -> str:
    """The path of what is written on this machine only, as it is taken in; raises UsageError for a URL."""
    path = taken_in(path)
    if is_url(path):
        raise UsageError(f"{option} {path}: written on this machine only; copy it to the store afterwards")
    return path
