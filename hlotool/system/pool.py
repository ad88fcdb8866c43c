"""A pool of worker processes that survives whatever its tasks do.

Unlike `concurrent.futures.ProcessPoolExecutor`, a worker that crashes, hangs or fills its memory costs the
task it worked on and nothing else: it is replaced and the others go on.
"""

from __future__ import annotations

import logging
import os
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from hlotool.errors import BackendCrashed, BackendFailed, BackendTimeout
from hlotool.system.executor import Done, Event, Executor, Limits, Started
from hlotool.system.logs import log_target
from hlotool.system.process import WorkerProcess, out_of_memory
from hlotool.system.resources import share_of_free, usable_cores
from hlotool.system.worker import Answer, Doing, Raised, Ready, Returned, SoFar, WorkerOptions

_logger = logging.getLogger(__name__)

#: Seconds that a worker may take until its imports are done.
START_LIMIT = 120.0

#: So many workers in a row may be killed before they are ready; then the task that waits for one has failed.
#: What kills them (most often the system, for want of memory) may be over a moment later, and may also stay.
START_TRIES = 3

#: Read by the numeric libraries; several workers must not each take all cores.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HLOTOOL_THREADS")

#: The numpy backend cuts large products by itself: BLAS's own threads wait for each other on a busy machine.
_BLAS_VARIABLES = {"OPENBLAS_NUM_THREADS": "1"}

#: Read by glibc: freed arrays are used again, not handed back to the system to come back page by page.
_MEMORY_VARIABLES = {"MALLOC_MMAP_THRESHOLD_": str(1 << 26), "MALLOC_TRIM_THRESHOLD_": str(1 << 28)}


