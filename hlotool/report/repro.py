"""The report of `hlotool repro verify`."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.findings.verdict import DIFFERING
from hlotool.report.bisect_records import VerifyRecord
from hlotool.report.leaf import LeafDiff
from hlotool.report.tables import Report
from hlotool.repro.verify import Verification


class VerifyReport(Report[VerifyRecord]):
    """What became of each bundle."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for bundle in self.record.bundles:
            yield _headline(bundle)
            yield Padding(Text(bundle.title), (0, 0, 0, 2))
            yield Padding(Text(f"{bundle.found or 'now'}: {bundle.reason}", "dim"), (0, 0, 0, 2))
            if bundle.compared:
                yield Padding(Text(f"compared: {bundle.compared}", "dim"), (0, 0, 0, 2))
            if bundle.fails and not bundle.same:
                yield Padding(Text(f"when it was made: {bundle.expected}", "dim"), (0, 0, 0, 2))
            if self.verbose and bundle.comparison is not None:
                wrong = [leaf for leaf in bundle.comparison.leaves if leaf.verdict in DIFFERING]
                yield from (Padding(LeafDiff(leaf), (1, 0, 0, 2)) for leaf in wrong)


def _headline(bundle: Verification) -> Text:
    if bundle.fails is None:
        return Text.assemble(("? ", "yellow"), (bundle.folder, "bold"), "  nothing could be compared")
    if not bundle.fails:
        return Text.assemble(("✓ ", "green"), (bundle.folder, "bold"), "  does not fail any more")
    words = "still fails, in the same way" if bundle.same else "fails, but in another way"
    return Text.assemble(("✗ ", "bold red"), (bundle.folder, "bold"), f"  {words}")
