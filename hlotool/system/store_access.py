"""Requests to an object store or web server: read, write, and the journal of a command kept there.

They go through fsspec, with time limits, again where another try may help, and with errors in one line.
Credentials are found as each library finds them (`AWS_*`, `~/.aws`, `GOOGLE_APPLICATION_CREDENTIALS`,
`~/.netrc`, fsspec's own configuration); hlotool neither reads nor keeps them.

A journal in a store lets a command go on on another machine. An object cannot be appended to, so that each
answer is one, under the hash of its key: it is written whole or not at all, and a second one of the same
key takes its place. That costs a request for each answer, which the command waits for; all of them are read
at once. Otherwise it is the journal of `cache`: what is damaged or of another version is passed over, and
what cannot be kept is a problem of the journal, not of the command.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hlotool.errors import DumpError, HlotoolError, StoreError, UsageError
from hlotool.system.cache import FORM, Journal, journal_of, name_of_journal, sealed, unsealed
from hlotool.system.files import digest
from hlotool.system.urls import hidden, is_url, is_web, joined, scheme_of, taken_in, unmasked

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)

#: What installs the package that a protocol needs.
_EXTRAS = {
    **dict.fromkeys(("http", "https"), "remote-http"),
    **dict.fromkeys(("s3", "s3a"), "remote-s3"),
    **dict.fromkeys(("gs", "gcs"), "remote-gcs"),
}

#: Answers of a server after which the same question is asked again: it is busy, or somebody between is.
_PASSING = frozenset({408, 425, 429})
#: What is said of the disk on which a copy is written, not of the store.
_OF_THIS_MACHINE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
#: Longest wait that a server can ask for with `Retry-After`.
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a store may take.

    Attributes:
        silence: seconds without a byte after which a connection is given up.
        attempts: how often a question is asked that a store fails to answer.
        pause: seconds before the second attempt; twice as long before each further one.
    """

    silence: float = 30.0
    attempts: int = 4
    pause: float = 0.5


def patience() -> Patience:
    """What `HLOTOOL_STORE_TIMEOUT` (seconds) and `HLOTOOL_STORE_ATTEMPTS` say; raises UsageError."""
    usual = Patience()
    try:
        silence = float(os.environ.get("HLOTOOL_STORE_TIMEOUT", usual.silence))
        attempts = int(os.environ.get("HLOTOOL_STORE_ATTEMPTS", usual.attempts))
    except ValueError as error:
        raise UsageError(f"HLOTOOL_STORE_TIMEOUT, HLOTOOL_STORE_ATTEMPTS: {error}") from error
    if not (0 < silence < float("inf") and attempts >= 1):
        raise UsageError("HLOTOOL_STORE_TIMEOUT and HLOTOOL_STORE_ATTEMPTS are more than zero")
    return Patience(silence, attempts, min(usual.pause, silence / 4))


def ask(url: str, question: Callable[[Any, str], _T], verb: str = "read") -> _T:
    """What `question(filesystem, path)` answers.

    Args:
        url: what it is about, masked.
        question: asks fsspec; may be asked several times.
        verb: what could not be done, in the error.

    Raises:
        StoreError: the store failed to answer, also when it was asked again.
        DumpError: there is no such object, it may not be read, or a package is missing.
        OSError: this machine's disk is full.
    """
    limits = patience()
    for attempt in range(1, limits.attempts + 1):
        try:
            return question(*_filesystem(url))
        except HlotoolError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _OF_THIS_MACHINE:
                raise
            if attempt == limits.attempts or not is_passing(error):
                raise _translated(url, error, verb, attempt) from _without_secrets(error)
            pause = _pause(error, limits, attempt)
            _logger.info("%s: %s; again in %.1f s", url, _said(error), pause)
        time.sleep(pause)
    raise AssertionError("the last attempt ends the loop")


