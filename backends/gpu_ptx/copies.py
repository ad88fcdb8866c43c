"""Asynchronous copies that are on their way: what they write appears when a thread waits for them, not
before.

`cp.async` belongs to the group that its thread commits next; waiting for all but the `n` latest groups lets
the earlier ones arrive. Meanwhile the bytes that are going to be written are marked, so that to touch them
is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.arena import FLIGHT, SET
from hlotool.backends.gpu_ptx.types import Values

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine


@dataclass
class _Copy:
    """Bytes of shape (threads, size) on their way to `offsets` of shared memory; `groups`: which group of
    its thread.
    """

    threads: NDArray[np.intp]
    groups: NDArray[np.int64]
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    place: int


class Copies:
    """The asynchronous copies of all threads of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._committed = np.zeros(machine.count, np.int64)
        self._pending: list[_Copy] = []

    def begin(self, offsets: Values, data: NDArray[np.uint8]) -> None:
        """The active threads begin copies of `data`, of shape (threads, size), to `offsets` of all shared
        memory.
        """
        machine = self._machine
        threads = machine.active_threads
        self._pending.append(_Copy(threads, self._committed[threads], offsets, data, machine.place))
        if machine.shared.shadowed:
            machine.shared.shadow[offsets[:, None] + np.arange(data.shape[1])] = FLIGHT

    def commit(self) -> None:
        """The copies that the active threads have begun are a group."""
        self._committed[self._machine.active_threads] += 1

    def wait(self, left: int) -> None:
        """All groups of the active threads but the `left` latest ones arrive."""
        if not self._pending:
            return
        machine = self._machine
        everyone = machine.active
        waits = np.zeros(machine.count, np.bool_)
        waits[machine.active_threads] = True
        kept = []
        for copy in self._pending:
            due = waits[copy.threads] & (copy.groups < self._committed[copy.threads] - left)
            if due.any():
                machine.active = copy.threads[due]
                self._arrive(copy.offsets[due], copy.data[due])
            if not due.all():
                rest = ~due
                kept.append(
                    _Copy(
                        copy.threads[rest], copy.groups[rest], copy.offsets[rest], copy.data[rest], copy.place
                    )
                )
        self._pending = kept
        machine.active = everyone

    def _arrive(self, offsets: Values, data: NDArray[np.uint8]) -> None:
        machine = self._machine
        each = offsets[:, None] + np.arange(data.shape[1])
        if machine.shared.shadowed:
            machine.shared.shadow[each] = SET
        machine.races.writes(offsets, data.shape[1])
        machine.shared.data[each] = data

    def lines(self, offset: int) -> list[int]:
        """The instructions of copies to the byte at `offset` of all shared memory."""
        return sorted(
            {
                copy.place
                for copy in self._pending
                if ((copy.offsets <= offset) & (offset < copy.offsets + copy.data.shape[1])).any()
            }
        )
