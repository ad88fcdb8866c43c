"""Outcomes as SARIF 2.1.0, which code review tools show beside the lines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from hlotool._version import __version__
from hlotool.cache.fingerprint import digest
from hlotool.check.findings import Finding
from hlotool.report.outcome_rules import rules_for
from hlotool.report.outcomes import Outcome, State, outcomes_of
from hlotool.report.records import CheckRecord

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: What relative addresses are relative to: the folder in which the command was called.
_BASE = "SRCROOT"
#: Name and version of what `partialFingerprints` is computed of: `Outcome.identity`.
_FINGERPRINT = "hlotoolIdentity/v1"


def sarif(
    outcomes: Sequence[Outcome], findings: Sequence[Finding] = (), has_baseline: bool = False
) -> dict[str, Any]:
    """The document: one run with the rules that have results; what agrees is no result.

    Args:
        outcomes: of a command.
        findings: of `check`, in the order of the outcomes that they became: their paths become code flows.
        has_baseline: results are compared with what was known.
    """
    shown = [(number, outcome) for number, outcome in enumerate(outcomes) if not outcome.is_passed]
    rules = rules_for(outcome.rule for _, outcome in shown)
    places = {rule.id: index for index, rule in enumerate(rules)}
    results = []
    seen: Counter[str] = Counter()
    for number, outcome in shown:
        result = _result(outcome, places[outcome.rule], seen, has_baseline)
        if number < len(findings) and findings[number].path:
            result["codeFlows"] = [_flow(findings[number])]
        results.append(result)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hlotool",
                        "version": __version__,
                        "rules": [
                            {
                                "id": rule.id,
                                "shortDescription": {"text": rule.title},
                                "help": {"text": rule.remedy},
                                "defaultConfiguration": {"level": rule.severity.value},
                            }
                            for rule in rules
                        ],
                    }
                },
                "originalUriBaseIds": {
                    _BASE: {"description": {"text": "the folder in which hlotool was called"}}
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def sarif_of(record: Any) -> dict[str, Any]:
    """The document for the record of a command with findings."""
    findings = record.findings if isinstance(record, CheckRecord) else ()
    return sarif(outcomes_of(record), findings, getattr(record, "baseline", None) is not None)


def _result(outcome: Outcome, rule: int, seen: Counter[str], has_baseline: bool) -> dict[str, Any]:
    """The user's own line comes first where it is known; the HLO is a related location."""
    hlo = _location(outcome.file, outcome.line) if outcome.file else None
    source = outcome.source
    own = _location(source.file, source.file_line) if source is not None and source.file else None
    text = "\n".join([outcome.message or outcome.rule, *outcome.details])
    key = digest(outcome.command, *(outcome.identity or (outcome.name, outcome.rule)))
    result: dict[str, Any] = {
        "ruleId": outcome.rule,
        "ruleIndex": rule,
        "message": {"text": text},
        # Findings that nothing but their place tells apart are told apart by their number.
        "partialFingerprints": {_FINGERPRINT: f"{key}:{seen[key]}"},
    }
    seen[key] += 1
    if has_baseline:
        result["baselineState"] = "unchanged" if outcome.is_known else "new"
    if outcome.state is State.SKIPPED:
        # Nothing is known, which is no finding.
        result |= {"kind": "open", "level": "none"}
    else:
        result["level"] = outcome.severity.value
    if places := [place for place in (own, hlo) if place is not None]:
        result["locations"] = places[:1]
        if places[1:]:
            result["relatedLocations"] = places[1:]
    return result


def _flow(finding: Finding) -> dict[str, Any]:
    steps = [
        {"location": {**_location(finding.file, step.line), "message": {"text": step.instruction}}}
        for step in finding.path
    ]
    return {"threadFlows": [{"locations": steps}]}


def _location(file: str, line: int) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line > 0 else {}
    return {"physicalLocation": {"artifactLocation": _artifact(file), **region}}


def _artifact(file: str) -> dict[str, str]:
    """The address of a file: relative where it is below the current folder, so that it holds elsewhere."""
    if "://" in file:
        return {"uri": quote(file, safe="/:%?&=@+,;~#")}
    if os.path.isabs(file):
        inside = os.path.relpath(file)
        if inside.startswith(os.pardir):
            return {"uri": f"file://{_quoted(file)}"}
        file = inside
    return {"uri": _quoted(os.path.normpath(file)), "uriBaseId": _BASE}


def _quoted(file: str) -> str:
    # A name that is no UTF-8 keeps its bytes.
    return quote(os.fsencode(file.replace(os.sep, "/")))
