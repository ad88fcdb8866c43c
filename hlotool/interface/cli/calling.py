"""A command's function is called with the options that were given; its result is shown and written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from hlotool.errors import UsageError
from hlotool.interface.api.calls import Course
from hlotool.interface.cli.command import Command, named
from hlotool.interface.cli.process import emit_bytes, emit_error, emit_json, emit_report, tell
from hlotool.runs.options.declared import Arguments

if TYPE_CHECKING:
    from hlotool.blame import steps
    from hlotool.interface.report import fuzz_progress
    from hlotool.runs.fleet import batch
    from hlotool.runs.task import Task
    from hlotool.system.records import CommandRecord


#: Options that name a file; `-` is stdout, in the place of the report.
_FILES = ("record", "html", "junit", "sarif")


def refuse_impossible_reports(arguments: argparse.Namespace) -> None:
    """Say before a long run that what was asked for cannot be written.

    Raises:
        UsageError: two want stdout, there is no such folder, nothing can be written there, or a web server
            takes no files.
    """
    asked = [(name, path) for name in _FILES if (path := getattr(arguments, name, None))]
    printed = [f"--{name} -" for name, path in asked if path == "-"]
    if getattr(arguments, "format", None) or (printed and arguments.json):
        printed.append(f"--format {arguments.format or 'json'}")
    if len(printed) > 1:
        raise UsageError(f"stdout can take one of them: {', '.join(printed)}")
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
    from hlotool.system.records import json_of

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
    from hlotool.system.records import json_of

    return json_of(sarif_of(record)) + b"\n"


def _tell_github(record: Any) -> None:
    """Annotations go to stderr, which Actions reads, too: stdout may be a record."""
    from hlotool.interface.report.exports import annotation_lines, step_summary
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


_R = TypeVar("_R", bound="CommandRecord")


def finish(record: Any, arguments: argparse.Namespace) -> int:
    """Print the record of a command; returns the exit code.

    Args:
        record: it has an `exit_code`; `notes`, if it has any, go to stderr.
        arguments: decide between JSON, the report, and reports for others.
    """
    record = with_configuration(record, arguments)
    if not arguments.json:
        for note in getattr(record, "notes", ()):
            tell(f"hlotool: note: {note}")
        if getattr(record, "error", None) is not None:
            emit_error(record.error)
    if not print_for_others(record, arguments):
        from hlotool.interface.report.show import report_of

        emit_report(report_of(record, arguments.quiet, arguments.verbose))
    write_reports(record, arguments)
    code: int = record.exit_code
    return code


def with_configuration(record: _R, arguments: argparse.Namespace) -> _R:
    """The record of a command with the configuration that was used."""
    import msgspec

    return msgspec.structs.replace(record, configuration=getattr(arguments, "configuration", None))


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Call the function of a command and show what it found; returns the exit code."""
    if getattr(arguments, "show_scale", False):
        return _show_scale(arguments)
    course = TerminalCourse(arguments)
    return course.finish(called(named(command.function), arguments, course=course).record)


def _show_scale(arguments: argparse.Namespace) -> int:
    """Print which sizes programs would get, instead of running a command; returns the exit code.

    Raises:
        UsageError: findings are asked for in a form for others.
    """
    from hlotool.interface.api.inspect import show_scale

    for name in ("format", "html", "junit", "sarif", "github"):
        if getattr(arguments, name, None):
            raise UsageError(f"--show-scale finds nothing for --{name}: it prints text, or --json")
    paths = getattr(arguments, "paths", None) or [getattr(arguments, "path", None) or arguments.left]
    # Only `run` takes programs as they are where values on disk are enough.
    instead = {"against": getattr(arguments, "right", None), "in_place": arguments.command_name == "run"}
    # `bisect` and `reduce` know a backend of None: the stages of the dump, on the reference.
    instead["backend"] = getattr(arguments, "backend", None) or "numpy"
    return finish(called(show_scale, arguments, paths=paths, **instead).record, arguments)


def called(function: Callable[..., Any], arguments: argparse.Namespace, **instead: Any) -> Any:
    """What a function of the API returns for the options of a command line, some of them replaced."""
    declared = getattr(function, "arguments", Arguments).options
    takes = {name for name, one in declared.items() if one.init}
    given = vars(arguments) | instead
    return function(**{name: value for name, value in given.items() if name in takes})


class TerminalCourse(Course):
    """Progress goes to stderr; what was found until an error or Ctrl-C is printed.

    Args:
        arguments: of the command; they say how much the user wants to see.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._removals: list[Callable[[], None]] = []
        self.keeps_errors = arguments.json or bool(getattr(arguments, "record", None))
        self.keeps_interrupts = True

    def replaying(self, tasks: Sequence[Task], done: int = 0) -> AbstractContextManager[batch.Listener]:
        """A progress bar, a line per module, or a line now and then."""
        from hlotool.interface.report.progress import progress_for

        return progress_for(sys.stderr, tasks, self._arguments.quiet, self._arguments.verbose, done)

    def searching(self) -> AbstractContextManager[steps.Listener]:
        """A live line, or a line per step."""
        if self._arguments.quiet:
            return super().searching()
        from hlotool.interface.report.step_progress import steps_for

        return steps_for(sys.stderr, self._arguments.verbose)

    def counting(self, total: int, noun: str) -> AbstractContextManager[Callable[[str, str], None]]:
        """A progress bar, a line now and then, or one for each thing if asked for."""
        if self._arguments.quiet:
            return super().counting(total, noun)
        from hlotool.interface.report.step_progress import counts_for

        return counts_for(sys.stderr, total, noun, self._arguments.verbose)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """A live line on a terminal."""
        if self._arguments.quiet or not sys.stderr.isatty():
            return super().waiting(text)
        from hlotool.interface.report.live import LiveLine

        return LiveLine(sys.stderr, text=text)

    def fuzzing(self, seconds: float) -> AbstractContextManager[fuzz_progress.Listener]:
        """A live table, or a line now and then."""
        if self._arguments.quiet:
            return super().fuzzing(seconds)
        from hlotool.interface.report.fuzz_progress import campaign_progress_for

        return campaign_progress_for(sys.stderr, seconds)

    def working(self) -> None:
        """The workers are still busy with imports of their own: a good time for those of the report."""
        if not self._arguments.json:
            import hlotool.interface.report.terminal  # noqa: F401

    def forget(self, remove: Callable[[], None]) -> None:
        """Only when everything is printed nothing is lost any more."""
        self._removals.append(remove)

    def finish(self, record: Any) -> int:
        """Print the record of the command; returns the exit code."""
        code = finish(record, self._arguments)
        for remove in self._removals:
            remove()
        return code


def reduce(command: Command, arguments: argparse.Namespace) -> int:
    """Reduce a program; returns the exit code."""
    from hlotool.blame.reduction.case import default_output

    arguments.output = arguments.output or default_output(arguments.path)
    return execute(command, arguments)


def extract(command: Command, arguments: argparse.Namespace) -> int:
    """Cut instructions out; returns the exit code."""
    from hlotool.blame.reduction.case import default_output
    from hlotool.interface.api.reduce import extract

    arguments.output = arguments.output or default_output(arguments.path, "extracted")
    record = called(extract, arguments).record
    if not arguments.json:
        of = f", inputs {record.inputs.description}" if record.inputs is not None else ""
        tell(f"{record.output}: {record.size} instructions{of}")
        if record.calls > 1:
            tell(f"executed {record.calls} times; values of number {arguments.call}")
    return finish(record, arguments)
