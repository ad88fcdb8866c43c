"""`explain`: what an error message of XLA or a frontend means, and what to do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.api.results import Result
from hlotool.errors import DumpError, ExitCode
from hlotool.options.declared import Arguments, option, takes
from hlotool.stores.masks import taken_in
from hlotool.stores.paths import here
from hlotool.stores.urls import is_url

if TYPE_CHECKING:
    from hlotool.explain.records import MatchRecord
    from hlotool.report.records import ExplainRecord


class ExplainResult(Result["MatchRecord"]):
    """Messages that are known: a row for each."""

    record: ExplainRecord

    @property
    def rows(self) -> Sequence[MatchRecord]:
        """What was recognised, in the order of the text."""
        return self.record.matches


class ExplainArguments(Arguments):
    """What `explain` takes, and `hlotool explain`."""

    text: str | os.PathLike[str] = option(
        "a message, an error code, a file, or - for stdin",
        "a message, an error code such as `E1200`, or the path of a log",
        kw_only=False,
        nargs="*",
        metavar="TEXT",
    )
    dump: str | os.PathLike[str] | None = option(
        "dump of the program that the messages are about", default=None, metavar="DIR"
    )
    list: bool = option("list all messages that are known", default=False, init=False, once=True)


@takes(ExplainArguments)
def explain(asked: ExplainArguments) -> ExplainResult:
    """Recognise error messages of XLA, JAX, TensorFlow and PyTorch/XLA.

    Raises:
        DumpError: the log or the dump cannot be read.
    """
    from hlotool.explain.entries import find_entry
    from hlotool.explain.records import entry_record, explain_text

    opened = None
    if asked.dump is not None:
        from hlotool.dump.directory import open_dump

        opened = open_dump(asked.dump)
    said = _text(asked.text)
    entry = find_entry(said)
    return _result([entry_record(entry)] if entry else explain_text(said, opened))


def list_messages() -> ExplainResult:
    """All messages that `explain` knows, as `hlotool explain --list` prints them."""
    from hlotool.explain.entries import catalogue
    from hlotool.explain.records import entry_record

    return _result([entry_record(entry) for entry in catalogue()])


def _result(matches: list[MatchRecord]) -> ExplainResult:
    from hlotool.report.records import ExplainRecord

    code = ExitCode.AGREE if matches else ExitCode.NOTHING_COMPARED
    return ExplainResult(ExplainRecord(matches=matches, exit_code=code))


def _text(text: str | os.PathLike[str]) -> str:
    """What to read: the text, or the file that it names."""
    if isinstance(text, str) and ("\n" in text or not (_is_lone_url(text) or os.path.isfile(text))):
        return text
    try:
        return Path(here(taken_in(os.fspath(text)))).read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise DumpError(f"{os.fspath(text)}: {error.strerror}") from error


def _is_lone_url(text: str) -> bool:
    """Whether it is a URL and not a message that begins with one."""
    return is_url(text) and len(text.split()) == 1
