"""`cache`: the verdicts that are kept for later runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from hlotool.api.results import Result
from hlotool.options import numbers
from hlotool.options.declared import Arguments, As, option, takes

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


class CacheArguments(Arguments):
    """What `cache` takes, and `hlotool cache`."""

    action: Literal["info", "prune", "clear"] = option(
        "count, remove what is old, or all",
        "`info` only looks; `prune` removes those that were not used for the longest time, until the"
        " others take no more than `size`; `clear` removes all, and what is known of the files of dumps",
        default="info",
        kw_only=False,
        choices=("info", "prune", "clear"),
    )
    size: As[int | str | None, int | None] = option(
        "what may stay, as 100M [as much as a run leaves]", default=None, parse=numbers.byte_size
    )


@takes(CacheArguments)
def cache(asked: CacheArguments) -> CacheResult:
    """Look at the verdicts that `replay` keeps for later calls, or remove some.

    Raises:
        UsageError: no such action, or an impossible size.
    """
    from hlotool.cache.store import LIMIT, Contents, index_store, verdict_store
    from hlotool.report.cache_records import CacheRecord

    action, limit = asked.action, LIMIT if asked.size is None else asked.size
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
