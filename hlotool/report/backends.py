"""The table of `hlotool backends`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from hlotool.report.records import BackendsRecord
from hlotool.report.tables import Report, plain_table


class BackendTable(Report[BackendsRecord]):
    """One line per backend: what it is, or why it cannot be used; with `verbose` also its options."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = plain_table()
        table.add_column("backend", no_wrap=True)
        table.add_column("status", no_wrap=True)
        table.add_column("device", no_wrap=True)
        table.add_column("version, or why it is not available", overflow="fold")
        for backend in self.record.backends:
            status = Text("available", "green") if backend.available else Text("not available", "yellow")
            table.add_row(
                Text(backend.name, "bold"), status, backend.device, Text(backend.version or backend.reason)
            )
        yield table
        if self.verbose:
            yield from self._options()
        else:
            yield Text("--verbose lists the options, as in --backend xla:disable=algsimp", "dim")

    def _options(self) -> Iterator[Table]:
        # A variant that names its device has the options of the backend.
        for backend in self.record.backends:
            if not backend.options or ":" in backend.name:
                continue
            table = plain_table(show_header=False)
            for form, meaning in backend.options.items():
                table.add_row(f"{backend.name}:{form}", meaning)
            yield table
