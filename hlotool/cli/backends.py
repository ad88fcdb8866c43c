"""`hlotool backends`: which backends there are, and why one cannot be used."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from hlotool.cli.options import add_output_options, exit_code_text

if TYPE_CHECKING:
    from hlotool.report.records import BackendRecord

#: Seconds that loading a backend may take.
_TIMEOUT = 60.0


def add_parser(commands: Any, formatter: type[argparse.HelpFormatter]) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "backends",
        help="list the backends: available or why not",
        description="List the backends that `run` can use, each loaded in a process of its own.",
        epilog=exit_code_text(),
        formatter_class=formatter,
    )
    add_output_options(parser)
    parser.set_defaults(command=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.cli.output import emit, emit_bytes
    from hlotool.report.records import BackendsRecord

    record = BackendsRecord(backends=describe())
    if arguments.json:
        import msgspec

        emit_bytes(msgspec.json.encode(record) + b"\n")
        return record.exit_code
    import sys

    from hlotool.report.backends import BackendTable
    from hlotool.report.console import console_for, render

    emit(render(console_for(sys.stdout), BackendTable(record.backends, arguments.verbose)))
    return record.exit_code


def describe() -> list[BackendRecord]:
    """Every backend by name, each loaded in a process of its own."""
    import msgspec

    from hlotool.backends.description import Description
    from hlotool.backends.registry import listed_backends
    from hlotool.errors import BackendFailed
    from hlotool.report.records import BackendRecord
    from hlotool.workers.pool import Done, Limits, Pool

    names = listed_backends()
    found: dict[str, BackendRecord] = {}
    with Pool(Limits(min(len(names), os.cpu_count() or 1), _TIMEOUT)) as pool:
        for event in pool.run("hlotool.backends.description:describe_backend", names):
            if not isinstance(event, Done):
                continue
            name = names[event.index]
            if isinstance(event.value, BackendFailed):
                found[name] = BackendRecord(name=name, available=False, reason=event.value.message)
                continue
            known = msgspec.msgpack.decode(event.value, type=Description)
            found[name] = BackendRecord(
                name=name,
                available=not known.reason,
                version=known.version,
                device=known.device,
                options=known.options,
                reason=known.reason,
            )
    return [found[name] for name in names]
