"""What runs the tasks of a batch: processes on this machine, or on others.

An executor is handed a function and its arguments and reports what becomes of each. Who uses one knows
nothing of processes or machines, and who makes one nothing of HLO.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from msgspec import Struct

from hlotool.errors import BackendFailed


class Started(Struct, frozen=True):
    """Task number `index` was handed to a worker; again where the first one was lost with its machine."""

    index: int


class Done(Struct, frozen=True):
    """Task number `index` is over.

    Attributes:
        index: position among the arguments.
        value: the function's result in MessagePack, or why there is none.
        seconds: wall time of the call.
        so_far: where there is none, what the function had handed over (`worker.hand_over`), in order.
        is_as_here: this machine would have found the same to the last bit: its processor can do the same, and
            libraries and variables of the environment are the same.
    """

    index: int
    value: bytes | BackendFailed
    seconds: float
    is_as_here: bool = True
    so_far: Sequence[bytes] = ()


Event: TypeAlias = Started | Done


class Limits(Struct, frozen=True):
    """What a task may take.

    Attributes:
        jobs: workers at the same time.
        timeout: seconds per task, those not counted in which no processor was free; None for no limit.
        memory: bytes of address space per worker, 0 for no limit; None for a share of what is free when a
            task begins, the same for each task that runs beside it.
        niceness: how much the workers give way to other processes, as for `nice`.
        beside: tasks that others run on the same machine at the same time.
    """

    jobs: int = 1
    timeout: float | None = None
    memory: int | None = None
    niceness: int = 0
    beside: int = 0


class Executor(Protocol):
    """Runs tasks, each within the limits that the executor was made with. Implementations are subclasses.

    Attributes:
        notes: warnings of the workers for the user, each once.
        listener: receives what the worker of each task is busy with.
        is_as_here: all workers find what this machine would find, to the last bit; known after `start`.
    """

    notes: list[str]
    listener: Callable[[int, str], None] | None
    is_as_here: bool = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, function: str, arguments: Iterable[object]) -> Iterator[Event]:
        """Call `function` (`package.module:name`) on every argument.

        Arguments are drawn when there is room for them, no more than a few ahead: to draw one may take time,
        and which ones are left may depend on what is done by then. Exactly one `Done` is reported for each
        that was drawn, as soon as it is over, in any order. What a task does to its worker (crash, hang, fill
        the memory) is its own `Done`; a worker that is lost for another reason costs nothing: its task is
        run again, a few times at most.

        Raises:
            BackendFailed: no task can be run at all.
        """
        ...

    def call_all(self, function: str, arguments: Sequence[object]) -> list[Done]:
        """How the calls on all arguments ended, in their order; otherwise as `run`."""
        ends = [event for event in self.run(function, arguments) if isinstance(event, Done)]
        return sorted(ends, key=lambda end: end.index)

    def start(self) -> None:
        """Begin with what takes time before the first task; `run` does it otherwise."""
        ...

    def close(self) -> None:
        """End all tasks at once; what is not done is never reported."""
        ...
