"""URLs as paths: their parts, which are local files after all, and the secrets in them masked.

Passwords and signatures are taken out where a URL comes in, and put back where a store is asked. Between
the two only the masked URL is there (`https://***@host/dump`, `…?X-Amz-Signature=***`), so that no report,
record, journal, key of a cache, log or message can show what is not in it. Processes that this one starts
find the secrets in their environment.
"""

from __future__ import annotations

import json
import os
import re
from urllib.parse import unquote, urlsplit

from hlotool.errors import UsageError

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


_VARIABLE = "HLOTOOL_URL_SECRETS"
_MASK = "***"
#: Parameters of a query that say which object is meant, and are no secret.
_HARMLESS = frozenset(
    {"versionid", "generation", "ref", "revision", "raw", "download", "alt", "prefix", "path"}
)

#: What looks like a secret in the text of an error that a library wrote.
_USER = re.compile(r"(?<=://)[^/\s@'\"]+@")
_SIGNED = re.compile(
    r"(?i)\b(x-(?:amz|goog)-(?:signature|credential|security-token)|signature|sig|access_?token|token|password"
    r"|secret|api_?key|awsaccesskeyid|googleaccessid)=[^&\s'\"<>]+"
)


def taken_in(path: str) -> str:
    """What a path that was given is called from here on: masked; `file://` URLs are paths of this machine.

    Raises:
        UsageError: as `masked`.
    """
    return masked(local_path(path))


def masked(path: str) -> str:
    """`path` without the secrets that it holds, where it is a URL; they are kept for `unmasked`.

    Raises:
        UsageError: another URL that differs in its secrets alone was given before: which one is meant could
            no longer be told.
    """
    if not is_url(path):
        return path
    known = _secrets()
    scheme, _, rest = path.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if at and user != _MASK:
        host = f"{scheme}://{_MASK}@{rest.partition('/')[0][len(user) + 1 :]}"
        _keep(known, host, f"{scheme}://{rest.partition('/')[0]}")
        path = f"{scheme}://{_MASK}{rest[len(user) :]}"
    if is_web(path) and (query := urlsplit(path).query):
        hidden = "&".join(map(_without_value, query.split("&")))
        if hidden != query:
            whole, path = path, path.replace(f"?{query}", f"?{hidden}", 1)
            _keep(known, path, whole)
    return path


def unmasked(url: str) -> str:
    """The URL to ask for what `url`, masked or not, stands for."""
    if not is_url(url):
        return url
    known = _secrets()
    url = known.get(url, url)
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    return known.get(f"{scheme}://{host}", f"{scheme}://{host}") + rest[len(host) :]


def hidden(text: str) -> str:
    """`text`, which a library wrote, without the secrets of URLs."""
    for shown, whole in _secrets().items():
        text = text.replace(whole, shown)
    return _SIGNED.sub(rf"\1={_MASK}", _USER.sub(f"{_MASK}@", text))


def secrets() -> dict[str, str]:
    """What `adopt` in another process takes, by masked URL."""
    return dict(_secrets())


def adopt(given: dict[str, str]) -> None:
    """Know the secrets of another process; what this one knew by the same name is replaced."""
    _store(_secrets() | given)


def _without_value(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    return parameter if not value or name.lower() in _HARMLESS else f"{name}{equals}{_MASK}"


def _secrets() -> dict[str, str]:
    known: dict[str, str] = json.loads(os.environ.get(_VARIABLE, "{}"))
    return known


def _keep(known: dict[str, str], shown: str, whole: str) -> None:
    if known.get(shown, whole) != whole:
        raise UsageError(f"{shown}: two URLs that differ in passwords or queries alone; give them one by one")
    known[shown] = whole
    _store(known)


def _store(known: dict[str, str]) -> None:
    if known:
        os.environ[_VARIABLE] = json.dumps(known)
