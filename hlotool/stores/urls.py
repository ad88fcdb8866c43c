"""URLs as paths: what they are called, what lies below them, and which of them are local files after all."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_url(path: str) -> bool:
    """Whether `path` is a URL."""
    return _SCHEME.match(path) is not None


def scheme_of(url: str) -> str:
    """`s3` of `s3://bucket/key`, in lower case."""
    return url.partition("://")[0].lower()


def local_path(path: str) -> str:
    """The path of a file with a URL (`file:///dump`, `local:///dump`); other paths as they are."""
    if not is_url(path) or scheme_of(path) not in ("file", "local"):
        return path
    rest = path.partition("://")[2].removeprefix("localhost")
    if scheme_of(path) == "local":
        return rest
    from urllib.request import url2pathname  # it imports what speaks HTTP, and few paths are such URLs

    return url2pathname(rest)


def is_web(url: str) -> bool:
    """Whether `url` is one of HTTP: only these have queries, and `%` in them is a mark."""
    return scheme_of(url) in ("http", "https")


def path_part(url: str) -> str:
    """What follows the scheme, as a path that is read and compared: without query, marks replaced."""
    return unquote(urlsplit(url).path) if is_web(url) else url.partition("://")[2]


def name_of(path: str) -> str:
    """The last part of a URL's path, or of a path of this machine with `/`."""
    return (path_part(path) if is_url(path) else path).rstrip("/").rpartition("/")[2]


def folder_of(url: str) -> str:
    """The URL of what `url` lies in, without `/` at its end."""
    whole = url.partition("?")[0] if is_web(url) else url
    return whole.rstrip("/").rpartition("/")[0]


def below(folder: str, url: str) -> str:
    """The path of `url` relative to the URL `folder`, with `/`."""
    return path_part(url).lstrip("/").removeprefix(path_part(folder).strip("/")).lstrip("/")


def joined(folder: str, name: str) -> str:
    """The URL of `name` in the folder `folder`."""
    from urllib.parse import quote

    return f"{folder.rstrip('/')}/{quote(name) if is_web(folder) else name}"
