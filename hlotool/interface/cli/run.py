"""`hlotool run`: what it shows of a module that could not be read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hlotool.interface.cli import calling
from hlotool.interface.cli.calling import is_for_others
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import emit_error

if TYPE_CHECKING:
    from hlotool.interface.report.records import RunRecord
    from hlotool.system.records import ErrorRecord


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.show_scale:
        return calling.execute(command, arguments)
    from hlotool.interface.api.replay import replay

    course = calling.TerminalCourse(arguments)
    result = calling.called(replay, arguments, course=course)
    if not is_for_others(arguments) and (problem := _lonely_problem(result.record)):
        emit_error(problem)
        return int(result.exit_code)
    return course.finish(result.record)


def _lonely_problem(record: RunRecord) -> ErrorRecord | None:
    """The error of a single module that could not even be read: one clear line says it all."""
    from hlotool.judge.verdicts import Verdict

    if len(record.modules) == 1 and record.modules[0].verdict is Verdict.BAD_INPUT:
        return record.modules[0].error
    return None
