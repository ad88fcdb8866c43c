"""What is equal for the same finding in another run, wherever its dump is."""

from __future__ import annotations

import re

from hlotool.check.findings import Finding
from hlotool.findings.outputs import output_name
from hlotool.findings.verdict import AGREEING
from hlotool.replay.records import LeafRecord, ModuleRecord
from hlotool.report.cause_records import CauseRecord

#: What another dump of the same program calls otherwise: the number that a dump gives to a module, and what
#: TensorFlow counts and hashes.
_PASSING = re.compile(r"\bmodule_\d+\.|(?<=\S)_\d+__\S*$")
#: The number that XLA gives to an instruction.
_SUFFIX = re.compile(r"[.\d]+$")


def program_name(name: str) -> str:
    """What a module is called in any dump: without its folder, and without numbers that it has only there."""
    return _PASSING.sub("", name.replace("\\", "/").rpartition("/")[2])


def row_identity(row: ModuleRecord, cause: CauseRecord | None) -> tuple[str, ...]:
    """Module, sides, verdict, cause, and each output that does not agree with what is wrong about it."""
    wrong = [leaf for leaf in row.leaves if leaf.verdict not in AGREEING]
    return (
        program_name(row.name),
        row.stage_reference or "",
        row.stage_tested or "",
        # Another version of a backend is the same backend.
        (row.tested or "").partition(" ")[0],
        row.verdict.value,
        cause.id if cause is not None else "",
        *(part for leaf in wrong for part in leaf_identity(leaf)),
    )


def leaf_identity(leaf: LeafRecord) -> tuple[str, ...]:
    """An output: its name and shape, its verdict, and what is wrong about it."""
    pattern = leaf.evidence.pattern if leaf.evidence is not None else ""
    return output_name(leaf.index), leaf.shape, leaf.verdict.value, leaf.fault, pattern


def finding_identity(finding: Finding, cause: CauseRecord | None) -> tuple[str, ...]:
    """A finding of `check`: module, rule, instruction without its number, cause."""
    instruction = _SUFFIX.sub("", finding.instruction)
    return program_name(finding.module), finding.rule, instruction, cause.id if cause else ""
