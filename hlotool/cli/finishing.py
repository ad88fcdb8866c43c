"""How a command ends: its record on stdout, as JSON or as a report, files for others, and an exit code."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, TypeVar

from hlotool.cli.output import emit_error, emit_report, tell
from hlotool.cli.reports import print_for_others, write_reports

if TYPE_CHECKING:
    from hlotool.findings.records import CommandRecord

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
        from hlotool.report.show import report_of

        emit_report(report_of(record, arguments.quiet, arguments.verbose))
    write_reports(record, arguments)
    code: int = record.exit_code
    return code


def with_configuration(record: _R, arguments: argparse.Namespace) -> _R:
    """The record of a command with the configuration that was used."""
    import msgspec

    return msgspec.structs.replace(record, configuration=getattr(arguments, "configuration", None))
