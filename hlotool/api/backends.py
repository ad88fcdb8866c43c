"""`backends`: which there are, and why one cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.api.results import Result

if TYPE_CHECKING:
    from hlotool.report.records import BackendRecord, BackendsRecord

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
    from hlotool.report.records import BackendRecord, BackendsRecord
    from hlotool.workers.cores import worker_count
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import Pool

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
