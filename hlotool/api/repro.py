"""`verify`: do repro bundles still fail, and in the same way?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.api.results import Result
from hlotool.options import numbers, parsers
from hlotool.options.declared import Arguments, As, option, takes

if TYPE_CHECKING:
    from hlotool.report.bisect_records import VerifyRecord
    from hlotool.search.bisection.records import Verification


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
    timeout: float = option("of its command [300]", default=300.0, parse=numbers.seconds)
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
    from hlotool.report.bisect_records import VerifyRecord, verify_exit_code
    from hlotool.repro.verify import verify as verify_bundle
    from hlotool.stores.paths import here

    wanted = asked.backend, asked.timeout, asked.trust
    found = [verify_bundle(Path(here(folder)), *wanted) for folder in asked.folders]
    return VerifyResult(VerifyRecord(bundles=found, exit_code=verify_exit_code(found)))
