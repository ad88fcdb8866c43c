"""What `--cluster` names: a cluster that runs, or one that is started for this command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hlotool.errors import BackendUnavailable, UsageError
from hlotool.runs.options.clusters import STARTED, ClusterSpec, cluster_spec
from hlotool.system.files import passing_folder

#: The part of Dask's configuration with the environment of workers.
_VARIABLES_OF_WORKERS = "distributed.nanny.pre-spawn-environ"


def connected(text: str) -> tuple[Any, Any]:
    """A client of the cluster, and the cluster if it was started here.

    Raises:
        BackendUnavailable: a package is missing, or the scheduler does not answer.
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
        raise BackendUnavailable(f"--cluster {text}: the scheduler does not answer: {error}") from error


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
            preload="hlotool.runs.fleet.on_worker",
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
    module, name, package, _ = STARTED[spec.kind]
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
