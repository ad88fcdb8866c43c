"""What `--cluster` names: a cluster that runs, or one that is started for this command."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from hlotool.cache.passing import passing_folder
from hlotool.errors import BackendUnavailable, UsageError

#: Kinds of clusters that a package starts: its module, the class, what installs it, the option with the size.
_STARTED = {
    "slurm": ("dask_jobqueue", "SLURMCluster", "dask-jobqueue", "jobs"),
    "k8s": ("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes", "n_workers"),
}
#: The part of Dask's configuration with the environment of workers.
_VARIABLES_OF_WORKERS = "distributed.nanny.pre-spawn-environ"
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss|inproc)://\S+")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster as the command line names it.

    Attributes:
        kind: `address`, `local`, `slurm`, `k8s`.
        address: of a scheduler.
        workers: how many are started; 0 for what the cluster's own configuration says.
        options: for whoever starts it.
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
    if kind in _STARTED:
        options = dict(_option(word) for word in rest.split(",") if word)
        return ClusterSpec(kind, "", int(options.pop(_STARTED[kind][3], 0)), options)
    forms = "tcp://HOST:8786, local:N, slurm:jobs=N,… or k8s:n_workers=N,…"
    raise ValueError(f"{text!r} is no cluster; write {forms}")


def _option(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{word!r} is no option of a cluster; write NAME=VALUE")
    return name, int(value) if value.isdigit() else value


def connected(text: str) -> tuple[Any, Any]:
    """A client of the cluster, and the cluster if it was started here.

    Raises:
        BackendUnavailable: a package is missing, or nobody answers there.
        UsageError: no such kind of cluster, or it takes no such options.
    """
    try:
        spec = cluster_spec(text)
    except ValueError as error:
        raise UsageError(f"cluster {error}") from error
    try:
        import distributed
    except ImportError as error:
        raise BackendUnavailable("--cluster needs Dask: pip install 'hlotool[cluster]'") from error
    import dask

    dask.config.set({"distributed.admin.large-graph-warning-threshold": "16GB"})
    try:
        if spec.kind == "address":
            return distributed.Client(spec.address, timeout=_CONNECT, set_as_default=False), None
        made = _local(spec.workers) if spec.kind == "local" else _started(spec)
        return distributed.Client(made, timeout=_CONNECT, set_as_default=False), made
    except (OSError, TimeoutError) as error:
        raise BackendUnavailable(f"--cluster {text}: nobody answers: {error}") from error


#: Seconds that a scheduler may take to answer.
_CONNECT = 30


def _local(workers: int) -> Any:
    """Workers on this machine, each with one task at a time; Ctrl-C is for the first process alone."""
    import dask
    import distributed

    # Dask would put variables for its workers into the environment of this process, where they stay and
    # decide about results (`OMP_NUM_THREADS`); the children that do the work have variables of their own.
    with dask.config.set({_VARIABLES_OF_WORKERS: {}}), _deaf_to_interrupts():
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            # The children that do the work have limits of their own.
            memory_limit=0,
            # Dask leaves files behind.
            local_directory=str(passing_folder()),
            preload="hlotool.fleet.on_worker",
            # Any free port: another cluster of this machine may have the usual one.
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        )


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """What is started meanwhile leaves Ctrl-C to this thread, which hears of it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _started(spec: ClusterSpec) -> Any:
    module, name, package, _ = _STARTED[spec.kind]
    try:
        kind = getattr(import_module(module), name)
    except ImportError as error:
        raise BackendUnavailable(f"--cluster {spec.kind}: needs a package: pip install {package}") from error
    try:
        made = kind(**spec.options)
        if spec.workers:
            made.scale(spec.workers)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--cluster {spec.kind}: {error}") from error
    return made
