"""`hlotool.list_backends` and `hlotool.cache`: what this machine can execute, and what is kept on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from hlotool.interface.api.results import Result
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, option, takes

if TYPE_CHECKING:
    from hlotool.interface.report.command_records import CacheRecord
    from hlotool.interface.report.records import BackendRecord, BackendsRecord


#: Seconds that loading a backend may take.
_TIMEOUT = 60.0


class BackendsResult(Result["BackendRecord"]):
    """The backends: a row for each."""

    record: BackendsRecord

    @property
    def rows(self) -> Sequence[BackendRecord]:
        """One record per backend, by name."""
        return self.record.backends


def list_backends() -> BackendsResult:
    """Every backend by name: available or why not; each is loaded in a process of its own."""
    import msgspec

    from hlotool.backends.registry import Description, listed_backends
    from hlotool.errors import BackendFailed
    from hlotool.interface.report.records import BackendRecord, BackendsRecord
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    names = listed_backends()
    with Pool(Limits(worker_count(0, len(names)), _TIMEOUT)) as pool:
        ends = pool.call_all("hlotool.backends.registry:describe_backend", names)
    records: list[BackendRecord] = []
    for name, end in zip(names, ends):
        if isinstance(end.value, BackendFailed):
            records.append(BackendRecord(name=name, available=False, reason=end.value.message))
            continue
        known = msgspec.msgpack.decode(end.value, type=Description)
        records.append(BackendRecord(name=name, available=not known.reason, **msgspec.structs.asdict(known)))
    return BackendsResult(BackendsRecord(backends=records))


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
        "what may stay, as 100M [as much as a run leaves]", default=None, parse=parsers.byte_size
    )


@takes(CacheArguments)
def cache(asked: CacheArguments) -> CacheResult:
    """Look at the verdicts that `replay` keeps for later calls, or remove some.

    Raises:
        UsageError: no such action, or an impossible size.
    """
    from hlotool.interface.report.command_records import CacheRecord
    from hlotool.system.cache import LIMIT, Contents, index_store, verdict_store

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
