"""Barriers in shared memory that also count bytes on their way (PTX ISA, "mbarrier").

A phase is complete when all arrivals that it expects have happened and all bytes that were announced have
come. A bulk copy comes as late as it may: when a thread waits for its barrier. Until then what it writes is
marked, so that to touch it is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.arena import FLIGHT, SET, AccessFault
from hlotool.backends.gpu_ptx.types import Values
from hlotool.errors import KernelFault, Location

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

#: Bytes of a barrier, and how many arrivals it counts at most.
BARRIER_BYTES = 8
MOST_ARRIVALS = (1 << 20) - 1


@dataclass
class _Copy:
    """Bytes on their way to `offsets` of all shared memory, begun by `thread` at instruction `place`."""

    thread: int
    offsets: Values
    data: NDArray[np.uint8]
    place: int


@dataclass
class _Barrier:
    """One barrier of one block.

    Attributes:
        count: arrivals that each phase expects.
        pending: those that are missing.
        missing: announced bytes that have not come.
        phase: number of the current phase.
        arriving: what the warps that have arrived in this phase know; `known`: in the last complete one.
        copies: on their way.
        waiting: threads that wait for the end of this phase, and where.
    """

    count: int
    pending: int
    arriving: NDArray[np.int32]
    known: NDArray[np.int32]
    missing: int = 0
    phase: int = 0
    copies: list[_Copy] = field(default_factory=list)
    waiting: list[tuple[NDArray[np.intp], int]] = field(default_factory=list)


class Transactions:
    """The barriers of this kind of all blocks of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._barriers: dict[tuple[int, int], _Barrier] = {}

    def begin(self, addresses: Values, counts: Values) -> None:
        """The active threads make barriers that expect `counts` arrivals in each phase."""
        warps = self._machine.warps_per_block
        for thread, address, count in zip(self._machine.active_threads, addresses, counts):
            if not 1 <= count <= MOST_ARRIVALS:
                raise AccessFault("barrier", f"a barrier cannot expect {count} arrivals")
            empty = np.zeros((1, warps), np.int32)
            key = int(self._machine.block[thread]), int(address)
            self._barriers[key] = _Barrier(int(count), int(count), empty, empty.copy())

    def end(self, addresses: Values) -> None:
        """The active threads make what is there no barrier."""
        for which, (_, barrier) in enumerate(self._at(addresses)):
            if barrier.waiting or barrier.copies:
                raise AccessFault("barrier", "a barrier ends that is still in use", which)
        for thread, address in zip(self._machine.active_threads, addresses):
            self._barriers.pop((int(self._machine.block[thread]), int(address)), None)

    def arrive(self, addresses: Values, announced: Values, counts: Values) -> None:
        """The active threads announce bytes, then arrive `counts` times."""
        for which, (thread, barrier) in enumerate(self._at(addresses)):
            barrier.missing += int(announced[which])
            barrier.pending -= int(counts[which])
            if barrier.pending < 0:
                raise AccessFault("barrier", "more threads arrive than the barrier expects", which)
            if counts[which]:
                self._machine.races.publish(np.array([thread]), barrier.arriving)
            self._go_on(barrier)

    def copy(self, thread: int, address: int, offsets: Values, data: NDArray[np.uint8]) -> None:
        """`thread` begins a copy of `data`, of shape (pieces, bytes), to `offsets` of all shared memory."""
        machine = self._machine
        [(_, barrier)] = self._at(np.array([address]), [thread])
        copy = _Copy(thread, offsets[:, None] + np.arange(data.shape[1]), data, machine.place)
        self._write(copy)
        if machine.shared.shadowed:
            machine.shared.shadow[copy.offsets] = FLIGHT
        barrier.copies.append(copy)
        self._go_on(barrier)

    def wait(self, address: int, threads: NDArray[np.intp], parity: int) -> bool:
        """Threads of one block wait for the end of the phase of this parity.

        Returns:
            whether it is over; if not, they go on behind this instruction when it is.
        """
        [(_, barrier)] = self._at(np.array([address]), threads[:1].tolist())
        if barrier.phase & 1 == parity:
            self._come(barrier)
        if barrier.phase & 1 == parity:
            barrier.waiting.append((threads, self._machine.place))
            return False
        self._machine.races.learn(threads, barrier.known)
        return True

    def finish(self) -> None:
        """No thread can go on; raises KernelFault where some wait."""
        kernel = self._machine.kernel
        for barrier in self._barriers.values():
            for threads, place in barrier.waiting:
                instruction = kernel.code[place]
                block = int(self._machine.grid_block[threads[0]])
                raise KernelFault(
                    "barrier",
                    f"{len(threads)} threads of block {block} wait for ever:"
                    f" {barrier.pending} arrivals and {barrier.missing} bytes are missing",
                    kernel.name,
                    Location(kernel.program, instruction.line),
                    instruction.text,
                )

    def lines(self, offset: int) -> list[int]:
        """The instructions of copies to the byte at `offset` of all shared memory."""
        copies = (copy for barrier in self._barriers.values() for copy in barrier.copies)
        return sorted({copy.place for copy in copies if (copy.offsets == offset).any()})

    def _at(self, addresses: Values, threads: list[int] | None = None) -> list[tuple[int, _Barrier]]:
        """Threads, if not said otherwise the active ones, with their barriers."""
        found = []
        everyone = self._machine.active_threads.tolist() if threads is None else threads
        for which, (thread, address) in enumerate(zip(everyone, addresses.tolist())):
            barrier = self._barriers.get((int(self._machine.block[thread]), address))
            if barrier is None:
                raise AccessFault("barrier", f"there is no barrier at byte {address} of shared memory", which)
            found.append((thread, barrier))
        return found

    def _go_on(self, barrier: _Barrier) -> None:
        """Let threads go on that wait where a phase has ended."""
        if barrier.waiting:
            self._come(barrier)
        elif not barrier.pending and not barrier.missing:
            self._complete(barrier)

    def _come(self, barrier: _Barrier) -> None:
        """All copies come."""
        machine = self._machine
        for copy in barrier.copies:
            if machine.shared.shadowed:
                machine.shared.shadow[copy.offsets] = SET
            self._write(copy)
            machine.shared.data[copy.offsets] = copy.data
            barrier.missing -= copy.data.size
            machine.races.publish(np.array([copy.thread]), barrier.arriving)
        barrier.copies.clear()
        if not barrier.pending and not barrier.missing:
            self._complete(barrier)

    def _complete(self, barrier: _Barrier) -> None:
        barrier.known, barrier.arriving = barrier.arriving, np.zeros_like(barrier.arriving)
        barrier.phase += 1
        barrier.pending = barrier.count
        for threads, place in barrier.waiting:
            self._machine.races.learn(threads, barrier.known)
            self._machine.release(threads, place + 1)
        barrier.waiting.clear()

    def _write(self, copy: _Copy) -> None:
        """Tell the check of races what a copy writes."""
        machine = self._machine
        kept = machine.active, machine.place
        machine.active, machine.place = np.array([copy.thread]), copy.place
        machine.races.writes(copy.offsets[:, 0], copy.data.shape[1])
        machine.active, machine.place = kept
