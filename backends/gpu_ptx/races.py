"""Accesses of shared memory that no synchronisation orders: a happens-before check with a clock for each
warp.

Every warp counts its synchronisations and knows of each other warp up to which count all that it did is
done. A barrier makes its participants know what any of them knew. For each granule of memory the last write
is recorded, and the last reads by two different warps: those suffice where barriers are of the whole block,
as then any read since the last barrier is as unordered as the latest. Threads of one warp are ordered by what
they execute together with `.sync`. Atomic operations race with nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.backends.gpu_ptx.model import Kernel
from hlotool.backends.gpu_ptx.types import Values

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

#: The clock of an asynchronous read that nothing waited for.
UNFINISHED = 1 << 30
#: In place of a lane: several lanes of the warp.
SEVERAL = 32


class _Record:
    """Of each granule, who accessed it last (64 × warp + lane), at which clock of that warp (0: never), by
    which instruction.
    """

    def __init__(self, size: int) -> None:
        self.who = np.zeros(size, np.int32)
        self.clock = np.zeros(size, np.int32)
        self.place = np.zeros(size, np.int32)

    def set(self, where: Values, who: Values, clock: Values, place: int) -> None:
        """Record accesses; of several to one granule the last."""
        self.who[where] = who
        self.clock[where] = clock
        self.place[where] = place


class Races:
    """Happens-before among the warps of each block of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        #: What is executed now is atomic.
        self.suspended = False
        self.enabled = machine.checks.races and machine.shared_bytes > 0 and machine.threads_per_block > 1
        warps = machine.warps_per_block
        if not self.enabled:
            return
        self._shift = _granule(machine.kernel)
        size = machine.shared.data.size >> self._shift
        self._writes, self._reads, self._other_reads = _Record(size), _Record(size), _Record(size)
        self._known = np.zeros((machine.blocks, warps, warps), np.int32)
        self._own = np.arange(warps)
        self._known[:, self._own, self._own] = 1
        #: What each warp knew when it last ordered the accesses of copies and products behind the others.
        self._fenced = np.zeros_like(self._known)
        self._by_copies = np.array([one.opcode == "cp" and one.has("bulk") for one in machine.kernel.code])
        self._published: dict[int, NDArray[np.int32]] = {}
        self._waiting: dict[int, NDArray[np.bool_]] = {}
        self._warp = machine.thread // 32
        self._who = (self._warp * 64 + machine.lane).astype(np.int32)

    def arrived(self, number: int, threads: NDArray[np.intp], waits: bool) -> None:
        """Threads arrive at barrier `number`: what they know is known to those that it lets go on."""
        if not self.enabled:
            return
        blocks, warps = self._warps_of(threads)
        published = self._published.setdefault(number, np.zeros_like(self._known[:, 0]))
        np.maximum.at(published, blocks, self._known[blocks, warps])
        self._known[blocks, warps, warps] += 1
        if waits:
            self._waiting.setdefault(number, np.zeros(self._known.shape[:2], np.bool_))[blocks, warps] = True

    def joined(self, blocks: NDArray[np.intp], number: int | None) -> None:
        """Barrier `number` is complete in `blocks`; None: one that all threads reached together."""
        if not self.enabled:
            return
        if number is None:
            self._known[blocks] = self._known[blocks].max(axis=1, keepdims=True)
            self._known[:, self._own, self._own] += 1
            return
        published, waiting = self._published[number], self._waiting.get(number)
        if waiting is not None:
            met = np.zeros_like(waiting)
            met[blocks] = waiting[blocks]
            at, warps = np.nonzero(met)
            self._known[at, warps] = np.maximum(self._known[at, warps], published[at])
            waiting[blocks] = False
        published[blocks] = 0

    def publish(self, threads: NDArray[np.intp], into: NDArray[np.int32]) -> None:
        """What the warps of `threads` know, into rows of `into`, one for each of them."""
        if self.enabled:
            blocks, warps = self._machine.block[threads], self._warp[threads]
            np.maximum(into, self._known[blocks, warps], out=into)
            at, which = self._warps_of(threads)
            self._known[at, which, which] += 1

    def learn(self, threads: NDArray[np.intp], known: NDArray[np.int32]) -> None:
        """The warps of `threads` know what rows of `known` say, too."""
        if self.enabled:
            blocks, warps = self._machine.block[threads], self._warp[threads]
            np.maximum.at(self._known, (blocks, warps), known)

    def synchronised(self) -> None:
        """The active threads of each warp execute together what synchronises them."""
        if self.enabled:
            blocks, warps = self._warps_of(self._machine.active_threads)
            self._known[blocks, warps, warps] += 1

    def fenced(self) -> None:
        """`fence.proxy.async`: what the active warps know is done before asynchronous accesses behind it."""
        if self.enabled:
            blocks, warps = self._warps_of(self._machine.active_threads)
            self._fenced[blocks, warps] = self._known[blocks, warps]
            self._known[blocks, warps, warps] += 1

    def suspend(self) -> bool:
        """Accesses are atomic until `resume`."""
        kept, self.enabled, self.suspended = self.enabled, False, True
        return kept

    def resume(self, kept: bool) -> None:
        """The end of what is atomic."""
        self.enabled, self.suspended = kept, False

    def _warps_of(self, threads: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Blocks and warps in them of these threads, each once."""
        machine = self._machine
        found = np.flatnonzero(
            np.bincount(machine.warp[threads], minlength=machine.blocks * machine.warps_per_block)
        )
        return found // machine.warps_per_block, found % machine.warps_per_block

    def reads(self, offsets: Values, width: int) -> None:
        """The active threads read `width` bytes each, at `offsets` of all shared memory.

        Raises:
            AccessFault: a write is not ordered before.
        """
        if not self.enabled:
            return
        machine = self._machine
        block, warp, who = (machine.active_of(each) for each in (machine.block, self._warp, self._who))
        clock = self._known[block, warp, warp]
        for where in self._granules(offsets, width):
            self._check(self._writes, where, block, warp, who, clock, "reads", "wrote")
            self._record_read(where, warp, who, clock)

    def _record_read(self, where: Values, warp: Values, who: Values, clock: Values) -> None:
        place = self._machine.place
        latest, other = self._reads, self._other_reads
        moved = (latest.who[where] >> 6 != warp) & (latest.clock[where] > 0)
        if moved.any():
            at = where[moved]
            other.set(at, latest.who[at], latest.clock[at], 0)
            other.place[at] = latest.place[at]
        several = (latest.clock[where] == clock) & (latest.who[where] != who) & ~moved
        latest.set(where, np.where(several, warp * 64 + SEVERAL, who), clock, place)
        # Several threads read it at once: their warps into both records, lanes together.
        found = latest.who[where]
        shared = found != who
        if shared.any():
            elsewhere = shared & (found >> 6 != warp)
            other.set(where[elsewhere], warp[elsewhere] * 64 + SEVERAL, clock[elsewhere], place)
            beside = shared & (found >> 6 == warp)
            latest.who[where[beside]] = warp[beside] * 64 + SEVERAL

    def writes(self, offsets: Values, width: int, values: Values | None = None) -> None:
        """The active threads write.

        Args:
            values: what each of them writes. Several threads may write what is there already: compilers let
                all threads that hold a value write it. None: they may not.

        Raises:
            AccessFault: another access is not ordered before.
        """
        if not self.enabled:
            return
        machine = self._machine
        block, warp, who = (machine.active_of(each) for each in (machine.block, self._warp, self._who))
        clock = self._known[block, warp, warp]
        same = None
        if values is not None:
            bits = 8 * width
            same = machine.shared.words[bits][offsets >> (bits.bit_length() - 4)] == values
        for where in self._granules(offsets, width):
            self._check(self._writes, where, block, warp, who, clock, "writes", "wrote", same)
            self._check(self._reads, where, block, warp, who, clock, "writes", "read")
            self._check(self._other_reads, where, block, warp, who, clock, "writes", "read")
            self._writes.set(where, who, clock, machine.place)
            lost = self._writes.who[where] != who
            if lost.any():
                self._collide(where, lost, values)

    def _collide(self, where: Values, lost: Values, values: Values | None) -> None:
        """Several threads write one granule in one instruction: they have to write the same."""
        if values is not None and not values.ndim:
            return
        if values is not None:
            order = np.argsort(where, kind="stable")
            same_place = where[order][1:] == where[order][:-1]
            differs = same_place & (values[order][1:] != values[order][:-1])
            if not differs.any():
                return
            lost = np.zeros_like(lost)
            lost[order[1:][differs]] = True
        raise AccessFault(
            "race", "another thread writes another value there in the same instruction", int(np.argmax(lost))
        )

    def _granules(self, offsets: Values, width: int) -> list[Values]:
        """The granules of `width` bytes at each offset, one after the other."""
        first = offsets >> self._shift
        return [first + step for step in range(max(1, width >> self._shift))]

    def _check(
        self,
        record: _Record,
        where: Values,
        block: Values,
        warp: Values,
        who: Values,
        clock: Values,
        does: str,
        did: str,
        harmless: Values | None = None,
    ) -> None:
        """Refuse accesses that are not ordered behind what is recorded, but those that are `harmless`."""
        then = record.clock[where]
        if not then.any():
            return
        before = record.who[where]
        their_warp = before >> 6
        known = self._known[block, warp, their_warp]
        inside = their_warp == warp
        wrong = np.where(inside, (then >= known) & (before != who), then > known) & (then > 0)
        if harmless is not None:
            wrong &= ~harmless
        if not wrong.any():
            return
        which = int(np.argmax(wrong))
        other = self._machine.kernel.code[int(record.place[where[which]])]
        code = int(before[which])
        lane = "several threads" if code & 63 == SEVERAL else f"thread {code // 64 * 32 + code % 64}"
        asynchronous = " asynchronously, not waited for," if then[which] >= UNFINISHED else ""
        raise AccessFault(
            "race",
            f"{does} shared memory that {lane} of the block {did}{asynchronous} in line {other.line}"
            f" ({other.text}): nothing orders the two",
            which,
        )

    def begin_reading(self, thread: int, offsets: Values, width: int) -> Values:
        """An asynchronous operation, begun by `thread`, reads `width` bytes at each offset; the granules."""
        if not self.enabled:
            return np.zeros(0, np.int64)
        where = np.concatenate(self._granules(offsets, width))
        machine = self._machine
        block, warp = machine.block[thread], self._warp[thread]
        everywhere = np.full(where.shape, warp)
        who = everywhere * 64 + SEVERAL
        clock = np.full(where.shape, self._known[block, warp, warp])
        self._check(
            self._writes, where, np.full(where.shape, block), everywhere, who, clock, "reads", "wrote"
        )
        self._check_fences(where, int(block))
        self._other_reads.set(where, who, UNFINISHED, machine.place)
        return where

    def _check_fences(self, where: Values, block: int) -> None:
        """Refuse asynchronous reads of what threads wrote themselves, and nothing fenced since."""
        then, place = self._writes.clock[where], self._writes.place[where]
        fenced = self._fenced[block].max(axis=0)[self._writes.who[where] >> 6]
        wrong = (then > fenced) & ~self._by_copies[place]
        if wrong.any():
            other = self._machine.kernel.code[int(place[np.argmax(wrong)])]
            raise AccessFault(
                "race",
                f"reads asynchronously what line {other.line} ({other.text}) wrote:"
                " no fence.proxy.async is between",
            )

    def end_reading(self, thread: int, where: Values) -> None:
        """An asynchronous read is waited for by `thread`."""
        if self.enabled:
            block, warp = self._machine.block[thread], self._warp[thread]
            self._other_reads.clock[where] = self._known[block, warp, warp]


def _granule(kernel: Kernel) -> int:
    """Logarithm of the bytes of the smallest access of shared memory."""
    smallest = 2
    for instruction in kernel.code:
        if instruction.opcode not in ("ld", "st", "atom", "red", "ldmatrix", "stmatrix"):
            continue
        if instruction.has("global") or instruction.has("param") or instruction.has("local"):
            continue
        kind = instruction.modifiers[-1]
        if kind[1:] == "8":
            return 0
        if kind.endswith("16") and (
            instruction.opcode in ("ld", "st", "atom", "red") or instruction.has("trans")
        ):
            smallest = 1
    return smallest
