"""Accesses of global memory by different blocks of one launch, which nothing orders but atomic operations.

Of each granule the last block that wrote it is recorded, and the block that read it, or that several did.
Atomic operations race with nothing here. Threads of one block are not told apart: barriers order them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.backends.gpu_ptx.model import Kernel
from hlotool.backends.gpu_ptx.types import Values

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

#: In place of a block: several of them.
_SEVERAL = -1


class BlockRaces:
    """Who accessed what in a launch.

    Args:
        kernel: what is launched.
        begin, end: addresses between which something may be written that is read, too; reads of others are
            not looked at.
    """

    def __init__(self, kernel: Kernel, begin: int, end: int) -> None:
        self._kernel = kernel
        self._shift = _granule(kernel)
        self._begin, self._end = begin, end
        size = (end - begin >> self._shift) + 1
        #: Block + 1; zero: none. Pages that nothing touches cost nothing.
        self._writer, self._reader = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self._place = np.zeros(size, np.int32)

    def reads(self, machine: Machine, addresses: Values, width: int) -> None:
        """The active threads read; raises AccessFault where another block wrote."""
        if (found := self._granules(machine, addresses, width)) is None:
            return
        where, who, _ = found
        writer = self._writer[where]
        if writer.any():
            self._check(writer, who, where, width, "reads what block {} wrote")
        reader = self._reader[where]
        self._reader[where] = np.where((reader == 0) | (reader == who), who, _SEVERAL)
        # Of several blocks that read it in one instruction, one is recorded now.
        other = self._reader[where] != who
        self._reader[where[other]] = _SEVERAL

    def writes(self, machine: Machine, addresses: Values, width: int, values: Values) -> None:
        """The active threads write `values`; raises AccessFault where another block reads, or writes
        something else.
        """
        if (found := self._granules(machine, addresses, width)) is None:
            return
        where, who, chosen = found
        reader, writer = self._reader[where], self._writer[where]
        if reader.any():
            self._check(reader, who, where, width, "writes what block {} reads")
        self._writer[where], self._place[where] = who, machine.place
        lost = self._writer[where] != who
        if writer.any() or lost.any():
            values = np.broadcast_to(values, addresses.shape)[chosen]
            same = np.repeat(
                machine.memory.load(addresses[chosen], 8 * width) == values, len(where) // len(values)
            )
            self._check(np.where(same, 0, writer), who, where, width, "writes what block {} wrote")
            self._check_at_once(where, lost, values)

    def _check_at_once(self, where: Values, lost: Values, values: Values) -> None:
        """Two blocks write one granule in one instruction: they have to write the same."""
        if not lost.any():
            return
        each = np.repeat(values, len(where) // len(values))
        order = np.argsort(where, kind="stable")
        differs = (where[order][1:] == where[order][:-1]) & (each[order][1:] != each[order][:-1])
        clash = lost[order][1:] | lost[order][:-1]
        if (differs & clash).any():
            raise AccessFault("race", "another block writes another value there in the same instruction")

    def _granules(
        self, machine: Machine, addresses: Values, width: int
    ) -> tuple[Values, Values, Values | slice] | None:
        """The granules of the accesses that are looked at, the block + 1 of each, and which of the accesses
        these are; None for none.
        """
        if machine.races.suspended or not addresses.size:
            return None
        low, high = addresses.min(), addresses.max()
        if high + width <= self._begin or low >= self._end:
            return None
        who = machine.active_of(machine.grid_block).astype(np.int32) + 1
        addresses = np.broadcast_to(addresses, who.shape)
        where = addresses - self._begin >> self._shift
        chosen: Values | slice = slice(None)
        if low < self._begin or high + width > self._end:
            chosen = np.flatnonzero((addresses >= self._begin) & (addresses + width <= self._end))
            where, who = where[chosen], who[chosen]
        if width >> self._shift > 1:
            steps = np.arange(width >> self._shift)
            where, who = (where[:, None] + steps).ravel(), np.repeat(who, len(steps))
        return where, who, chosen

    def _check(self, other: Values, who: Values, where: Values, width: int, message: str) -> None:
        wrong = (other != 0) & (other != who)
        if not wrong.any():
            return
        which = int(np.argmax(wrong))
        block = int(other[which])
        name = "another" if block == _SEVERAL else str(block - 1)
        line = ""
        if "wrote" in message:
            earlier = self._kernel.code[int(self._place[where[which]])]
            line = f" in line {earlier.line} ({earlier.text})"
        text = message.format(name) + line
        raise AccessFault("race", f"{text}: nothing orders the two", which // max(1, width >> self._shift))


def _granule(kernel: Kernel) -> int:
    """Logarithm of the bytes of the smallest access of global memory, four at most."""
    smallest = 2
    for one in kernel.code:
        if one.opcode == "cp" and one.has("bulk"):
            return 0
        if one.opcode in ("ld", "st") and not any(map(one.has, ("shared", "param", "local"))):
            smallest = min(smallest, {"8": 0, "6": 1}.get(one.modifiers[-1][-1], 2))
    return smallest
