"""The legal pairs of one program, compared in exact arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common.units import UnitDone
from benchmarks.exact.legal import Compilations, Missing, legal_pairs
from benchmarks.exact.records import FaultRecord, LegalRecord, Proof
from benchmarks.exact.subjects import subject_named
from hlotool.errors import HlotoolError
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.task import programs as sides


def legal_records(
    name: str, folder: Path, other_python: str, seed: int, ways: str, seconds: float
) -> list[LegalRecord]:
    """All pairs of one program, proved; the same text made in the same way counts once."""
    subject = subject_named(name, seed)
    found: list[LegalRecord] = []
    proofs: dict[str, Proof] = {}
    seen: set[tuple[str, str]] = set()
    try:
        for pair in legal_pairs(subject, Compilations(folder / "stages"), other_python, ways):
            if isinstance(pair, Missing):
                found.append(LegalRecord(name, subject.group, pair.way, pair.detail, None, pair.reason))
            elif (pair.way, pair.key) not in seen:
                seen.add((pair.way, pair.key))
                if pair.key not in proofs:
                    proofs[pair.key] = _proof(pair.reference, pair.tested, seed, seconds)
                found.append(LegalRecord(name, subject.group, pair.way, pair.detail, proofs[pair.key]))
    except (HlotoolError, ImportError) as error:
        found.append(LegalRecord(name, subject.group, "read", "", None, f"{type(error).__name__}: {error}"))
    return found


def _proof(reference: Any, tested: Any, seed: int, seconds: float) -> Proof:
    try:
        return Proof.of(compare(*sides(reference, tested), Options(seed=seed, time_limit=seconds)))
    except HlotoolError as error:
        return Proof("refused", str(error).splitlines()[0])


def said(records: list[Any]) -> str:
    """What should not be."""
    alarms = [r for r in records if isinstance(r, LegalRecord) and r.proof and r.proof.relation == "unequal"]
    missed = [r for r in records if isinstance(r, FaultRecord) and r.proof.relation == "equal"]
    refused = sum(
        not isinstance(r, UnitDone) and r.proof is not None and r.proof.relation == "refused" for r in records
    )
    said = [(len(alarms), "accused"), (len(missed), "missed"), (refused, "refused")]
    return "".join(f", {count} {what}" for count, what in said if count)
