"""Bundles of what a reduction left."""

from __future__ import annotations

from collections.abc import Mapping

from hlotool.backends.spec import parse_spec, portable
from hlotool.findings.verdict import Answer
from hlotool.replay.options import ReplayOptions
from hlotool.replay.records import ModuleRecord
from hlotool.repro.bundle import Bundle
from hlotool.repro.from_culprit import tolerance_of
from hlotool.search.bisection.compiler import compiler_name
from hlotool.search.bisection.records import TriggerRecord
from hlotool.search.reduction.reducer import Reduction
from hlotool.values.npz import npz_bytes


def bundle_of_case(
    found: Reduction,
    options: ReplayOptions,
    check: str,
    versions: Mapping[str, str],
    row: ModuleRecord | None = None,
) -> Bundle:
    """The bundle of a reduced program, which a backend gets wrong or a command calls bad.

    Args:
        found: the program.
        options: which backend is compared with which.
        check: the command that judged it, empty where a backend did.
        versions: of what took part.
        row: the comparison of the program; None where a backend died of it, or a command judged.
    """
    opcodes = dict.fromkeys(i.opcode for i in found.case.module.instructions() if i.opcode != "parameter")
    what = ", ".join(list(opcodes)[-3:])
    by = check or options.backend
    is_shown = row is not None and row.verdict.answer is Answer.BAD
    return Bundle(
        kind="check" if check else "backend",
        title=f"{by}: {found.failure} in a program of {what}",
        verdict="bad" if check else found.failure,
        signature=str(row.signature) if row is not None and is_shown else found.failure,
        wrong=row.signature.outputs if row is not None and is_shown else None,
        reason=found.reason,
        program=found.case.text,
        inputs=npz_bytes(found.case.arguments, found.case.copies) if found.case.arguments else b"",
        reference=options.reference,
        backend=portable(options.backend),
        command=check,
        evidence=(f"reduced from {found.before} to {found.case.size} instructions, failing in the same way",),
        versions=dict(versions),
        trigger=trigger_on(options.backend, row.tested) if row is not None and is_shown else None,
        tolerance=tolerance_of(options),
        exact=options.exact,
        opaque=options.opaque,
    )


def trigger_on(backend: str, version: str | None) -> TriggerRecord | None:
    """That real XLA shows the fault of a reduced program; None where another judged, or none is known.

    Args:
        backend: spec of what judged.
        version: of it, as it says it itself.
    """
    if parse_spec(backend).name != "xla" or not version:
        return None
    name = compiler_name(version, backend)
    return TriggerRecord.of("triggers", name, backend=portable(backend), form="the reduced program", judged=1)
