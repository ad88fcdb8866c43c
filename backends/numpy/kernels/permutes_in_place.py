"""Transfers of slices of one buffer into slices of another one: collective-permute with `slice_sizes`.

Operands: buffers to read, buffers to write (which become the result), and where the slices begin in both.
Each side is an array or a tuple of arrays; an array has one begin, or several for as many slices. A device
may then occur in as many pairs: the n-th pair in which it sends reads its n-th slice, the n-th in which it
receives writes its n-th. No compiler in the public sources of XLA executes this form.

XLA: hlo_verifier.cc, CheckInplaceCollectivePermute; hlo_instruction.h, CreateCollectivePermute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hlotool.backends.numpy.lowering import Lowering
from hlotool.ir.attributes import Ints
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape

Pairs: TypeAlias = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Transfer:
    """What one pair moves: the number of a slice on each side."""

    source: int
    target: int
    read: int
    written: int


class InPlace:
    """Exchanges slices between the devices of a group.

    Args:
        instruction: collective-permute or its start, with `slice_sizes`.
        lowering: for errors.
        pairs: source and target devices.
    """

    def __init__(self, instruction: Instruction, lowering: Lowering, pairs: Pairs) -> None:
        self._instruction = instruction
        self._lowering = lowering
        self._is_tuple = isinstance(instruction.operands[0].shape, TupleShape)
        self._sizes: tuple[Ints, ...] = instruction.listed("slice_sizes", tuple)
        self._transfers = list(_transfers(pairs))

    def exchange(self, group: Ints, members: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The written buffers of each member of the group, from the operands of each."""
        operands = dict(zip(group, members))
        results = {device: [b.copy() for b in self._buffers(operands[device][1])] for device in group}
        for transfer in self._transfers:
            if transfer.target in results:
                sender, receiver = operands[transfer.source], operands[transfer.target]
                self._move(transfer, sender, receiver, results[transfer.target])
        return [self._packed(results[device]) for device in group]

    def _move(
        self, transfer: _Transfer, sender: Sequence[Any], receiver: Sequence[Any], results: list[Array]
    ) -> None:
        for number, (buffer, result) in enumerate(zip(self._buffers(sender[0]), results)):
            begins = _begins(self._buffers(sender[2])[number]), _begins(self._buffers(receiver[3])[number])
            first = number * (len(self._sizes) // len(results))
            read = self._region(buffer, begins[0][transfer.read], self._sizes[first + transfer.read])
            written = self._region(result, begins[1][transfer.written], self._sizes[first + transfer.written])
            result[written] = buffer[read]

    def _region(self, buffer: Array, begin: Ints, sizes: Ints) -> tuple[slice, ...]:
        if any(b < 0 or b + n > bound for b, n, bound in zip(begin, sizes, buffer.shape)):
            reason = f"a slice of {list(sizes)} at {list(begin)} of a buffer of {list(buffer.shape)}"
            raise self._lowering.unsupported(self._instruction, reason)
        return tuple(slice(b, b + n) for b, n in zip(begin, sizes))

    def _buffers(self, value: Any) -> tuple[Any, ...]:
        return value if self._is_tuple else (value,)

    def _packed(self, values: list[Array]) -> Any:
        return tuple(values) if self._is_tuple else values[0]


def _transfers(pairs: Pairs) -> Iterator[_Transfer]:
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for source, target in pairs:
        yield _Transfer(source, target, sent[source], received[target])
        sent[source] += 1
        received[target] += 1


def _begins(value: tuple[Any, ...]) -> list[Ints]:
    """The begins of all slices of a buffer: a tuple of indices, or a tuple of such tuples."""
    rows = value if value and isinstance(value[0], tuple) else (value,)
    return [tuple(int(index) for index in row) for row in rows]
