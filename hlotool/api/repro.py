"""`verify`: do repro bundles still fail, and in the same way?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.api.given import checked
from hlotool.api.results import Result

if TYPE_CHECKING:
    from hlotool.report.bisect_records import VerifyRecord
    from hlotool.repro.verify import Verification


class VerifyResult(Result["Verification"]):
    """Whether bundles still fail: a row for each."""

    record: VerifyRecord

    @property
    def rows(self) -> Sequence[Verification]:
        """One record per bundle."""
        return self.record.bundles


def verify(
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    backend: str | None = None,
    timeout: float = 300.0,
    trust: bool = False,
) -> VerifyResult:
    """Run repro bundles again, as `hlotool repro verify` does.

    Args:
        folders: of bundles.
        backend: instead of the one that a bundle names.
        timeout: of a bundle's command, in seconds.
        trust: run the command and the backend options that a bundle names.

    Returns:
        `exit_code` is 1 when a bundle still fails in the same way, 0 when none fails any more, 5 when one
        fails in another way.

    Raises:
        UsageError: a folder holds no bundle, or one that has to be trusted is not.
    """
    checked({"timeout": timeout})
    from hlotool.report.bisect_records import VerifyRecord, verify_exit_code
    from hlotool.repro.verify import verify as verify_bundle
    from hlotool.stores.masks import taken_in
    from hlotool.stores.paths import here

    given = [folders] if isinstance(folders, str | os.PathLike) else folders
    local = [Path(here(taken_in(os.fspath(folder)))) for folder in given]
    found = [verify_bundle(folder, backend, timeout, trust) for folder in local]
    return VerifyResult(VerifyRecord(bundles=found, exit_code=verify_exit_code(found)))
