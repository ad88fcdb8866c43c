"""Which report shows the record of a command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotool.report.tables import Report

#: By the name in the schema of a record: the module of its report, and that.
_REPORTS = {
    "run": "hlotool.report.terminal:RunReport",
    "exec": "hlotool.report.exec:ExecReport",
    "bisect": "hlotool.report.bisect:BisectReport",
    "reduce": "hlotool.report.reduce:ReduceReport",
    "extract": "hlotool.report.extract:ExtractReport",
    "repro": "hlotool.report.bisect:VerifyReport",
    "check": "hlotool.report.check:CheckReport",
    "rules": "hlotool.report.check:RuleTable",
    "diff": "hlotool.report.diff:DiffReport",
    "prove": "hlotool.report.prove:ProveReport",
    "fuzz": "hlotool.report.fuzz:FuzzReport",
    "mutate": "hlotool.report.mutate:MutateReport",
    "conformance": "hlotool.report.conformance:ConformanceReport",
    "baseline": "hlotool.report.baseline_report:BaselineReport",
    "inspect": "hlotool.report.inspect:InspectReport",
    "opt": "hlotool.report.opt:OptReport",
    "passes": "hlotool.report.opt:PassList",
    "explain": "hlotool.report.explain:Explanation",
    "backends": "hlotool.report.backends:BackendTable",
    "scale": "hlotool.report.scale:ScalePlansReport",
    "cache": "hlotool.report.cache:CacheReport",
}


def report_of(record: Any, quiet: bool, verbose: bool) -> Report[Any]:
    """The report of a record, by its schema.

    Each is imported here, when it is shown: rich takes a while, and JSON does without it.
    """
    name = record.schema.partition("/")[0].removeprefix("hlotool.")
    if name not in _REPORTS:
        raise ValueError(f"no report shows {record.schema}")
    module, _, report = _REPORTS[name].partition(":")
    shown: Report[Any] = getattr(import_module(module), report)(record, quiet, verbose)
    return shown
