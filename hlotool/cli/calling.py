"""From a command line to a call of the API, and from its result to the screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from hlotool.api.course import Course
from hlotool.cli.commands import Command, named
from hlotool.cli.finishing import finish
from hlotool.errors import UsageError
from hlotool.options.declared import Arguments

if TYPE_CHECKING:
    from hlotool.fleet import batch
    from hlotool.replay.task import Task
    from hlotool.report import fuzz_progress
    from hlotool.search import steps


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
    from hlotool.api.show_scale import show_scale

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
        from hlotool.report.progress import progress_for

        return progress_for(sys.stderr, tasks, self._arguments.quiet, self._arguments.verbose)

    def searching(self) -> steps.Listener:
        """A line per step."""
        if self._arguments.quiet:
            return super().searching()
        from hlotool.report.progress import StepLines

        return StepLines(sys.stderr)

    def counting(self, total: int, noun: str) -> Callable[[str, str], None]:
        """A line now and then, or one for each thing if asked for."""
        if self._arguments.quiet:
            return super().counting(total, noun)
        from hlotool.report.progress import CountLines

        return CountLines(sys.stderr, total, noun, every=self._arguments.verbose)

    def fuzzing(self, seconds: float) -> AbstractContextManager[fuzz_progress.Listener]:
        """A live table, or a line now and then."""
        if self._arguments.quiet:
            return super().fuzzing(seconds)
        from hlotool.report.fuzz_progress import campaign_progress_for

        return campaign_progress_for(sys.stderr, seconds)

    def working(self) -> None:
        """The workers are still busy with imports of their own: a good time for those of the report."""
        if not self._arguments.json:
            import hlotool.report.terminal  # noqa: F401

    def forget(self, remove: Callable[[], None]) -> None:
        """Only when everything is printed nothing is lost any more."""
        self._removals.append(remove)

    def finish(self, record: Any) -> int:
        """Print the record of the command; returns the exit code."""
        code = finish(record, self._arguments)
        for remove in self._removals:
            remove()
        return code
