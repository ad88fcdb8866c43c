"""`trend`: the records of many days, and since when each finding is there."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from hlotool.errors import UsageError
from hlotool.interface.api.results import Result
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, File, option, takes

if TYPE_CHECKING:
    from hlotool.interface.report.trend import SinceRecord, TrendRecord


class TrendResult(Result["SinceRecord"]):
    """What was found on many days: a row for each finding."""

    record: TrendRecord

    @property
    def rows(self) -> Sequence[SinceRecord]:
        """One record per finding, the newest first."""
        return self.record.findings

    def to_page(self) -> str:
        """Everything in one page of HTML that needs no other file.

        Raises:
            UsageError: there is no jinja2.
        """
        from hlotool.interface.report.html.page import page

        return page(self.record)


class TrendArguments(Arguments):
    """What `trend` takes, and `hlotool trend`."""

    records: As[str | os.PathLike[str] | Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "what a command wrote with --record; its day stands in its path, else it is that of the file",
        "files, or URLs of such, that commands wrote with `--record`; the day of each is the last date in"
        " its path, such as `2026-11-20`, else that of the file's last change, in UTC",
        kw_only=False,
        nargs="+",
        metavar="RECORD",
        convert=parsers.paths_text,
    )
    html: File = option("write one page, for a browser", default=None, init=False)


@takes(TrendArguments)
def trend(asked: TrendArguments) -> TrendResult:
    """Lay the records of many days beside each other: results and seconds by day, findings and since when.

    Raises:
        UsageError: a file cannot be read, is no record with findings, or has no day.
        DumpError: nor can that of a store.
    """
    from hlotool.interface.report.baseline import read_record
    from hlotool.interface.report.outcomes import has_outcomes
    from hlotool.interface.report.trend import Dated, trend_of

    found = [Dated(_day_of(name), name, read_record(name)) for name in asked.records]
    for one in found:
        if not has_outcomes(one.record):
            raise UsageError(f"{one.file}: {one.record.schema} is no record with findings")
    return TrendResult(trend_of(asked.records, found))


_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)(?!\d)")


def _day_of(path: str) -> str:
    for year, month, day in reversed(_DATE.findall(path)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue  # other digits
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime, UTC).date().isoformat()
    except OSError as error:
        reason = f"{error.strerror}, and its path has no date such as 2026-11-20"
        raise UsageError(f"{path}: {reason}") from error
