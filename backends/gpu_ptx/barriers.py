"""Barriers of blocks: who has arrived, who waits, and who goes on (PTX ISA, "bar", "barrier").

A barrier without a number of threads is complete when all threads of the block that have not ended are there;
with one, when so many have arrived, where a warp that is not full counts as a full one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.errors import KernelFault, Location

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.control import Barrier
    from hlotool.backends.gpu_ptx.machine import Machine


@dataclass
class _Waiting:
    """Threads that arrived at a barrier; `predicates` of a reduction."""

    barrier: Barrier
    threads: NDArray[np.intp]
    place: int
    predicates: NDArray[np.bool_] | None


@dataclass
class _State:
    """One of the sixteen barriers: of each block how many arrived, and how many are awaited (0: all)."""

    arrived: NDArray[np.float64]
    present: NDArray[np.int64]
    awaited: NDArray[np.int64]
    waiting: list[_Waiting] = field(default_factory=list)


class Barriers:
    """The barriers of all blocks of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._live = np.full(machine.blocks, machine.threads_per_block, np.int64)
        last = machine.threads_per_block % 32
        self._weight = np.ones(machine.count)
        if last:
            self._weight[machine.thread >= machine.threads_per_block - last] = 32 / last
        self._states: dict[int, _State] = {}
        #: Of each warp the lanes that have not ended.
        lanes = np.uint32(1) << machine.lane.astype(np.uint32)
        self._lanes = np.zeros(machine.blocks * machine.warps_per_block, np.uint32)
        np.bitwise_or.at(self._lanes, machine.warp, lanes)

    def arrive(self, barrier: Barrier, place: int) -> int:
        """The active threads arrive; where they go on (see `Control.go`)."""
        machine = self._machine
        numbers = barrier.number(machine)
        counts = barrier.threads(machine) if barrier.threads is not None else np.uint32(0)
        alone = machine.active is None and numbers.ndim == 0 and not self._states.get(int(numbers))
        if alone and barrier.waits and barrier.combine is None and barrier.threads is None:
            machine.races.joined(np.arange(machine.blocks), None)
            if machine.random is None:
                return place + 1
            machine.release(None, place + 1)
            return -1
        threads = machine.active_threads
        everyone = np.broadcast_to(numbers, threads.shape)
        counts = np.broadcast_to(counts, threads.shape)
        predicates = None
        if barrier.predicate is not None:
            predicates = np.broadcast_to(barrier.predicate(machine), threads.shape)
        for number in np.unique(everyone):
            if number > 15:
                raise AccessFault("barrier", f"there is no barrier {number}")
            here = everyone == number
            self._arrive(
                int(number),
                _Waiting(barrier, threads[here], place, None if predicates is None else predicates[here]),
                counts[here],
            )
        return -1

    def _arrive(self, number: int, waiting: _Waiting, counts: NDArray[Any]) -> None:
        machine = self._machine
        blocks = machine.block[waiting.threads]
        state = self._states.get(number)
        if state is None:
            zeros = np.zeros(machine.blocks, np.int64)
            state = self._states[number] = _State(np.zeros(machine.blocks), zeros, zeros.copy())
        begun = state.arrived[blocks] > 0
        other = begun & (state.awaited[blocks] != counts)
        if other.any():
            which = int(np.argmax(other))
            raise AccessFault(
                "barrier",
                f"waits at barrier {number} for {int(counts[which])} threads, others for"
                f" {state.awaited[blocks[which]]}"
                " (0: all)",
                which,
            )
        state.awaited[blocks] = counts
        state.arrived += np.bincount(blocks, self._weight[waiting.threads], machine.blocks)
        state.present += np.bincount(blocks, minlength=machine.blocks)
        state.waiting.append(waiting)
        machine.races.arrived(number, waiting.threads, waiting.barrier.waits)
        if not waiting.barrier.waits:
            machine.push(waiting.threads, waiting.place + 1)
        self._complete(number, state)

    def _complete(self, number: int, state: _State) -> None:
        """Let all threads go on that wait in blocks where the barrier is complete."""
        machine = self._machine
        everyone = (state.awaited == 0) & (state.present > 0) & (state.present >= self._live)
        counted = (state.awaited > 0) & (np.round(state.arrived) >= state.awaited)
        complete = everyone | counted
        if not complete.any():
            return
        machine.races.joined(np.flatnonzero(complete), number)
        state.arrived[complete] = 0
        state.present[complete] = 0
        state.awaited[complete] = 0
        groups, kept = [], []
        for one in state.waiting:
            free = complete[machine.block[one.threads]]
            if free.any():
                groups.append((one, free))
            if not free.all():
                predicates = None if one.predicates is None else one.predicates[~free]
                kept.append(_Waiting(one.barrier, one.threads[~free], one.place, predicates))
        state.waiting = kept
        if not kept and not state.arrived.any():
            del self._states[number]
        self._reduce(groups)
        places: dict[int, list[NDArray[np.intp]]] = {}
        for one, free in groups:
            if one.barrier.waits:
                places.setdefault(one.place + 1, []).append(one.threads[free])
        for place, parts in places.items():
            threads = np.sort(np.concatenate(parts))
            machine.release(None if len(threads) == machine.count else threads, place)

    def _reduce(self, groups: list[tuple[_Waiting, NDArray[np.bool_]]]) -> None:
        """Write the results of `bar.red`: of all predicates of the block."""
        machine = self._machine
        true = np.zeros(machine.blocks, np.int64)
        total = np.zeros(machine.blocks, np.int64)
        for one, free in groups:
            if one.predicates is not None:
                blocks = machine.block[one.threads[free]]
                true += np.bincount(blocks, one.predicates[free], machine.blocks).astype(np.int64)
                total += np.bincount(blocks, minlength=machine.blocks)
        kept = machine.active
        for one, free in groups:
            if one.barrier.write is None:
                continue
            machine.active = one.threads[free]
            blocks = machine.block[machine.active]
            found = {"popc": true.astype(np.uint32), "and": true == total, "or": true > 0}[
                str(one.barrier.combine)
            ]
            one.barrier.write(machine, found[blocks])
        machine.active = kept

    def exited(self, threads: NDArray[np.intp]) -> None:
        """These threads have ended: they are no longer waited for."""
        machine = self._machine
        lanes = np.uint32(1) << machine.lane[threads].astype(np.uint32)
        np.bitwise_and.at(self._lanes, machine.warp[threads], ~lanes)
        self._live -= np.bincount(machine.block[threads], minlength=machine.blocks)
        for number, state in list(self._states.items()):
            self._complete(number, state)

    def living_lanes(self, warps: NDArray[np.intp]) -> NDArray[np.uint32]:
        """The lanes of these warps that have not ended, as masks."""
        return self._lanes[warps]

    def finish(self) -> None:
        """No thread can go on.

        Raises:
            KernelFault: some have not ended.
        """
        for number, state in self._states.items():
            for one in state.waiting:
                if not one.barrier.waits:
                    continue
                instruction = self._machine.kernel.code[one.place]
                block = int(self._machine.grid_block[one.threads[0]])
                raise KernelFault(
                    "barrier",
                    f"{len(one.threads)} threads wait for ever at barrier {number},"
                    f" the first in block {block}",
                    self._machine.kernel.name,
                    Location(self._machine.kernel.program, instruction.line),
                    instruction.text,
                )
