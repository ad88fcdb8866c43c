"""Exchange of pieces of different lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlotool.backends.numpy.devices import collective
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@lowers("ragged-all-to-all")
def ragged_all_to_all(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The output operand with the rows that all members send to this one.

    The offsets and sizes are of shape `[members]` or `[members, updates]`, indexed by the receiver; output
    offsets are places in the receiver's output. What the receiver expects to get is not needed.
    XLA: operation_semantics.md#raggedalltoall.
    """

    def check(begin: int, size: int, array: Array) -> None:
        if size < 0 or (size and not 0 <= begin <= len(array) - size):
            reason = f"a piece of {size} rows at {begin} of an array of {len(array)}"
            raise lowering.unsupported(instruction, reason)

    def exchange(members: Sequence[tuple[Array, ...]]) -> list[Array]:
        results = [operands[1].copy() for operands in members]
        for source, _, starts, sizes, places, _ in members:
            for receiver, result in enumerate(results):
                for start, size, place in _updates(receiver, len(members), starts, sizes, places):
                    check(start, size, source)
                    check(place, size, result)
                    result[place : place + size] = source[start : start + size]
        return results

    return collective(instruction, lowering, exchange)


def _updates(receiver: int, count: int, *columns: Array) -> Iterator[tuple[int, ...]]:
    """(start, size, place) of what goes to one member."""
    rows = (column.reshape(count, -1)[receiver].tolist() for column in columns)
    yield from zip(*rows)