class Pool(Executor):
    """Worker processes that call one function on many arguments. Use it as a context manager.

    Args:
        limits: how many workers, and what a task may take.
        preload: modules that a worker imports before its first task.
        backend: named in the errors of tasks that fail.
        environment: of the workers; by default this process's, with the threads shared out.
        interpreter: path of another Python interpreter to run the workers in; it has packages of its own.

    Attributes:
        notes: warnings of the workers for the user, each once.
        listener: receives what the worker of each task is busy with.
    """

    def __init__(
        self,
        limits: Limits,
        preload: Iterable[str] = (),
        backend: str = "worker",
        environment: Mapping[str, str] | None = None,
        interpreter: str = "",
    ) -> None:
        self.notes = []
        self.listener: Callable[[int, str], None] | None = None
        self._limits = limits
        self._backend = backend
        own = worker_environment(limits.jobs + limits.beside)
        self._environment = own if environment is None else environment
        self._interpreter = interpreter
        self._options = WorkerOptions(tuple(preload), limits.memory or 0, log_target(), limits.niceness)
        self._events: queue.SimpleQueue[tuple[WorkerProcess, Answer | None]] = queue.SimpleQueue()
        self._workers: list[WorkerProcess] = []
        self._unready = 0
        self._has_worked = False

    def start(self) -> None:
        """Start the first worker, so that its imports overlap with whatever the caller does next."""
        if not self._workers:
            self._add_worker()

    def close(self) -> None:
        """Kill all workers."""
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def run(self, function: str, arguments: Iterable[object]) -> Iterator[Event]:
        """Call `function` (`package.module:name`) on every argument; arguments are taken as workers get free.

        A worker that is killed before it is ready is replaced; where START_TRIES in a row were, the task that
        waits for one has failed, and the next task tries anew.

        Raises:
            BackendCrashed: no worker has ever started here, and not because something killed them.
        """
        tasks = _Tasks(function, arguments)
        while True:
            yield from self._hand_out(tasks)
            if tasks.is_empty and not any(w.task is not None for w in self._workers):
                return
            worker, answer = self._next_answer()
            if done := self._take(worker, answer, tasks):
                yield done

    def _hand_out(self, tasks: _Tasks) -> Iterator[Started]:
        """Give tasks to all free workers, and start more workers while tasks wait for one."""
        for worker in [w for w in self._workers if w.is_ready and w.task is None]:
            if tasks.is_empty:
                return
            share = self._memory_share(tasks)
            index, argument = tasks.take()
            if worker.send(index, tasks.function, argument, self._limits.timeout, share):
                yield Started(index)
            else:
                tasks.put_back(index, argument)
                self._remove(worker)
        starting = sum(not w.is_ready for w in self._workers)
        while len(self._workers) < self._limits.jobs and starting < tasks.at_least(starting + 1):
            self._add_worker()
            starting += 1

    def _memory_share(self, tasks: _Tasks) -> int:
        """Bytes for the task that begins now; 0 where it is not for the pool to say."""
        if self._limits.memory is not None:
            return 0
        busy = sum(w.task is not None for w in self._workers)
        return share_of_free(max(1, tasks.at_least(self._limits.jobs - busy)) + self._limits.beside)

    def _next_answer(self) -> tuple[WorkerProcess, Answer | None]:
        """Wait for an answer, and meanwhile kill the workers that have had their time."""
        while True:
            deadline = min(w.deadline for w in self._workers)
            try:
                wait = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
                return self._events.get(timeout=wait)
            except queue.Empty:
                for worker in self._workers:
                    if worker.deadline <= time.monotonic() and not worker.put_off():
                        worker.time_out()

    def _take(self, worker: WorkerProcess, answer: Answer | None, tasks: _Tasks) -> Done | None:
        """Act on an answer; the task that it ends, if any."""
        if worker not in self._workers:
            return None
        index = worker.task
        if answer is None:
            return self._bury(worker, tasks)
        if isinstance(answer, Ready):
            worker.is_ready = self._has_worked = True
            self._unready = 0
            worker.finish()
            self.notes += [note for note in answer.notes if note not in self.notes]
            return None
        if index is None:
            return None
        if isinstance(answer, Doing):
            if self.listener is not None:
                self.listener(index, answer.text)
            return None
        if isinstance(answer, SoFar):
            worker.so_far.append(answer.value)
            return None
        worker.finish()
        if isinstance(answer, Returned):
            return Done(index, answer.value, answer.seconds)
        return self._raised(worker, index, answer)

    def _raised(self, worker: WorkerProcess, index: int, answer: Raised) -> Done:
        if answer.kind != "exception":
            # Its memory, or its device's context, may be in any state.
            self._remove(worker)
        error: BackendFailed
        if answer.kind != "memory":
            failure = BackendTimeout if answer.kind == "timeout" else BackendCrashed
            error = failure(self._backend, answer.message, answer.traceback)
        else:
            error = out_of_memory(self._backend, worker.memory, answer.message)
        return Done(index, error, answer.seconds, so_far=worker.so_far)

    def _bury(self, worker: WorkerProcess, tasks: _Tasks) -> Done | None:
        """A worker's process is gone."""
        error = worker.epitaph(self._backend)
        self._workers.remove(worker)
        if not worker.is_ready:
            return self._stillborn(worker, error, tasks)
        if worker.task is None:
            return None
        return Done(worker.task, error, worker.elapsed, so_far=worker.so_far)

    def _stillborn(self, worker: WorkerProcess, error: BackendFailed, tasks: _Tasks) -> Done | None:
        """A worker is gone before it was ready: the task that is given up for it, if any."""
        message = f"a worker process did not start: {error.message}"
        if not (worker.is_killed or self._has_worked):
            raise BackendCrashed(self._backend, message, error.log)
        # What does not start by itself would not do so the next time either.
        self._unready += 1 if worker.is_killed else START_TRIES
        _logger.warning("%s (%d in a row)", message, self._unready)
        if self._unready < START_TRIES or tasks.is_empty:
            return None
        self._unready = 0
        index, _ = tasks.take()
        return Done(index, type(error)(self._backend, message, error.log), worker.elapsed)

    def _add_worker(self) -> None:
        worker = WorkerProcess(self._events, self._options, self._environment, self._interpreter)
        worker.limit_time(START_LIMIT)
        self._workers.append(worker)

    def _remove(self, worker: WorkerProcess) -> None:
        worker.close()
        self._workers.remove(worker)


def worker_environment(jobs: int) -> dict[str, str]:
    """Environment of each of `jobs` workers; what the user has set is left alone."""
    threads = str(max(1, usable_cores() // jobs))
    return dict.fromkeys(_THREAD_VARIABLES, threads) | _BLAS_VARIABLES | _MEMORY_VARIABLES | dict(os.environ)


class _Tasks:
    """Arguments not handed out yet, numbered, drawn from their iterable as late as possible."""

    def __init__(self, function: str, arguments: Iterable[object]) -> None:
        self.function = function
        self._source = enumerate(arguments)
        self._waiting: deque[tuple[int, object]] = deque()

    @property
    def is_empty(self) -> bool:
        return self.at_least(1) == 0

    def at_least(self, count: int) -> int:
        """How many tasks wait; no more than `count` are looked for."""
        while len(self._waiting) < count:
            task = next(self._source, None)
            if task is None:
                break
            self._waiting.append(task)
        return min(len(self._waiting), count)

    def take(self) -> tuple[int, object]:
        """The next task."""
        return self._waiting.popleft()

    def put_back(self, index: int, argument: object) -> None:
        """A task whose worker was dead before it began."""
        self._waiting.appendleft((index, argument))
