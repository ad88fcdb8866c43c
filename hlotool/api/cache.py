"""`cache`: the verdicts that are kept for later runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from hlotool.api.given import checked
from hlotool.api.numbers import byte_size
from hlotool.api.results import Result
from hlotool.errors import UsageError

if TYPE_CHECKING:
    from hlotool.report.cache_records import CacheRecord


class CacheResult(Result["CacheRecord"]):
    """What the store of verdicts holds."""

    record: CacheRecord

    @property
    def rows(self) -> Sequence[CacheRecord]:
        """The record itself."""
        return [self.record]

    @property
    def entries(self) -> int:
        """How many answers it holds."""
        return self.record.entries


def cache(
    action: Literal["info", "prune", "clear"] = "info", *, size: int | str | None = None
) -> CacheResult:
    """Look at the verdicts that `replay` keeps for later calls, or remove some.

    Args:
        action: `info` only looks; `prune` removes those that were not used for the longest time, until the
            others take no more than `size`; `clear` removes all, and what is known of the files of dumps.
        size: bytes, or text such as `100M`; None for as much as a run leaves.

    Raises:
        UsageError: no such action, or an impossible size.
    """
    from hlotool.cache.store import LIMIT, Contents, index_store, verdict_store
    from hlotool.report.cache_records import CacheRecord

    if action not in ("info", "prune", "clear"):
        raise UsageError(f"no action {action!r}: info, prune or clear")
    checked({"size": size})
    given = byte_size(size) if isinstance(size, str) else size
    limit = LIMIT if given is None else given
    store = verdict_store()
    removed = Contents()
    if action == "prune":
        removed = store.prune(limit)
    elif action == "clear":
        removed = store.clear()
        index_store().clear()
    left = store.contents()
    return CacheResult(
        CacheRecord(
            action=action,
            folder=str(store.folder),
            entries=left.entries,
            size=left.size,
            limit=limit,
            removed=removed.entries,
            removed_size=removed.size,
        )
    )
