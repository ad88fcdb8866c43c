"""Which report shows the record of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


def report_of(record: Any, quiet: bool, verbose: bool) -> RenderableType:
    """The report of a record, by its schema.

    Each is imported here, when it is shown: rich takes a while, and JSON does without it.
    """
    match record.schema.partition("/")[0].removeprefix("hlotool."):
        case "run":
            from hlotool.report.terminal import RunReport

            return RunReport(record, quiet, verbose)
        case "bisect":
            from hlotool.report.bisect import BisectReport

            return BisectReport(record, quiet, verbose)
        case "reduce":
            from hlotool.report.reduce import ReduceReport

            return ReduceReport(record, verbose)
        case "repro":
            from hlotool.report.repro import VerifyReport

            return VerifyReport(record.bundles, verbose)
        case "check":
            from hlotool.report.check import CheckReport

            return CheckReport(record, quiet, verbose)
        case "rules":
            from hlotool.report.check import RuleTable

            return RuleTable(record.rules)
        case "diff":
            from hlotool.report.diff import DiffReport

            return DiffReport(record, quiet, verbose)
        case "inspect":
            from hlotool.report.inspect import InspectReport

            return InspectReport(record, quiet, verbose)
        case "passes":
            from hlotool.report.opt import PassList

            return PassList(record)
        case "explain":
            from hlotool.report.explain import Explanation

            return Explanation(record.matches)
        case "backends":
            from hlotool.report.backends import BackendTable

            return BackendTable(record.backends, verbose)
        case _:
            raise ValueError(f"no report shows {record.schema}")
