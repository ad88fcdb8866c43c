"""Threads of many blocks executed together: groups of threads at the same instruction, barriers, registers.

The group at the least instruction runs until it meets another one: threads that parted at a branch meet again
where the code does.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx import operations
from hlotool.backends.gpu_ptx.arena import GUARD, RAW, UNSIGNED, AccessFault, Arena
from hlotool.backends.gpu_ptx.barriers import Barriers
from hlotool.backends.gpu_ptx.block_races import BlockRaces
from hlotool.backends.gpu_ptx.control import Control, control_of
from hlotool.backends.gpu_ptx.copies import Copies
from hlotool.backends.gpu_ptx.lowering import Step, lower
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.model import Instruction, Kernel, Not, Register
from hlotool.backends.gpu_ptx.operations.warpgroups import GROUP_THREADS, Readings
from hlotool.backends.gpu_ptx.races import Races
from hlotool.backends.gpu_ptx.special_registers import special_register
from hlotool.backends.gpu_ptx.transactions import Transactions
from hlotool.backends.gpu_ptx.types import Values
from hlotool.errors import BackendTimeout, KernelFault, Location

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.launch import Checks, LaunchStatistics

operations.load()
#: How often warps that a barrier lets go on are not in step. All else is decided by the check of races.
SPLITS = 0.25
#: Behind the last instruction.
NEVER = 1 << 60
#: Bytes without memory behind the shared memory of a block and the local memory of a thread.
GUARD_BYTES = 64


class Compiled:
    """A kernel as steps; an instruction that no rule knows is an error only when it is reached."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.warpgroups = any(one.opcode == "wgmma" for one in kernel.code)
        self.steps: list[Step | Control | None] = [None] * len(kernel.code)
        self.predicates: list[tuple[int, bool] | None] = [_predicate(one) for one in kernel.code]

    def at(self, place: int) -> Step | Control:
        """What executes the instruction at `place`."""
        found = self.steps[place]
        if found is None:
            instruction = self.kernel.code[place]
            found = control_of(self.kernel, instruction) or lower(self.kernel, instruction)
            self.steps[place] = found
        return found


def _predicate(instruction: Instruction) -> tuple[int, bool] | None:
    """The register that an instruction depends on, and whether it is negated."""
    predicate = instruction.predicate
    if isinstance(predicate, Not):
        assert isinstance(predicate.operand, Register)
        return predicate.operand.index, True
    return (predicate.index, False) if predicate is not None else None


