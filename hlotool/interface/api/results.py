"""What the functions of the API return: a record, and the ways to look at it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hlotool.errors import ExitCode, Unsupported, UsageError

if TYPE_CHECKING:
    from hlotool.blame.reduction.case import Case
    from hlotool.ir.module import Module
    from hlotool.system.records import Record

#: One of the things that a record lists.
Row = TypeVar("Row", bound="Record")

#: Columns of a report in HTML; the cell of a notebook scrolls.
_HTML_WIDTH = 120


class Result(Generic[Row]):
    """What a call found.

    `str()` is the report that the command prints, `to_dict()` the record that it prints with `--json`; in a
    notebook the report appears with its colours. Iterating gives `rows`. There is no truth value: nothing
    found, and nothing that could be compared, are distinguished by `exit_code`.

    Args:
        record: of the call, as plain data.

    Attributes:
        record: see above; each result has one of its own type.
    """

    record: Any

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """What was found, one entry for each thing."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that the command ends with."""
        return ExitCode(self.record.exit_code)

    @property
    def notes(self) -> list[str]:
        """What was passed over, and warnings."""
        return list(getattr(self.record, "notes", ()))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        raise TypeError(
            f"a {type(self).__name__} is neither true nor false: look at exit_code, or at its rows"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.rows)} rows, exit code {int(self.exit_code)}>"

    def __str__(self) -> str:
        return self.report()

    def report(self, *, quiet: bool = False, verbose: bool = False, width: int | None = None) -> str:
        """The report as plain text.

        Args:
            quiet: only what disagrees, and the totals.
            verbose: every detail.
            width: columns; None folds nothing.
        """
        from hlotool.interface.report.console import plain_text
        from hlotool.interface.report.show import report_of

        return plain_text(report_of(self.record, quiet, verbose), width).rstrip("\n")

    def to_html(self, *, quiet: bool = False, verbose: bool = False) -> str:
        """The report as a fragment of HTML, with its colours; names in it hold no markup.

        Args:
            quiet: only what disagrees, and the totals.
            verbose: every detail.
        """
        from hlotool.interface.report.console import html
        from hlotool.interface.report.show import report_of

        return html(report_of(self.record, quiet, verbose), _HTML_WIDTH)

    def _repr_html_(self) -> str:
        """The report for a notebook."""
        return self.to_html()

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data, as `--json` prints it."""
        plain = plain_data(self.record)
        assert isinstance(plain, dict)
        return plain

    def to_frame(self) -> Any:
        """`rows` as a `pandas.DataFrame`, the fields of the records as columns.

        Raises:
            Unsupported: there is no pandas.
        """
        try:
            import pandas
        except ImportError as error:
            raise Unsupported(f"to_frame() needs pandas (pip install pandas): {error}") from error
        return pandas.DataFrame([plain_data(row) for row in self.rows])


class FindingsResult(Result[Row]):
    """What a call found, which other tools may want to know, too."""

    def to_page(self) -> str:
        """Everything in one page of HTML that needs no other file: for a browser, to be sent or kept."""
        from hlotool.interface.report.html.page import page

        return page(self.record)

    def to_sarif(self) -> dict[str, Any]:
        """The findings as SARIF 2.1.0, for code review tools."""
        from hlotool.interface.report.exports import sarif_of

        return sarif_of(self.record)

    def to_junit(self) -> str:
        """Everything that was looked at as JUnit XML, for build servers."""
        from datetime import datetime

        from hlotool.interface.report.exports import junit
        from hlotool.interface.report.outcomes import outcomes_of

        seconds = getattr(self.record, "seconds", 0.0)
        return junit(outcomes_of(self.record), seconds, datetime.now())

    def to_csv(self) -> str:
        """Everything that was looked at as a table, for spreadsheets; no cell is a formula."""
        from hlotool.interface.report.exports import csv_text
        from hlotool.interface.report.outcomes import outcomes_of

        return csv_text(outcomes_of(self.record))


class CutResult(Result["Record"]):
    """A program that was made of another one, and the arguments to run it on.

    Args:
        record: of the call.
        case: the program; None where the call was stopped before there was one.
    """

    def __init__(self, record: Record, case: Case | None) -> None:
        super().__init__(record)
        self._case = case

    @property
    def rows(self) -> Sequence[Record]:
        """The record itself."""
        return [self.record]

    @property
    def module(self) -> Module:
        """The program; raises UsageError where the call was stopped before there was one."""
        return self._known.module

    @property
    def arguments(self) -> tuple[Any, ...]:
        """One value per parameter; of a program for several devices a tuple of these per device."""
        return self._known.arguments

    @property
    def _known(self) -> Case:
        if self._case is None:
            raise UsageError("there is no program: the call was stopped")
        return self._case


def plain_data(record: Record) -> Any:
    """A record as what JSON reads back."""
    import json

    import msgspec

    from hlotool.system.records import encoded

    return json.loads(encoded(record, msgspec.json.encode))
