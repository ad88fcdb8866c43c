"""Bundles of what a reduction left."""

from __future__ import annotations

from collections.abc import Mapping

from hlotool.replay.options import ReplayOptions
from hlotool.repro.bundle import Bundle
from hlotool.search.arrays import npz_bytes
from hlotool.search.reduction.reducer import Reduction


def bundle_of_case(
    found: Reduction, options: ReplayOptions, check: str, versions: Mapping[str, str]
) -> Bundle:
    """The bundle of a reduced program, which a backend gets wrong or a command calls bad."""
    opcodes = dict.fromkeys(i.opcode for i in found.case.module.instructions() if i.opcode != "parameter")
    what = ", ".join(list(opcodes)[-3:])
    by = check or options.backend
    return Bundle(
        kind="check" if check else "backend",
        title=f"{by}: {found.failure} in a program of {what}",
        verdict="bad" if check else found.failure,
        signature=found.failure,
        reason=found.reason,
        program=found.case.text,
        inputs=npz_bytes(found.case.arguments, found.case.copies) if found.case.arguments else b"",
        reference=options.reference,
        backend=options.backend,
        command=check,
        evidence=(f"reduced from {found.before} to {found.case.size} instructions, failing in the same way",),
        versions=dict(versions),
    )
