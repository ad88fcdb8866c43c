"""Which report shows the record of a command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotool.report.tables import Report

#: By the name in the schema of a record: a module of this folder, and its report.
_REPORTS = {
    "run": ("terminal", "RunReport"),
    "exec": ("exec", "ExecReport"),
    "bisect": ("bisect", "BisectReport"),
    "reduce": ("reduce", "ReduceReport"),
    "extract": ("extract", "ExtractReport"),
    "repro": ("bisect", "VerifyReport"),
    "check": ("check", "CheckReport"),
    "rules": ("check", "RuleTable"),
    "diff": ("diff", "DiffReport"),
    "prove": ("prove", "ProveReport"),
    "fuzz": ("fuzz", "FuzzReport"),
    "mutate": ("mutate", "MutateReport"),
    "conformance": ("conformance", "ConformanceReport"),
    "baseline": ("baseline_report", "BaselineReport"),
    "inspect": ("inspect", "InspectReport"),
    "opt": ("opt", "OptReport"),
    "passes": ("opt", "PassList"),
    "explain": ("explain", "Explanation"),
    "backends": ("backends", "BackendTable"),
    "scale": ("scale", "ScalePlansReport"),
    "cache": ("cache", "CacheReport"),
}


def report_of(record: Any, quiet: bool, verbose: bool) -> Report[Any]:
    """The report of a record, by its schema.

    Each is imported here, when it is shown: rich takes a while, and JSON does without it.
    """
    name = record.schema.partition("/")[0].removeprefix("hlotool.")
    if name not in _REPORTS:
        raise ValueError(f"no report shows {record.schema}")
    module, report = _REPORTS[name]
    shown: Report[Any] = getattr(import_module(f"hlotool.report.{module}"), report)(record, quiet, verbose)
    return shown
