"""Whether a kernel may overwrite an operand: nothing else holds the buffer.

A plan frees dying slots before it calls a kernel, so an operand that dies here is referenced only by the
call itself. CPython's reference count tells exactly that, views included, because a view holds its base.
How many references a call itself holds depends on the interpreter version: it is measured once, through the
same code path, instead of being assumed.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from hlotool.backends.numpy.plan import Plan, Step
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import TOKEN


def owned(array: Array, count: int) -> bool:
    """Whether `array` may be overwritten: nobody else holds it, nor the buffer that it is a view of.

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
    """Whether it can be written to, and nobody else holds what it is a view of."""
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
    """What `_base_references` says of a view whose base nobody else holds."""
    return _base_references(np.zeros(1).view())


@cache
def _exclusive_count() -> int:
    """What `sys.getrefcount` says in a kernel whose operand nobody else holds."""
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
