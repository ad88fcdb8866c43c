"""Findings as SARIF 2.1.0, which code review tools show beside the lines."""

from __future__ import annotations

from typing import Any

from hlotool._version import __version__
from hlotool.check.catalogue import all_rules
from hlotool.check.findings import Finding
from hlotool.report.records import CheckRecord

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(record: CheckRecord) -> dict[str, Any]:
    """The document for `record`: one run with the rules that have findings."""
    used = {finding.rule for finding in record.findings}
    rules = [rule for rule in all_rules().values() if rule.id in used]
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
                                "help": {"text": rule.remedy or rule.title},
                                "defaultConfiguration": {"level": rule.severity.value},
                            }
                            for rule in rules
                        ],
                    }
                },
                "results": [_result(finding) for finding in record.findings],
            }
        ],
    }


def _result(finding: Finding) -> dict[str, Any]:
    """The user's own line comes first where it is known; the HLO is a related location."""
    hlo = _location(finding.file, finding.line)
    source = finding.source
    own = _location(source.file, source.file_line) if source is not None and source.file else None
    text = "\n".join([finding.message, *finding.details, *([finding.remedy] if finding.remedy else [])])
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": finding.severity.value,
        "message": {"text": text},
        "locations": [own or hlo],
    }
    if own:
        result["relatedLocations"] = [hlo]
    if finding.path:
        steps = [
            {"location": {**_location(finding.file, step.line), "message": {"text": step.instruction}}}
            for step in finding.path
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return result


def _location(file: str, line: int) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": file}, **region}}