class Machine:
    """Blocks `blocks` of a launch, executed together.

    Attributes:
        count: threads of all these blocks.
        active: indices of the threads that execute now, ascending; None: all of them.
        registers: for each register its value in every thread, one for all, or None as long as it has none.
        block, thread, lane, warp: of each thread its block (from 0 in this machine), index in its block,
            lane, and warp
            (from 0 in this machine).
    """

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        extents: tuple[int, int, int],
        blocks: range,
        parameters: bytes,
        memory: Memory,
        dynamic_shared: int,
        seed: int,
        checks: Checks,
        statistics: LaunchStatistics,
        limit: int,
        block_races: BlockRaces | None,
    ) -> None:
        self.block_races = block_races
        self.kernel, self.memory, self.checks, self.statistics = kernel, memory, checks, statistics
        self.grid, self.extents, self.seed, self.limit = grid, extents, seed, limit
        self.random = np.random.default_rng((seed, blocks.start)) if seed else None
        self.parameters = np.frombuffer(parameters, np.uint8)
        self.threads_per_block = extents[0] * extents[1] * extents[2]
        self.warps_per_block = -(-self.threads_per_block // 32)
        self.blocks = len(blocks)
        self.count = self.blocks * self.threads_per_block
        self.thread = np.tile(np.arange(self.threads_per_block), self.blocks)
        self.block = np.repeat(np.arange(self.blocks), self.threads_per_block)
        self.grid_block = self.block + blocks.start
        self.lane = self.thread % 32
        self.warp = self.block * self.warps_per_block + self.thread // 32
        self.registers: list[Any] = [None] * len(kernel.register_bits)
        self.carry: Values = np.zeros(self.count, np.bool_)
        self.active: NDArray[np.intp] | None = None
        self.shared_bytes = kernel.shared_bytes + dynamic_shared
        self.shared_stride = _with_guard(self.shared_bytes)
        self.local_stride = _with_guard(kernel.local_bytes)
        self.dynamic_shared = dynamic_shared
        self.shared = self._arena(self.shared_stride, self.shared_bytes, self.blocks)
        self.local = self._arena(self.local_stride, kernel.local_bytes, self.count)
        #: The instruction that is executed.
        self.place = 0
        self.races = Races(self)
        self.barriers = Barriers(self)
        self.copies = Copies(self)
        self.products = Readings(GROUP_THREADS)
        self.tiles = Readings(1)
        self.transactions = Transactions(self)
        self._specials: dict[str, Values] = {}
        self.compiled = cast(Compiled, kernel.compiled.setdefault("steps", Compiled(kernel)))

    def _arena(self, stride: int, size: int, count: int) -> Arena:
        """Memory of `size` bytes for each block, or each thread."""
        arena = Arena(stride * count if size else 0, GUARD, shadowed=self.checks.uninitialised)
        if size and arena.shadowed:
            arena.shadow.reshape(count, stride)[:, :size] = RAW
        return arena

    # Registers

    def put(self, index: int, bits: Values) -> None:
        """The active threads' new value of a register: a scalar, or an array that is used nowhere else."""
        if self.active is None:
            self.registers[index] = bits
            return
        held = self.registers[index]
        if held is None or held.ndim == 0:
            held = np.full(self.count, self.undefined(index) if held is None else held)
            self.registers[index] = held
        held[self.active] = bits

    def set_carry(self, carry: Values) -> None:
        """The active threads' new carry."""
        if self.active is None:
            self.carry = np.array(np.broadcast_to(carry, self.count))
        else:
            self.carry[self.active] = carry

    def undefined(self, index: int) -> Values:
        """The value of a register that was never written: any."""
        bits = self.kernel.register_bits[index]
        value = (self.seed * 0x9E3779B97F4A7C15 + index * 0xD1342543DE82EF95) % (1 << 64) >> (64 - bits)
        found = np.bool_(value) if bits == 1 else UNSIGNED[bits](value)
        self.registers[index] = found
        return found

    def active_of(self, each: Values) -> Values:
        """The elements of the active threads."""
        return each if self.active is None or each.ndim == 0 else each[self.active]

    def spread(self, values: Values) -> Values:
        """An array with an element for each active thread."""
        return values if values.ndim else np.full(self.active_count, values)

    @property
    def active_count(self) -> int:
        """How many threads are active."""
        return self.count if self.active is None else len(self.active)

    @property
    def active_threads(self) -> NDArray[np.intp]:
        """The indices of the active threads."""
        return np.arange(self.count) if self.active is None else self.active

    def special(self, name: str) -> Values:
        """The value of a special register in every thread."""
        if name not in self._specials:
            self._specials[name] = special_register(self, name)
        return self._specials[name]

    # Control

    def run(self) -> None:
        """Execute all threads to their ends.

        Raises:
            Unsupported, KernelFault, BackendTimeout: as `launch`.
        """
        #: Groups that can run: (round, instruction, number) and their threads, None for all.
        self._ready: list[tuple[int, int, int, NDArray[np.intp] | None]] = []
        self._number = 0
        self._order = self._round = 0
        self.release(None, 0)
        with np.errstate(all="ignore"):
            while self._ready:
                self._next_group()
                self._run_group()
        self.barriers.finish()
        self.transactions.finish()
        self.products.finish(self, "a product of a warpgroup")
        self.tiles.finish(self, "a tile that is copied from shared memory")

    def release(self, threads: NDArray[np.intp] | None, place: int) -> None:
        """These threads go on at `place`; with a seed, now and then in two parts one after the other."""
        if self.random is None or self.random.random() > SPLITS:
            self._push(threads, place, self._round)
            return
        everyone = np.arange(self.count) if threads is None else threads
        # Warps of a warpgroup multiply together, so they stay together.
        units = (
            self.warp
            if not self.compiled.warpgroups
            else self.block * self.warps_per_block + self.thread // GROUP_THREADS
        )
        parts = self.random.integers(0, 2, self.blocks * self.warps_per_block)[units[everyone]]
        for part in np.unique(parts):
            chosen = everyone[parts == part]
            self._round += 1
            self._push(None if len(chosen) == self.count else chosen, place, self._round)

    def push(self, threads: NDArray[np.intp], place: int) -> None:
        """These threads, of the active ones, go on at `place`."""
        self._push(None if len(threads) == self.count else threads, place, self._order)

    def _push(self, threads: NDArray[np.intp] | None, place: int, order: int) -> None:
        self._number += 1
        heapq.heappush(self._ready, (order, place, self._number, threads))

    def _next_group(self) -> None:
        """Take the first group, and all others that are where it is."""
        self._order, self.place, _, threads = heapq.heappop(self._ready)
        others = []
        while self._ready and self._ready[0][:2] == (self._order, self.place):
            others.append(heapq.heappop(self._ready)[3])
        if others:
            threads = np.sort(np.concatenate([cast(NDArray[np.intp], one) for one in (threads, *others)]))
            if len(threads) == self.count:
                threads = None
        self.active = threads

    def _run_group(self) -> None:
        """Run the active threads until they part, wait, end, or meet others."""
        steps, predicates, compiled = self.compiled.steps, self.compiled.predicates, self.compiled
        statistics = self.statistics
        count = self.active_count
        place = self.place
        meeting = self._ready[0][1] if self._ready and self._ready[0][0] == self._order else NEVER
        try:
            while True:
                step = steps[place]
                if step is None:
                    step = compiled.at(place)
                statistics.thread_instructions += count
                statistics.steps += 1
                predicate = predicates[place]
                self.place = place
                if isinstance(step, Control):
                    place = step.go(self, place, self._holds(predicate))
                    if place < 0:
                        break
                    if statistics.thread_instructions > self.limit:
                        raise BackendTimeout(self.kernel.name, f"more than {self.limit:,} instructions")
                else:
                    if predicate is None:
                        step(self)
                    else:
                        self._guarded(step, predicate)
                    place += 1
                if place >= meeting:
                    self._push(self.active, place, self._order)
                    break
        except AccessFault as fault:
            raise self._fault(fault, place) from None

    def _holds(self, predicate: tuple[int, bool] | None) -> Values | None:
        """Where the predicate holds among the active threads; None: everywhere, as there is none."""
        if predicate is None:
            return None
        index, negated = predicate
        held = self.registers[index]
        value = self.active_of(self.undefined(index) if held is None else held)
        return ~value if negated else value

    def _guarded(self, step: Step, predicate: tuple[int, bool]) -> None:
        """Execute a step for the threads whose predicate holds."""
        holds = self._holds(predicate)
        assert holds is not None
        if holds.all():
            step(self)
        elif holds.any():
            everyone = self.active
            self.active = np.flatnonzero(holds) if everyone is None else everyone[holds]
            try:
                step(self)
            finally:
                self.active = everyone

    def part(self, holds: Values, place: int, otherwise: int) -> int:
        """Go on at `place` where `holds`, else at `otherwise`; the instruction to go on at, or -1."""
        if holds.all():
            return place
        if not holds.any():
            return otherwise
        threads = self.active_threads
        self._push(threads[holds], place, self._order)
        self._push(threads[~holds], otherwise, self._order)
        return -1

    def _fault(self, fault: AccessFault, place: int) -> KernelFault:
        """The error that names thread and instruction."""
        instruction = self.kernel.code[place]
        message = str(fault)
        if fault.kind == "in flight":
            places = self.copies.lines(fault.offset) + self.transactions.lines(fault.offset)
            begun = [self.kernel.code[one] for one in places]
            message += "".join(f"; line {one.line}: {one.text}" for one in begun)
        threads = self.active_threads
        who = int(threads[min(fault.which, len(threads) - 1)])
        block = np.unravel_index(int(self.grid_block[who]), self.grid[::-1])[::-1]
        thread = np.unravel_index(int(self.thread[who]), self.extents[::-1])[::-1]
        return KernelFault(
            fault.kind,
            f"thread {tuple(map(int, thread))} of block {tuple(map(int, block))}: {message}",
            self.kernel.name,
            Location(self.kernel.program, instruction.line),
            instruction.text,
        )

    # Memory

    def locate(self, space: str, addresses: Values, width: int) -> tuple[Arena, Values]:
        """The arena of shared or local memory, and offsets in it.

        Raises:
            AccessFault: out of bounds.
        """
        if space == "shared":
            arena, size, base = self.shared, self.shared_bytes, self.block * self.shared_stride
        else:
            arena, size = self.local, self.kernel.local_bytes
            base = np.arange(self.count) * self.local_stride
        outside = (addresses < 0) | (addresses + width > size)
        if outside.any():
            which = int(np.argmax(outside))
            where = int(self.spread(addresses)[which])
            raise AccessFault("bounds", f"accesses byte {where} of {size} bytes of {space} memory", which)
        return arena, addresses + self.active_of(base)


def _with_guard(size: int) -> int:
    """`size` with guard bytes, a multiple of 16."""
    return -(-(size + GUARD_BYTES) // 16) * 16