def is_passing(error: BaseException) -> bool:
    """Whether the same question may be answered another time."""
    status = _status(error)
    if status is not None:
        return status in _PASSING or status >= 500
    if any(type(one).__name__.endswith("CredentialsError") for one in _chain(error)):
        return False
    if isinstance(error, FileNotFoundError):
        # fsspec's reader of HTTP says so of every failure, and keeps the true one as its cause.
        return error.__cause__ is not None and is_passing(error.__cause__)
    return isinstance(error, Exception) and not isinstance(
        error, PermissionError | IsADirectoryError | NotADirectoryError | ValueError | TypeError | ImportError
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _status(error: BaseException) -> int | None:
    """The number that HTTP gives an answer, if an error holds one."""
    for one in _chain(error):
        answer = getattr(one, "response", None)
        meta = answer.get("ResponseMetadata", {}) if isinstance(answer, dict) else {}
        # aiohttp has a `code`, too, in errors that are none of the server's.
        name = "code" if type(one).__module__.startswith("gcsfs") else "status"
        found = meta.get("HTTPStatusCode") or getattr(one, name, None)
        if isinstance(found, int):
            return found
    return None


def _pause(error: BaseException, limits: Patience, attempt: int) -> float:
    """Seconds to the next attempt: as the server asks for, else ever longer, and not all at the same time."""
    for one in _chain(error):
        asked = getattr(one, "headers", None) and str(one.headers.get("Retry-After", ""))  # type: ignore[attr-defined]
        if asked and asked.isdigit():
            return min(float(asked), _LONGEST_PAUSE)
    longer: int = 2 ** (attempt - 1)
    return limits.pause * longer * random.uniform(0.75, 1.25)


def _translated(url: str, error: Exception, verb: str, attempts: int) -> DumpError:
    """One line that names the URL; each store brings exceptions of its own."""
    status = _status(error)
    if isinstance(error, ImportError):
        return _missing(url, error)
    if is_passing(error):
        again = f" after {attempts} attempts" if attempts > 1 else ""
        return StoreError(f"{url}: cannot be {verb}{again}: {_said(error)}")
    if isinstance(error, FileNotFoundError) and status in (None, 404, 410):
        return DumpError(f"{url}: no such file or directory")
    if isinstance(error, PermissionError) or status in (401, 403):
        return DumpError(f"{url}: cannot be {verb}: the store denies it: {_said(error)}")
    return DumpError(f"{url}: cannot be {verb}: {_said(error)}")


def _missing(url: str, error: ImportError) -> DumpError:
    scheme = scheme_of(url)
    extra = _EXTRAS.get(scheme)
    if extra is None and error.name != "fsspec":
        return DumpError(f"{url}: {hidden(str(error))}")
    return DumpError(f"{url}: {scheme}:// needs a package: pip install 'hlotool[{extra or 'remote'}]'")


def _said(error: BaseException) -> str:
    """An error in one line: the one behind it where that says more, without secrets."""
    inner = list(_chain(error))[-1]
    text = " ".join(hidden(str(inner)).split())
    return f"{type(inner).__name__}: {text}" if text else type(inner).__name__


def _without_secrets(error: Exception) -> Exception | None:
    """The error, for `--debug`; None where its traceback would show a secret."""
    shown = "".join(traceback.format_exception(error))
    return error if hidden(shown) == shown else None


def _filesystem(url: str) -> tuple[Any, str]:
    """fsspec's object for the store of `url`, and the path in it."""
    import fsspec

    scheme = scheme_of(url)
    return fsspec.core.url_to_fs(unmasked(url), **_options(scheme, patience().silence))  # type: ignore[no-any-return]


@cache
def _options(scheme: str, silence: float) -> dict[str, Any]:
    """Time limits of a protocol, and no memory of listings; what fsspec's configuration says comes first."""
    import fsspec.config

    connect = min(silence, 10.0)
    found: dict[str, Any] = {}
    if is_web(f"{scheme}://"):
        import aiohttp

        limits = aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=silence)
        found = {"client_kwargs": {"timeout": limits, "trust_env": True}}
    elif scheme in ("s3", "s3a"):
        # s3fs asks again by itself; a second layer of attempts below it would multiply them.
        config = {"connect_timeout": connect, "read_timeout": silence, "retries": {"max_attempts": 1}}
        found = {"config_kwargs": config, "use_listings_cache": False}
    elif scheme in ("gs", "gcs"):
        found = {"use_listings_cache": False, "timeout": silence}
    given = fsspec.config.conf.get(scheme, {})
    return {name: value for name, value in found.items() if name not in given}


# Results into a store, where that is possible.


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


class StoredJournal(Journal):
    """The answers of a command below a URL.

    Args:
        url: of a folder that holds nothing else.
    """

    def __init__(self, url: str) -> None:
        super().__init__(Path(os.devnull))
        self.url = url

    def read(self) -> dict[str, Any]:
        """All answers kept so far, by key.

        Raises:
            DumpError: the store denies it, or fails to answer: all that is done would be done again.
        """
        contents = ask(self.url, _contents_below)
        entries = (unsealed(FORM, content) for content in contents)
        return {entry[0]: entry[1] for entry in entries if entry is not None}

    def add(self, key: str, value: Any) -> None:
        """Keep an answer; returns when the store has it."""
        if self.problem:
            return
        try:
            upload(joined(self.url, digest(key)), sealed(FORM, key, value))
        except DumpError as error:
            self.fail(error)

    def remove(self) -> None:
        """The command is through: forget it."""
        with suppress(DumpError):
            ask(self.url, lambda files, path: files.rm(path, recursive=True), "removed")


def _contents_below(files: Any, path: str) -> Collection[bytes]:
    names = files.find(path)
    found: dict[str, bytes] = files.cat(names) if names else {}
    return found.values()


def journal_in(folder: str | os.PathLike[str] | None, command: str, key: str) -> Journal:
    """The journal of a command in a folder of this machine or of a store; in the cache folder for None.

    Args:
        folder: or its URL.
        command: its name.
        key: of its arguments.

    Raises:
        UsageError: a web server takes no files.
    """
    if folder is None:
        return journal_of(command, key)
    path = taken_in(os.fspath(folder))
    refuse_web(path)
    name = name_of_journal(command, key)
    return StoredJournal(joined(path, name)) if is_url(path) else Journal(Path(path, name))
