"""The page that a web server shows of a folder: its links to what lies in it."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin


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
