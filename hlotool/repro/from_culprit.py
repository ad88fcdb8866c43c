"""Bundles of what a bisection found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hlotool.replay.options import ReplayOptions
from hlotool.replay.records import ModuleRecord
from hlotool.repro.bundle import Bundle, Kind
from hlotool.search.bisection.records import CulpritRecord


def culprit_title(culprit: CulpritRecord) -> str:
    """A culprit in one line."""
    source = culprit.source
    where = f" in {source.user_line}" if source and source.file else ""
    opcodes = ", ".join(dict.fromkeys(culprit.opcodes[-3:]))
    what = f" of {opcodes}" if opcodes else ""
    if culprit.level == "pass":
        return f"{culprit.pass_name or 'The compiler'} changes the result{what}{where}"
    made = "A library call" if culprit.level == "runtime-library" else "The compiled code"
    return f"{made}{what} gives a wrong result{where}"


def bundle_of(culprit: CulpritRecord, options: ReplayOptions, versions: Mapping[str, str]) -> Bundle | None:
    """The bundle of a culprit; None when there is nothing small enough to run again."""
    spot = culprit.spot
    if culprit.minimal:
        return _minimal(culprit, options, versions)
    if spot is None or not spot.after:
        return None
    if culprit.level == "pass":
        if spot.comparison is None:
            return None
        stages = _bundle("stages", culprit, spot.comparison, spot.before, options, versions)
        return replace(stages, after=spot.after, inputs=spot.inputs)
    row = culprit.comparison
    assert row is not None
    return replace(
        _bundle("result", culprit, row, spot.program, options, versions),
        kernel=spot.after,
        kernel_inputs=spot.inputs,
        inputs=spot.program_inputs,
        outputs=spot.outputs,
    )


def _minimal(culprit: CulpritRecord, options: ReplayOptions, versions: Mapping[str, str]) -> Bundle:
    """The smallest program that the backend gets wrong, with the kernel to blame."""
    row = culprit.comparison
    assert row is not None
    return replace(
        _bundle("backend", culprit, row, culprit.minimal, options, versions),
        signature=str(row.signature.smaller()),
        kernel=culprit.spot.after if culprit.spot else "",
        kernel_inputs=culprit.spot.inputs if culprit.spot else b"",
        inputs=culprit.minimal_inputs,
        backend=options.backend,
    )


def _bundle(
    kind: Kind,
    culprit: CulpritRecord,
    row: ModuleRecord,
    program: str,
    options: ReplayOptions,
    versions: Mapping[str, str],
) -> Bundle:
    """What all bundles of culprits share."""
    return Bundle(
        kind=kind,
        title=culprit_title(culprit),
        verdict=row.verdict.value,
        signature=str(row.signature),
        reason=row.reason,
        program=program,
        reference=options.reference,
        culprit=_facts(culprit),
        evidence=tuple(culprit.evidence),
        versions=dict(versions),
    )


def _facts(culprit: CulpritRecord) -> dict[str, Any]:
    """What `repro.toml` says of the culprit."""
    source = culprit.source
    return {
        "level": culprit.level,
        "pass": culprit.pass_name,
        "pipeline": culprit.pipeline,
        "module": culprit.module,
        "stage": culprit.stage,
        "stage_before": culprit.stage_before,
        "instructions": culprit.instructions,
        "place": culprit.place,
        "source": source.user_line if source else "",
        "op_name": source.op_name if source else "",
    }
