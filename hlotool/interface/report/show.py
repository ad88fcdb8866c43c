"""Which report shows the record of a command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotool.interface.report.console import Report


#: By the name in the schema of a record: the module of its report, and that.
_REPORTS = {
    "demo": "hlotool.interface.report.demo:DemoReport",
    "run": "hlotool.interface.report.terminal:RunReport",
    "exec": "hlotool.interface.report.bisect:ExecReport",
    "bisect": "hlotool.interface.report.bisect:BisectReport",
    "reduce": "hlotool.interface.report.bisect:ReduceReport",
    "extract": "hlotool.interface.report.bisect:ExtractReport",
    "repro": "hlotool.interface.report.bisect:VerifyReport",
    "check": "hlotool.interface.report.listings:CheckReport",
    "rules": "hlotool.interface.report.listings:RuleTable",
    "diff": "hlotool.interface.report.diff:DiffReport",
    "compare": "hlotool.interface.report.two_dumps:CompareReport",
    "gradcheck": "hlotool.interface.report.gradcheck:GradcheckReport",
    "releases": "hlotool.interface.report.releases:ReleasesReport",
    "compile": "hlotool.interface.report.compiled:CompileReport",
    "prove": "hlotool.interface.report.prove:ProveReport",
    "triage": "hlotool.interface.report.triage:TriageReport",
    "fuzz": "hlotool.interface.report.lab_reports:FuzzReport",
    "mutate": "hlotool.interface.report.lab_reports:MutateReport",
    "conformance": "hlotool.interface.report.lab_reports:ConformanceReport",
    "baseline": "hlotool.interface.report.listings:BaselineReport",
    "inspect": "hlotool.interface.report.inspect:InspectReport",
    "opt": "hlotool.interface.report.listings:OptReport",
    "passes": "hlotool.interface.report.listings:PassList",
    "explain": "hlotool.interface.report.listings:Explanation",
    "backends": "hlotool.interface.report.listings:BackendTable",
    "scale": "hlotool.interface.report.evidence:ScalePlansReport",
    "trend": "hlotool.interface.report.trend:TrendReport",
    "cache": "hlotool.interface.report.listings:CacheReport",
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
