"""`hlotool demo`: run the commands of the demonstration, one after the other, as they are typed."""

from __future__ import annotations

import argparse
import shlex
import time
from contextlib import chdir
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode
from hlotool.interface.api.demo import demo
from hlotool.interface.cli.calling import called, finish
from hlotool.interface.cli.command import Command
from hlotool.interface.cli.process import emit, emit_report, tell

if TYPE_CHECKING:
    from hlotool.interface.report.demo import DemoRecord


def execute(command: Command, arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    record: DemoRecord = called(demo, arguments).record
    if arguments.json:
        return finish(record, arguments)
    from hlotool.interface.cli.main import main
    from hlotool.interface.report.demo import StepReport

    began = time.perf_counter()
    emit(f"$ cd {shlex.quote(record.folder)}\n")
    with chdir(record.folder):
        for step in record.steps:
            emit_report(StepReport(step, arguments.quiet))
            code = main(shlex.split(step.command)[1:])
            if code == ExitCode.INTERRUPTED:
                return code
            if code != step.exit_code:
                tell(f"hlotool: error: the exit code is {code}, and should be {step.exit_code}")
                return ExitCode.BACKEND_FAILED
            emit(f"(exit code {code})\n")
    if not arguments.quiet:
        emit(_END.format(seconds=time.perf_counter() - began, folder=record.folder))
    return record.exit_code


_END = """
That took {seconds:.0f} s. The page: {folder}/page.html

Your own program, while it runs:   hlotool exec -- python YOURS.py
Or a dump of it:                   XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text" python YOURS.py
                                   hlotool run DIR
"""
