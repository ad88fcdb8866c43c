"""A command's function is called with the options that were given, and its result shown: report, files,
exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from hlotool.errors import UsageError
from hlotool.interface.api.course import Course
from hlotool.interface.cli.commands import Command, named
from hlotool.interface.cli.output import emit_error, emit_report, tell
from hlotool.interface.cli.reports import print_for_others, write_reports
from hlotool.runs.options.declared import Arguments

if TYPE_CHECKING:
    from hlotool.blame import steps
    from hlotool.interface.report import fuzz_progress
    from hlotool.runs.fleet import batch
    from hlotool.runs.task import Task
    from hlotool.system.records import CommandRecord


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

    def replaying(self, tasks: Sequence[Task]) -> AbstractContextManager[batch.Listener]:
        """A progress bar, a line per module, or a line now and then."""
        from hlotool.interface.report.progress import progress_for

        return progress_for(sys.stderr, tasks, self._arguments.quiet, self._arguments.verbose)

    def searching(self) -> steps.Listener:
        """A line per step."""
        if self._arguments.quiet:
            return super().searching()
        from hlotool.interface.report.progress import StepLines

        return StepLines(sys.stderr)

    def counting(self, total: int, noun: str) -> Callable[[str, str], None]:
        """A line now and then, or one for each thing if asked for."""
        if self._arguments.quiet:
            return super().counting(total, noun)
        from hlotool.interface.report.progress import CountLines

        return CountLines(sys.stderr, total, noun, every=self._arguments.verbose)

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
