"""Dask clusters: what `--cluster` names, and the executor that runs one task of Dask for each task.

What is not handed in yet waits here, so that a hundred thousand tasks cost the scheduler no more than a
hundred. A worker that is lost costs nothing but time: Dask gives its tasks to others, a few times at most
(`allowed-failures` of the scheduler).
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from hlotool.errors import BackendCrashed, BackendFailed, BackendUnavailable, UsageError
from hlotool.runs.fleet.identity import made_with_any
from hlotool.runs.fleet.on_worker import (
    Order,
    Reply,
    Setup,
    contents_of,
    files_of,
    machine_here,
    run_order,
    versions_here,
)
from hlotool.runs.options.parsers import STARTED, ClusterSpec, cluster_spec
from hlotool.system import urls
from hlotool.system.executor import Done, Event, Executor, Limits, Started
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


#: Seconds that a cluster at an address may take until it has a worker; one that is started may take any time.
_FIRST_WORKER = 60
#: Tasks that are handed in for each one that can run: the next ones are there when one ends.
_AHEAD = 2
#: Seconds for which it is believed who is there. To ask takes the scheduler longer than to hand out a task,
#: and workers that come are not missed for so long.
_SLOTS_HOLD = 1.0


class Cluster(Executor):
    """Runs tasks on the workers of a Dask cluster. Use it as a context manager.

    Args:
        name: as `--cluster` has it.
        limits: of a task; how many run at the same time is for the cluster to say.
        preload: modules that a worker's process imports before its first task.
        backend: named in the errors of tasks that fail.

    Attributes:
        notes: warnings of the workers for the user, each once.
        listener: it does not learn what a worker is busy with.
        is_as_here: the workers that were there at the start find what this machine would find.
    """

    def __init__(
        self, name: str, limits: Limits, preload: Iterable[str] = (), backend: str = "worker"
    ) -> None:
        self.notes: list[str] = []
        self.listener: Callable[[int, str], None] | None = None
        self._name = name
        self._limits = limits
        self._preload = tuple(preload)
        self._backend = backend
        self._client: Any = None
        self._cluster: Any = None
        self._sends_files = False
        self._slots_seen: tuple[float, Counter[str]] = (float("-inf"), Counter())

    def start(self) -> None:
        """Connect, and see whether the workers are of the same versions.

        Raises:
            BackendUnavailable: the scheduler does not answer, it has no worker, or one of other versions.
        """
        if self._client is not None:
            return
        self._client, self._cluster = connected(self._name)
        try:
            self._client.wait_for_workers(1, timeout=None if self._cluster else _FIRST_WORKER)
            found = self._client.run(versions_here, on_error="return")
            machines = self._client.run(machine_here, on_error="return")
        except TimeoutError as error:
            raise BackendUnavailable(f"--cluster {self._name}: no worker within {_FIRST_WORKER} s") from error
        except Exception as error:
            raise self._lost(error) from error
        for worker, versions in found.items():
            self._check(worker, versions)
        self.is_as_here = set(machines.values()) == {made_with_any()}

    def close(self) -> None:
        """Cancel what runs; a cluster that was started for this command ends."""
        client, cluster = self._client, self._cluster
        self._client = self._cluster = None
        self._slots_seen = float("-inf"), Counter()
        with suppress(Exception):  # of whatever state Ctrl-C or a lost scheduler left them in
            if client is not None:
                client.close(timeout=5)
        with suppress(Exception):
            if cluster is not None:
                cluster.close(timeout=10)

    def run(self, function: str, arguments: Iterable[object]) -> Iterator[Event]:
        """See `Executor`.

        Raises:
            BackendUnavailable: a worker is of other versions.
            BackendCrashed: the connection to the scheduler is lost.
        """
        self.start()
        batch = _Batch(self._client, function, iter(enumerate(arguments)))
        try:
            while True:
                yield from self._hand_in(batch)
                if not batch.running:
                    return
                done = self._ended(batch, *batch.next_end())
                if done is not None:
                    yield done
        finally:
            batch.cancel()

    def _hand_in(self, batch: _Batch) -> Iterator[Started]:
        slots = self._slots()
        setup = self._setup(slots)
        while len(batch.running) < _AHEAD * max(1, sum(slots.values())):
            if (task := next(batch.waiting, None)) is None:
                return
            index, argument = task
            batch.submit(setup, index, self._order(batch.function, argument), argument)
            yield Started(index)

    def _slots(self) -> Counter[str]:
        """How many tasks can run at a time on each host, a moment ago."""
        seen, found = self._slots_seen
        if time.monotonic() - seen > _SLOTS_HOLD:
            found = Counter()
            for worker in self._client.scheduler_info(n_workers=-1)["workers"].values():
                found[worker["host"]] += worker["nthreads"]
            self._slots_seen = time.monotonic(), found
        return found

    def _setup(self, slots: Counter[str]) -> Setup:
        beside = max(slots.values(), default=1) - 1
        limits = replace(self._limits, jobs=1, beside=beside)
        versions = tuple(versions_here().items())
        secrets = tuple(urls.secrets().items())
        return Setup(limits, self._preload, self._backend, secrets, versions, made_with_any())

    def _order(self, function: str, argument: object) -> Order:
        contents = contents_of(argument) if self._sends_files else None
        return Order(function, pickle.dumps(argument), files_of(argument), os.getcwd(), contents)

    def _ended(self, batch: _Batch, index: int, future: Any) -> Done | None:
        """What became of a task; None where it is run again, with its files."""
        argument = batch.running.pop(index)[1]
        try:
            reply: Reply = future.result()
        except Exception as error:
            return Done(index, self._failed(error), 0.0)
        finally:
            future.release()
        if reply.versions:
            self._check("a worker", reply.versions)
        self.notes += [note for note in reply.notes if note not in self.notes]
        if reply.is_blind:
            self._sends_files = True
            setup = self._setup(self._slots())
            batch.submit(setup, index, self._order(batch.function, argument), argument)
            return None
        if reply.failure is not None:
            kind, backend, message, log = reply.failure
            failure = kind(backend, message, log)
            return Done(index, failure, reply.seconds, reply.is_as_there, reply.so_far)
        assert reply.value is not None
        return Done(index, reply.value, reply.seconds, reply.is_as_there)

    def _failed(self, error: Exception) -> BackendFailed:
        """The failure of a task that has no reply; raises BackendCrashed where that is not its own."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            losses = error.allowed_failures + 1
            message = f"{losses} workers of the cluster were lost while it ran there"
            return BackendCrashed(self._backend, message)
        if type(error).__name__ in ("CancelledError", "FutureCancelledError") or isinstance(error, OSError):
            raise self._lost(error) from error
        said = f"{type(error).__name__}: {error}"
        return BackendCrashed(self._backend, f"a worker of the cluster failed: {said}")

    def _lost(self, error: Exception) -> BackendFailed:
        said = f"{type(error).__name__}: {error}"
        return BackendCrashed(self._backend, f"the connection to the cluster {self._name} is lost: {said}")

    def _check(self, worker: str, versions: Any) -> None:
        """Raise BackendUnavailable where a worker would find other results."""
        mine = versions_here()
        if isinstance(versions, Exception):
            raise BackendUnavailable(f"--cluster {self._name}: {worker} cannot run hlotool: {versions}")
        other = [
            f"{name} {versions.get(name, 'is missing')} (here {mine.get(name, 'none')})"
            for name in sorted(mine.keys() | versions.keys())
            if mine.get(name) != versions.get(name)
        ]
        if other:
            said = ", ".join(other)
            raise BackendUnavailable(f"--cluster {self._name}: {worker} is of other versions: {said}")


