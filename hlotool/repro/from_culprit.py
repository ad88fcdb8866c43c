"""Bundles of what a bisection found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlotool.replay.options import ReplayOptions
from hlotool.repro.bundle import Bundle
from hlotool.search.bisection.records import CulpritRecord, SpotRecord


def culprit_title(culprit: CulpritRecord) -> str:
    """A culprit in one line."""
    source = culprit.source
    where = f" in {source.file}:{source.file_line}" if source and source.file else ""
    opcodes = ", ".join(dict.fromkeys(culprit.opcodes[-3:]))
    what = f" of {opcodes}" if opcodes else ""
    if culprit.level == "pass":
        return f"{culprit.pass_name or 'The compiler'} changes the result{what}{where}"
    made = "A library call" if culprit.level == "runtime-library" else "The compiled code"
    return f"{made}{what} gives a wrong result{where}"


def bundle_of(culprit: CulpritRecord, options: ReplayOptions, versions: Mapping[str, str]) -> Bundle | None:
    """The bundle of a culprit; None when there is nothing small enough to run again."""
    spot = culprit.spot
    facts = _facts(culprit)
    if culprit.minimal:
        return _minimal(culprit, facts, options, versions)
    if spot is None or not spot.after:
        return None
    if culprit.level == "pass":
        return _stages(culprit, spot, facts, options, versions)
    row = culprit.comparison
    assert row is not None
    return Bundle(
        kind="result",
        title=culprit_title(culprit),
        verdict=row.verdict.value,
        signature=str(row.signature),
        reason=row.reason,
        program=spot.program,
        kernel=spot.after,
        kernel_inputs=spot.inputs,
        inputs=spot.program_inputs,
        outputs=spot.outputs,
        reference=options.reference,
        culprit=facts,
        evidence=tuple(culprit.evidence),
        versions=dict(versions),
    )


def _minimal(
    culprit: CulpritRecord, facts: dict[str, Any], options: ReplayOptions, versions: Mapping[str, str]
) -> Bundle:
    row = culprit.comparison
    assert row is not None
    return Bundle(
        kind="backend",
        title=culprit_title(culprit),
        verdict=row.verdict.value,
        signature=str(row.signature.smaller()),
        reason=row.reason,
        program=culprit.minimal,
        kernel=culprit.spot.after if culprit.spot else "",
        kernel_inputs=culprit.spot.inputs if culprit.spot else b"",
        inputs=culprit.minimal_inputs,
        reference=options.reference,
        backend=options.backend,
        culprit=facts,
        evidence=tuple(culprit.evidence),
        versions=dict(versions),
    )


def _stages(
    culprit: CulpritRecord,
    spot: SpotRecord,
    facts: dict[str, Any],
    options: ReplayOptions,
    versions: Mapping[str, str],
) -> Bundle | None:
    row = spot.comparison
    if row is None:
        return None
    return Bundle(
        kind="stages",
        title=culprit_title(culprit),
        verdict=row.verdict.value,
        signature=str(row.signature),
        reason=row.reason,
        program=spot.before,
        after=spot.after,
        inputs=spot.inputs,
        reference=options.reference,
        culprit=facts,
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
        "source": f"{source.file}:{source.file_line}" if source and source.file else "",
        "op_name": source.op_name if source else "",
    }
