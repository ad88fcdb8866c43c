"""What a command with findings writes beside its report: files for people and for other tools."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

from hlotool.errors import UsageError
from hlotool.interface.cli.output import emit_bytes, emit_json, tell

#: Options that name a file; `-` is stdout, in the place of the report.
_FILES = ("record", "html", "junit", "sarif")


def refuse_impossible_reports(arguments: argparse.Namespace) -> None:
    """Say before a long run that what was asked for cannot be written.

    Raises:
        UsageError: two want stdout, there is no such folder, nothing can be written there, a web server takes
            no files, or what makes pages is not installed.
    """
    asked = [(name, path) for name in _FILES if (path := getattr(arguments, name, None))]
    printed = [f"--{name} -" for name, path in asked if path == "-"]
    if getattr(arguments, "format", None) or (printed and arguments.json):
        printed.append(f"--format {arguments.format or 'json'}")
    if len(printed) > 1:
        raise UsageError(f"stdout can take one of them: {', '.join(printed)}")
    if getattr(arguments, "html", None):
        from hlotool.interface.report.show import need_jinja

        need_jinja()
    for name, path in asked:
        if path != "-":
            _refuse_unwritable(name, path)


def _refuse_unwritable(name: str, path: str) -> None:
    # What knows URLs takes a while to import, and few commands write reports.
    from hlotool.system.store_access import refuse_web
    from hlotool.system.urls import is_url, taken_in

    path = taken_in(path)
    refuse_web(path)
    folder = os.path.dirname(path) or "."
    if is_url(path):
        return
    if not os.path.isdir(folder):
        raise UsageError(f"--{name} {path}: there is no folder {folder}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise UsageError(f"--{name} {path}: cannot be written")


def is_for_others(arguments: argparse.Namespace) -> bool:
    """Whether somebody else than the reader of the terminal waits for what is found."""
    named = any(getattr(arguments, name, None) for name in (*_FILES, "github", "format"))
    return named or bool(arguments.json)


def print_for_others(record: Any, arguments: argparse.Namespace) -> bool:
    """Print the record in another form than a report where that was asked for; whether it was."""
    form = getattr(arguments, "format", None)
    name = next((name for name in _FILES if getattr(arguments, name, None) == "-"), None)
    if name is not None:
        emit_bytes([_writer(name)(record)])
    elif arguments.json:
        emit_json(record)
    elif form == "jsonl":
        from hlotool.interface.report.exports import json_lines

        emit_bytes(json_lines(record))
    elif form == "csv":
        from hlotool.interface.report.exports import csv_text
        from hlotool.interface.report.outcomes import outcomes_of

        emit_bytes([_encoded(csv_text(outcomes_of(record)))])
    else:
        return False
    return True


def write_reports(record: Any, arguments: argparse.Namespace) -> None:
    """Write the files that were asked for, and tell GitHub.

    Raises:
        UsageError: one cannot be written.
        DumpError: nor can that of a store.
    """
    from hlotool.system.paths import write_file

    for name in _FILES:
        path = getattr(arguments, name, None)
        if path and path != "-":
            write_file(path, [_writer(name)(record)])
    if getattr(arguments, "github", False):
        _tell_github(record)


def _writer(name: str) -> Callable[[Any], bytes]:
    """What makes the content of a file."""
    return {"record": _record, "html": _html, "junit": _junit, "sarif": _sarif}[name]


def _record(record: Any) -> bytes:
    from hlotool.system.surrogates import json_of

    return json_of(record) + b"\n"


def _html(record: Any) -> bytes:
    from hlotool.interface.report.html.page import page

    return _encoded(page(record))


def _junit(record: Any) -> bytes:
    from datetime import datetime

    from hlotool.interface.report.exports import junit
    from hlotool.interface.report.outcomes import outcomes_of

    return _encoded(junit(outcomes_of(record), getattr(record, "seconds", 0.0), datetime.now()))


def _sarif(record: Any) -> bytes:
    from hlotool.interface.report.exports import sarif_of
    from hlotool.system.surrogates import json_of

    return json_of(sarif_of(record)) + b"\n"


def _tell_github(record: Any) -> None:
    """Annotations go to stderr, which Actions reads, too: stdout may be a record."""
    from hlotool.interface.report.github import annotation_lines, step_summary
    from hlotool.interface.report.outcomes import outcomes_of
    from hlotool.system.paths import writing

    found = outcomes_of(record)
    for line in annotation_lines(found):
        tell(line)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        text = step_summary(found, _causes(record), getattr(record, "seconds", 0.0))
        with writing(path), open(path, "ab") as file:
            file.write(_encoded(text))


def _causes(record: Any) -> Sequence[Any]:
    return getattr(getattr(record, "run", record), "causes", ())


def _encoded(text: str) -> bytes:
    """UTF-8; what is none of a file's name stands there as an escape."""
    return text.encode("utf-8", "backslashreplace")
