"""Independent parts of one instruction on several cores: NumPy and BLAS work outside Python's global lock.

How an instruction is cut into parts depends on its shapes only, so the bits of a result do not depend on the
number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TypeVar

from hlotool.workers.cores import usable_cores

Part = TypeVar("Part")

#: Environment variable: how many cores one execution may use; without it, all that the process may use.
VARIABLE = "HLOTOOL_THREADS"

#: More threads than this wait for memory rather than work.
_MOST = 16


@cache
def thread_count() -> int:
    """How many threads work on one instruction."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.isdecimal() and int(chosen):
        return int(chosen)
    return min(_MOST, usable_cores())


@cache
def is_blas_single() -> bool:
    """Whether each product of matrices stays in the thread that asks for it."""
    return os.environ.get("OPENBLAS_NUM_THREADS") == "1"


def each(function: Callable[[Part], object], parts: Sequence[Part]) -> None:
    """Call `function` with every part, in any order, some at the same time.

    The calling thread takes part too and waits for nobody who has not begun: where other processes take the
    cores, it does all of the work by itself. An exception ends the work.
    """
    work = _Work(function, parts)
    helpers = min(thread_count(), len(parts)) - 1
    if helpers < 1:
        work()
        return
    begun = [_pool().submit(copy_context().run, work) for _ in range(helpers)]  # the context holds errstate
    try:
        work()
    finally:
        running = [helper for helper in begun if not helper.cancel()]
        errors = [helper.exception() for helper in running]
        work.forget()
    for error in errors:
        if error is not None:
            raise error


class _Work:
    """Takes the parts that nobody has taken yet, one after the other."""

    def __init__(self, function: Callable[[Part], object], parts: Sequence[Part]) -> None:
        self._function: Callable[[Part], object] | None = function
        self._waiting = iter(parts)

    def __call__(self) -> None:
        function = self._function
        if function is not None:
            for part in self._waiting:  # asking a list's iterator is atomic
                function(part)

    def forget(self) -> None:
        """Hold no arrays any more: a helper that was called off too late to know still holds this."""
        self._function = None
        self._waiting = iter(())


def spans(size: int, count: int) -> Iterator[slice]:
    """Cut `size` into at most `count` slices of equal length, the last perhaps shorter."""
    step = -(-size // max(1, count)) or 1
    return (slice(start, min(size, start + step)) for start in range(0, size, step))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count() - 1, thread_name_prefix="hlotool")
