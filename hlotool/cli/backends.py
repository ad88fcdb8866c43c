"""`hlotool backends`: which backends there are, and why one cannot be used."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hlotool.cli.options import add_output_options
from hlotool.cli.output import finish

if TYPE_CHECKING:
    from hlotool.report.records import BackendRecord

USAGE = "backends [options]"
ABOUT = "list the backends: available or why not"
DESCRIPTION = "List the backends that `run` can use, each loaded in a process of its own."
EXAMPLES = ""

#: Seconds that loading a backend may take.
_TIMEOUT = 60.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.report.records import BackendsRecord

    return finish(BackendsRecord(backends=describe()), arguments)


def describe() -> list[BackendRecord]:
    """Every backend by name, each loaded in a process of its own."""
    import msgspec

    from hlotool.backends.registry import Description, listed_backends
    from hlotool.errors import BackendFailed
    from hlotool.report.records import BackendRecord
    from hlotool.workers.cores import worker_count
    from hlotool.workers.pool import Limits, Pool

    names = listed_backends()
    with Pool(Limits(worker_count(0, len(names)), _TIMEOUT)) as pool:
        ends = pool.call_all("hlotool.backends.registry:describe_backend", names)
    records: list[BackendRecord] = []
    for name, end in zip(names, ends):
        if isinstance(end.value, BackendFailed):
            records.append(BackendRecord(name=name, available=False, reason=end.value.message))
            continue
        known = msgspec.msgpack.decode(end.value, type=Description)
        records.append(BackendRecord(name=name, available=not known.reason, **msgspec.structs.asdict(known)))
    return records
