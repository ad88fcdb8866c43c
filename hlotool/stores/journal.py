"""Answers of a command in a store, so that it goes on on another machine.

An object cannot be appended to, so that each answer is one, under the hash of its key: it is written whole or
not at all, and a second one of the same key takes its place. That costs a request for each answer, which the
command waits for; all of them are read at once. Otherwise this is `cache.journal`: what is damaged or of
another version is passed over, and what cannot be kept is a problem of the journal, not of the command.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from hlotool.cache.fingerprint import digest
from hlotool.cache.journal import FORM, Journal, journal_of, name_of_journal
from hlotool.cache.sealed import sealed, unsealed
from hlotool.errors import DumpError
from hlotool.stores.access import ask, refuse_web, upload
from hlotool.stores.masks import taken_in
from hlotool.stores.urls import is_url, joined


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
