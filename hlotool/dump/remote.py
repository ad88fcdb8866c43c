"""Remote dumps (`s3://…`, `gs://…`, `https://…`) through fsspec, which the extra `remote` installs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from hlotool.errors import DumpError


def is_remote(path: str) -> bool:
    """Whether `path` is a URL."""
    return "://" in path


@contextmanager
def open_file(url: str) -> Iterator[IO[bytes]]:
    """The remote file `url`, open for reading; raises DumpError."""
    files, path = _filesystem(url)
    with _translated(url), files.open(path, "rb") as raw:
        yield raw


def list_files(url: str) -> list[str]:
    """URLs of all files below `url`, sorted; `url` itself when it is a file.

    Raises:
        DumpError: fsspec is not installed, the protocol is unknown, or the store refuses.
    """
    files, path = _filesystem(url)
    with _translated(url):
        if files.isfile(path):
            return [url]
        found = sorted(str(name) for name in files.find(path))
    protocol = url.split("://", 1)[0]
    return [name if is_remote(name) else f"{protocol}://{name.lstrip('/')}" for name in found]


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise DumpError(f"{url}: remote dumps need fsspec: pip install 'hlotool[remote]'") from error
    with _translated(url):
        files, path = fsspec.core.url_to_fs(url)
    return files, path


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Any failure of a store as a DumpError: each store brings exceptions of its own."""
    try:
        yield
    except DumpError:
        raise
    except Exception as error:
        raise DumpError(f"{url}: cannot be read: {type(error).__name__}: {error}") from error
