"""Parts of one instruction on all cores: NumPy and BLAS work outside of Python's global lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TypeVar

import numpy as np

from hlotool.ir.arrays import Array
from hlotool.system.resources import usable_cores

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

    The calling thread takes part too and does not wait for threads that have not begun: where other processes
    take the cores, it does all of the work by itself. An exception ends the work.
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
    """Takes the parts that have not been taken yet, one after the other."""

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


#: Elements of one operand that are worked on together, unless a row is longer.
_ELEMENTS = 1 << 16


def by_rows(function: Callable[[Sequence[Array]], Sequence[Array]], arrays: Sequence[Array]) -> list[Array]:
    """`function(arrays)`, computed in parts.

    Args:
        function: looks at each row, which is what lies along the last dimension, on its own. The leading
            dimensions of its results are those of its operands.
        arrays: the operands, of equal leading dimensions.
    """
    *leading, _ = arrays[0].shape
    parts = max(a.size for a in arrays) // _ELEMENTS + 1
    if parts == 1 or max(leading, default=1) == 1:
        return list(function(arrays))
    axis = leading.index(max(leading))
    first, *others = ((slice(None),) * axis + (span,) for span in spans(leading[axis], parts))
    values = function([a[first] for a in arrays])
    results = [np.empty((*leading, v.shape[-1]), v.dtype) for v in values]
    _store(results, first, values)
    each(lambda rows: _store(results, rows, function([a[rows] for a in arrays])), others)
    return results


def _store(results: Sequence[Array], rows: tuple[slice, ...], values: Sequence[Array]) -> None:
    for result, value in zip(results, values):
        result[rows] = value
