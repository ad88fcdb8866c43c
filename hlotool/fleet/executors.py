"""Which executor a command works with."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

from hlotool.workers.executor import Executor, Limits
from hlotool.workers.pool import Pool


def executor_of(
    cluster: str | None, limits: Limits, preload: Iterable[str] = (), backend: str = "worker"
) -> AbstractContextManager[Executor]:
    """The workers of a cluster where one is named, else processes of this machine; see `Pool`."""
    if cluster is None:
        return Pool(limits, preload, backend)
    from hlotool.fleet.cluster import Cluster

    return Cluster(cluster, limits, preload, backend)
