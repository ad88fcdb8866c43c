"""What a store has: one object, all objects below a URL, the links of a web server's index page.

An object's version is what the store tells of its content without showing it: an ETag, a generation, a
checksum, or size and time of change. Copies and answers that are kept belong to a version. Where a store
tells nothing that would change with the content, the version is of this listing alone, so that nothing kept
is trusted later.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

from msgspec import Struct

from hlotool.errors import DumpError, StoreError
from hlotool.system.store_access import ask
from hlotool.system.urls import below, is_url, is_web, name_of, path_part, scheme_of

#: Fields in which stores say what changes with every change of the content, the best first.
_EXACT = ("VersionId", "version_id", "generation", "md5Hash", "Content-MD5", "Digest", "ETag", "etag")
#: Fields with a time of change, which tells less: clocks of stores tick in seconds.
_TIMES = ("LastModified", "Last-Modified", "last_modified", "mtime", "updated", "created")
#: Seconds within which a second change may have the same time (RFC 9110, 8.8.2.2).
_FRESH = 60.0
#: Between the part of a version that the store told and the one that makes it one of this listing.
_ONCE = "\n#"
#: Between the fields that a store tells.
_FIELD = "\n"
#: Web servers are asked for each object of a folder; so many questions are on their way at a time.
_AT_ONCE = 16
#: No folder of values, results or a bundle has more files.
_MOST_FILES = 100_000
#: The most HTML that is read of the page of a folder.
_PAGE_BYTES = 64 << 20


class Stored(Struct, frozen=True):
    """An object of a store.

    Attributes:
        url: masked.
        size: in bytes, None where the store does not tell.
        version: of its content; empty where the store failed to answer while the folder was listed.
        is_folder: nothing to read, but others are below it.
    """

    url: str
    size: int | None = None
    version: str = ""
    is_folder: bool = False

    @property
    def lasts(self) -> bool:
        """Whether the version means the same content in later listings."""
        return bool(self.version) and _ONCE not in self.version

    def is_still(self, version: str) -> bool:
        """Whether this object has a version that was seen before: listings may tell less than a look does."""
        now, before = _told(self.version), _told(version)
        return all(now[name] == before[name] for name in now.keys() & before.keys())


def look(url: str) -> Stored:
    """What the store says of `url`, which is not read; raises DumpError when there is no such thing."""
    info = ask(url, lambda files, path: files.info(path))
    return _stored(url, info)


def objects_below(url: str, most: int = _MOST_FILES) -> list[Stored]:
    """All objects below a folder, sorted by URL; hidden folders are left alone.

    Args:
        url: of the folder.
        most: objects.

    Raises:
        DumpError: it cannot be listed, or there are more objects.
    """
    if is_web(url):
        return _looked_at(_linked(url, most))
    found: Mapping[str, Any] = ask(url, lambda files, path: files.find(path, detail=True), "listed")
    if len(found) > most:
        raise DumpError(f"{url}: more than {most} objects; this is not read")
    stored = (_stored(_url_of(url, name), info) for name, info in sorted(found.items()))
    return [one for one in stored if not one.is_folder and not _is_hidden(below(url, one.url))]


def version_below(url: str) -> str:
    """What changes when anything at or below `url` does; raises DumpError when that cannot be found out."""
    found = look(url)
    if not found.is_folder:
        return found.version
    return " ".join(f"{one.url} {one.version}" for one in objects_below(url))


def objects_in(url: str, is_wanted: Callable[[str], bool]) -> list[Stored]:
    """Objects and folders that lie in the folder `url` itself, sorted by URL.

    Where the server lists no folders at all there are none.

    Args:
        url: of the folder.
        is_wanted: asked for each name; others are left out.

    Raises:
        StoreError: it fails to answer.
    """
    try:
        if is_web(url):
            links = [one for one in _page_links(f"{url}/") if is_wanted(name_of(one))]
            folders = [Stored(one, is_folder=True) for one in links if one.endswith("/")]
            return _looked_at(set(links) - {one.url for one in folders}) + folders
        found = ask(url, lambda files, path: files.ls(path, detail=True), "listed")
    except StoreError:
        raise
    except DumpError:
        return []
    stored = (_stored(_url_of(url, info["name"]), info) for info in found)
    return sorted((one for one in stored if is_wanted(name_of(one.url))), key=lambda one: one.url)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/")[:-1])


def _url_of(base: str, name: str) -> str:
    """The URL of what fsspec calls `name`, with the scheme and the host that the user wrote."""
    if is_url(name):
        return name
    rest = base.partition("://")[2]
    host = f"{rest.partition('/')[0]}/"
    inner = name.lstrip("/")
    # Stores of buckets have the first part in their names; others (sftp, ftp) have a host besides.
    is_bucket = f"{inner}/".startswith(host) or not base.count("@")
    return f"{scheme_of(base)}://{inner if is_bucket else host + inner}"


def _stored(url: str, info: Mapping[str, Any]) -> Stored:
    final = str(info.get("url") or "")
    is_folder = info.get("type") == "directory" or (is_web(url) and path_part(final or url).endswith("/"))
    size = info.get("size")
    return Stored(
        url, size if isinstance(size, int) else None, "" if is_folder else _version(info), is_folder
    )


def _version(info: Mapping[str, Any]) -> str:
    fields = _present(info, _EXACT)
    # A weak ETag stands for the meaning of a page, not for its bytes.
    is_sure = any(not str(value).startswith("W/") for value in fields.values())
    if not is_sure:
        seconds = {name: _seconds(value) for name, value in _present(info, _TIMES).items()}
        changed = {name: value for name, value in seconds.items() if value is not None}
        is_sure = any(not _is_fresh(value) for value in changed.values())
        fields |= changed
    told = _FIELD.join(f"{name}={value}" for name, value in (fields | _present(info, ("size",))).items())
    return told if is_sure else f"{told}{_ONCE}{uuid.uuid4().hex}"


def _present(info: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: info[name] for name in names if info.get(name) is not None and info[name] != ""}


def _told(version: str) -> dict[str, str]:
    """The fields of a version by name."""
    fields = version.partition(_ONCE)[0].split(_FIELD)
    return {name: value for name, _, value in (field.partition("=") for field in fields) if name}


def _is_fresh(changed: float) -> bool:
    """Whether another change within the same tick of a clock may still follow."""
    return abs(time.time() - changed) < _FRESH


def _seconds(changed: Any) -> float | None:
    """A time of change since 1970; libraries have it in four forms."""
    try:
        if isinstance(changed, str):
            changed = parsedate_to_datetime(changed) if "," in changed else datetime.fromisoformat(changed)
        if isinstance(changed, datetime):
            return (changed if changed.tzinfo else changed.replace(tzinfo=UTC)).timestamp()
        return float(changed)
    except (TypeError, ValueError):
        return None


def _linked(url: str, most: int) -> Iterator[str]:
    """URLs of the files below the folder of a web server, as its pages link to them."""
    waiting, count = [f"{url.rstrip('/')}/"], 0
    while waiting:
        for link in _page_links(waiting.pop()):
            count += 1
            if count > most:
                raise DumpError(f"{url}: more than {most} objects; this is not read")
            if link.endswith("/"):
                waiting.append(link)
            else:
                yield link


def _page_links(url: str) -> list[str]:
    page = ask(url, lambda files, path: files.cat_file(path), "listed")
    if len(page) > _PAGE_BYTES:
        raise DumpError(f"{url}: the page of the folder is too long to be read")
    return links_below(page.decode("utf-8", errors="replace"), url)


def _looked_at(urls: Iterable[str]) -> list[Stored]:
    """What a web server says of each, asked side by side."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="listing") as threads:
        return [one for one in threads.map(_look_or_leave, sorted(urls)) if not one.is_folder]


def _look_or_leave(url: str) -> Stored:
    """Reading it will show what keeps the server from answering."""
    try:
        return look(url)
    except DumpError:
        return Stored(url)


# The page that a web server shows of a folder: its links to what lies in it.


def links_below(page: str, url: str) -> list[str]:
    """URLs of what the page links to in its own folder, each once; folders end in `/`.

    Links that sort the page, lead up, or to elsewhere are none of these.

    Args:
        page: HTML.
        url: of the page, which ends in `/`.
    """
    reader = _Links()
    reader.feed(page)
    found = (urldefrag(urljoin(url, link.strip())).url for link in reader.links)
    own = (one for one in found if one.startswith(url) and one != url and "?" not in one)
    return list(dict.fromkeys(one for one in own if _is_one_level(one.removeprefix(url))))


def _is_one_level(rest: str) -> bool:
    name = rest.removesuffix("/")
    is_hidden_folder = name != rest and name.startswith(".")
    return "/" not in name and name not in (".", "..") and not is_hidden_folder


class _Links(HTMLParser):
    """Collects the targets of all links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]
