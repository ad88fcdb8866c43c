"""The command to type after a bisection."""

from __future__ import annotations

import shlex

from hlotool.report.bisect_records import BisectRecord
from hlotool.search.bisection.records import CulpritRecord

_FLAGS = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"'


def next_command(record: BisectRecord) -> str:
    """A complete command line; empty when there is nothing to do."""
    if record.interrupted:
        return shlex.join(["hlotool", "bisect", *record.paths])
    if any(map(_lacks_dumps, record.culprits)):
        return f"{_FLAGS} for the same program, then hlotool bisect DIR"
    repro = next((c.repro for c in record.culprits if c.repro), "")
    if repro:
        return shlex.join(["hlotool", "repro", "verify", repro])
    return ""


def _lacks_dumps(culprit: CulpritRecord) -> bool:
    """No pass is accused, and none of its module was dumped."""
    is_dumped = any(candidate.pipeline for candidate in culprit.candidates)
    return culprit.level == "pass" and not culprit.pass_name and not is_dumped