@dataclass(slots=True)
class _Batch:
    """The tasks of one call of `run`.

    Attributes:
        client: of the cluster.
        function: that is called.
        waiting: arguments that were not handed in, numbered.
        running: by number, the future and the argument.
    """

    client: Any
    function: str
    waiting: Iterator[tuple[int, object]]
    running: dict[int, tuple[Any, object]]
    _ends: queue.SimpleQueue[tuple[int, Any]]

    def __init__(self, client: Any, function: str, waiting: Iterator[tuple[int, object]]) -> None:
        self.client = client
        self.function = function
        self.waiting = waiting
        self.running = {}
        self._ends = queue.SimpleQueue()

    def submit(self, setup: Setup, index: int, order: Order, argument: object) -> None:
        """Hand in a task, also one that was there before."""
        future = self.client.submit(run_order, setup, order, pure=False, retries=0)
        self.running[index] = future, argument
        future.add_done_callback(lambda ended: self._ends.put((index, ended)))

    def next_end(self) -> tuple[int, Any]:
        """Wait for the next task that is over."""
        return self._ends.get()

    def cancel(self) -> None:
        """Let go of what still runs."""
        futures = [future for future, _ in self.running.values()]
        self.running.clear()
        if futures:
            with suppress(Exception):
                self.client.cancel(futures, force=True)
