"""`hlotool.update_baseline` and `verify`: baselines and bundles that were kept, used again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hlotool.errors import UsageError
from hlotool.interface.api.results import Result
from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, As, option, takes

if TYPE_CHECKING:
    from hlotool.blame.bisection.records import Verification
    from hlotool.interface.report.command_records import BisectRecord, VerifyRecord
    from hlotool.interface.report.records import BaselineRecord, CheckRecord, KnownRecord, RunRecord


if TYPE_CHECKING:
    _R = TypeVar("_R", RunRecord, CheckRecord, BisectRecord)


class BaselineResult(Result["KnownRecord"]):
    """A baseline: a row for each known finding."""

    record: BaselineRecord

    @property
    def rows(self) -> Sequence[KnownRecord]:
        """One record per finding."""
        return self.record.known


@dataclass(frozen=True, slots=True)
class Known:
    """A baseline that a call is judged by.

    Attributes:
        baseline: its findings.
        file: that it was read from.
    """

    baseline: BaselineRecord
    file: str

    def judge(self, record: _R) -> _R:
        """The record with what is new about it; only that decides about the exit code."""
        from hlotool.interface.report.baseline import compared_with

        return compared_with(record, self.baseline, self.file)


def known_before(baseline: str | None) -> Known | None:
    """What a baseline knows, read before anything runs; None for none.

    Raises:
        UsageError: it cannot be read, or is no baseline.
    """
    if baseline is None:
        return None
    from hlotool.interface.report.baseline import read_baseline

    return Known(read_baseline(baseline), baseline)


class BaselineArguments(Arguments):
    """What `update_baseline` takes, and `hlotool baseline update`."""

    action: str = option("the only one", init=False, kw_only=False, choices=("update",))
    file: As[str | os.PathLike[str], str] = option(
        "the baseline",
        "the baseline, or its URL; it need not be there yet",
        kw_only=False,
        metavar="FILE",
        convert=declared.path_text,
    )
    records: As[str | os.PathLike[str] | Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "what a command printed with --json",
        "files, or URLs of such, of what commands printed with `--json`",
        kw_only=False,
        nargs="+",
        metavar="RECORD",
        convert=parsers.paths_text,
    )


@takes(BaselineArguments)
def update_baseline(asked: BaselineArguments) -> BaselineResult:
    """Write what is known from now on, as `hlotool baseline update` does.

    What the file knows of modules that the records did not look at stays known.

    Raises:
        UsageError: a file cannot be read or written, or is no record with findings.
        DumpError: nor can that of a store.
    """
    import msgspec

    from hlotool.interface.report.baseline import read_baseline, read_record, updated
    from hlotool.interface.report.outcomes import has_outcomes
    from hlotool.system.paths import exists, write_file
    from hlotool.system.store_access import refuse_web
    from hlotool.system.surrogates import encoded

    path, names = asked.file, asked.records
    refuse_web(path)
    old = read_baseline(path) if exists(path) else None
    known = [read_record(name) for name in names]
    for record, name in zip(known, names):
        if not has_outcomes(record):
            raise UsageError(f"{name}: {record.schema} is no record with findings")
    found = updated(old, known, path)
    write_file(path, [encoded(found, msgspec.json.encode) + b"\n"])
    return BaselineResult(found)


class VerifyResult(Result["Verification"]):
    """Whether bundles still fail: a row for each."""

    record: VerifyRecord

    @property
    def rows(self) -> Sequence[Verification]:
        """One record per bundle."""
        return self.record.bundles


class VerifyArguments(Arguments):
    """What `verify` takes, and `hlotool repro verify`."""

    action: str = option("the only one", init=False, kw_only=False, choices=("verify",))
    folders: As[str | os.PathLike[str] | Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "folder of a bundle", kw_only=False, nargs="+", metavar="DIR", convert=parsers.paths_text
    )
    backend: str | None = option("instead of the one that the bundle names", default=None, metavar="NAME")
    timeout: float = option("of its command [300]", default=300.0, parse=parsers.seconds)
    trust: bool = option(
        "run the command and the backend options that a bundle names", default=False, once=True
    )


@takes(VerifyArguments)
def verify(asked: VerifyArguments) -> VerifyResult:
    """Run repro bundles again, as `hlotool repro verify` does.

    Returns:
        `exit_code` is 1 when a bundle still fails in the same way, 0 when none fails any more, 5 when one
        fails in another way.

    Raises:
        UsageError: a folder holds no bundle, or one that has to be trusted is not.
    """
    from hlotool.blame.repro.verify import verify as verify_bundle
    from hlotool.interface.report.command_records import VerifyRecord, verify_exit_code
    from hlotool.system.paths import here

    wanted = asked.backend, asked.timeout, asked.trust
    found = [verify_bundle(Path(here(folder)), *wanted) for folder in asked.folders]
    return VerifyResult(VerifyRecord(bundles=found, exit_code=verify_exit_code(found)))
