"""`hlotool check`: what it does besides: list rules, mend a program, explain a fusion."""

from __future__ import annotations

import argparse
import sys

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.cli.calling import TerminalCourse, called, finish
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import emit


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.list_rules:
        from hlotool.interface.api.check import list_rules

        return finish(list_rules().record, arguments)
    if not arguments.paths:
        raise UsageError("nothing to check: give a dump directory or an HLO file")
    if arguments.fix:
        return _fix(arguments)
    if arguments.explain_fusion:
        return _explain_fusion(arguments)
    from hlotool.interface.api.check import check

    course = TerminalCourse(arguments)
    with course.waiting("checking the programs"):
        record = called(check, arguments).record
    return course.finish(record)


def _fix(arguments: argparse.Namespace) -> int:
    """Write the mended module; what was done goes to stderr."""
    from hlotool.interface.api.check import mend
    from hlotool.system.paths import write_file

    mended, count = mend(arguments.paths, arguments.fix)
    text = mended.to_text()
    if arguments.output:
        write_file(arguments.output, [text.encode("utf-8")])
    else:
        emit(text)
    print(f"hlotool: {count} output{'' if count == 1 else 's'} mended ({arguments.fix})", file=sys.stderr)
    return ExitCode.AGREE


def _explain_fusion(arguments: argparse.Namespace) -> int:
    """Print whether A may be fused into B; exit 0 when it may."""
    from hlotool.interface.api.check import explain_fusion

    answers = explain_fusion(arguments.paths, *arguments.explain_fusion)
    emit("".join(f"{kind}: {reason or 'yes'}\n" for kind, reason in answers.items()))
    return ExitCode.MISMATCH if all(answers.values()) else ExitCode.AGREE
