"""What kernels may do with memory and cores: overwrite an operand, work on rows at a time, use several
cores.

An operand may be overwritten when nothing else holds its buffer. NumPy and BLAS work outside of Python's
global lock.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

import numpy as np

from hlotool.backends.numpy.plan import Plan, Step
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import TOKEN
from hlotool.system.resources import usable_cores


def owned(array: Array, count: int) -> bool:
    """Whether `array` may be overwritten: nothing else refers to it, or to the buffer that it is a view of.

    Args:
        array: the operand, as the kernel's own positional argument.
        count: `sys.getrefcount(array)`, taken by the kernel itself, in a statement of its own (another
            argument of the same call would count as a reference).
    """
    return count <= _exclusive_count() and _is_whole_buffer(array)


def owns_item(values: list[Any], position: int) -> bool:
    """Whether `values[position]` may be overwritten: only this list, which the kernel owns, holds it."""
    return _item_references(values, position) <= _exclusive_item_count() and _is_whole_buffer(
        values[position]
    )


def _is_whole_buffer(array: Array) -> bool:
    """Whether it is writable, and there is no other reference to what it is a view of."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return False
    return array.base is None or _base_references(array) <= _exclusive_base_count()


def _item_references(values: list[Any], position: int) -> int:
    return sys.getrefcount(values[position])


@cache
def _exclusive_item_count() -> int:
    """What `_item_references` says of an array that only the list holds."""
    return _item_references([np.zeros(1)], 0)


def _base_references(view: Array) -> int:
    """How many references there are to what `view` is a view of; many for what is not a plain array."""
    base = view.base
    if not isinstance(base, np.ndarray) or base.base is not None or base.nbytes < view.nbytes:
        return sys.maxsize
    return sys.getrefcount(base)


@cache
def _exclusive_base_count() -> int:
    """What `_base_references` says of a view whose base has no other reference."""
    return _base_references(np.zeros(1).view())


@cache
def _exclusive_count() -> int:
    """What `sys.getrefcount` says in a kernel whose operand has no other reference."""
    seen: list[int] = []

    def make() -> Array:
        return np.zeros(1)

    def look(array: Array) -> Array:
        seen.append(sys.getrefcount(array))
        return array

    source = Instruction("source", "iota", TOKEN)
    sink = Instruction("sink", "copy", TOKEN, (source,))
    steps = [Step(make, (), 0, (), source), Step(look, (0,), 1, (0,), sink)]
    Plan(Computation("probe", [source, sink], sink), steps, [None, None], 1, ())([])
    return seen[0]


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
