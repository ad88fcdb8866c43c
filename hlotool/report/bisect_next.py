"""The command to type after a bisection."""

from __future__ import annotations

import shlex

from hlotool.report.bisect_records import BisectRecord

_FLAGS = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"'


def next_command(record: BisectRecord) -> str:
    """A complete command line; empty when there is nothing to do."""
    if record.interrupted:
        return shlex.join(["hlotool", "bisect", *record.paths])
    unnamed = [c for c in record.culprits if c.level == "pass" and not c.pass_name]
    if unnamed:
        return f"{_FLAGS} for the same program, then hlotool bisect DIR"
    repro = next((c.repro for c in record.culprits if c.repro), "")
    if repro:
        return shlex.join(["hlotool", "repro", "verify", repro])
    return ""
