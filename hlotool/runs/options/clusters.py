"""How a cluster of Dask is named."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

#: Kinds of clusters that a package starts: its module, the class, what installs it, the option with the size.
STARTED = {
    "slurm": ("dask_jobqueue", "SLURMCluster", "dask-jobqueue", "jobs"),
    "k8s": ("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes", "n_workers"),
}
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss|inproc)://\S+")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster as the command line names it.

    Attributes:
        kind: `address`, `local`, `slurm`, `k8s`.
        address: of a scheduler.
        workers: how many are started; 0 for what the cluster's own configuration says.
        options: for the software that starts it.
    """

    kind: str
    address: str = ""
    workers: int = 0
    options: dict[str, Any] = field(default_factory=dict)


def cluster_spec(text: str) -> ClusterSpec:
    """What `tcp://HOST:PORT`, `local:N`, `slurm:jobs=N,…` or `k8s:n_workers=N,…` means; raises ValueError."""
    if _ADDRESS.fullmatch(text):
        return ClusterSpec("address", text)
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isdigit() and int(rest):
        return ClusterSpec("local", workers=int(rest))
    if kind in STARTED:
        options = dict(_option(word) for word in rest.split(",") if word)
        return ClusterSpec(kind, "", int(options.pop(STARTED[kind][3], 0)), options)
    forms = "tcp://HOST:8786, local:N, slurm:jobs=N,… or k8s:n_workers=N,…"
    raise ValueError(f"{text!r} is no cluster; write {forms}")


def _option(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{word!r} is no option of a cluster; write NAME=VALUE")
    return name, int(value) if value.isdigit() else value
