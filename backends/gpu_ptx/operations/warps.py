"""What the threads of a warp tell each other (PTX ISA, "shfl", "vote", "match", "redux", "activemask",
"elect").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.backends.gpu_ptx.lowering import Site, Step, executes
from hlotool.backends.gpu_ptx.model import Pair, Sink
from hlotool.backends.gpu_ptx.types import Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

U32 = type_of("u32")
PREDICATE = type_of("pred")


def warp_parts(machine: Machine) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the threads of each warp begin among the active ones, and for each active thread the number of
    its part.
    """
    warps = machine.active_of(machine.warp)
    changes = np.concatenate([[True], warps[1:] != warps[:-1]])
    return np.flatnonzero(changes), np.cumsum(changes) - 1


@executes("shfl")
def shuffle(site: Site) -> Step:
    """The value of another lane; a lane out of range reads its own."""
    words = site.accept("sync", "up", "down", "bfly", "idx")
    mode = next(word for word in words if word != "sync")
    destination = site.operands[0]
    value_to, predicate_to = (
        (destination.first, destination.second) if isinstance(destination, Pair) else (destination, Sink())
    )
    write, write_predicate = site.writer(value_to, U32), site.writer(predicate_to, PREDICATE)
    reads = [site.read(place, U32) for place in (1, 2, 3)]
    mask = site.read(4, U32) if "sync" in words else None

    def step(machine: Machine) -> None:
        if mask is not None:
            _check_members(machine, mask(machine))
        value, lanes, clamp = (machine.spread(read(machine)) for read in reads)
        lane, threads = machine.active_of(machine.lane), machine.active_threads
        segment = (clamp >> np.uint32(8)).astype(np.int64) & 31
        bound = (lane & segment) | (clamp.astype(np.int64) & 31 & ~segment)
        amount = lanes.astype(np.int64) & 31
        source = {
            "up": lane - amount,
            "down": lane + amount,
            "bfly": lane ^ amount,
            "idx": (lane & segment) | (amount & ~segment),
        }[mode]
        inside = source >= bound if mode == "up" else source <= bound
        source = np.where(inside, source, lane)
        at = threads - lane + source
        present = np.zeros(machine.count + 32, np.bool_)
        present[threads] = True
        absent = ~present[at] | (machine.thread[threads] - lane + source >= machine.threads_per_block)
        held = np.zeros(machine.count + 32, np.uint32)
        held[threads] = value
        found = held[at]
        if absent.any():
            _absent(machine, absent)
            found[absent] = np.random.default_rng((machine.seed, site.instruction.line)).integers(
                1 << 32, dtype=np.uint32
            )
        write(machine, found)
        write_predicate(machine, inside)
        machine.races.synchronised()

    return step


def _absent(machine: Machine, absent: NDArray[np.bool_]) -> None:
    """Values of lanes that take no part are undefined."""
    if machine.checks.lanes:
        raise AccessFault("lanes", "takes a value from a lane that takes no part", int(np.argmax(absent)))
    machine.statistics.absent_lane_reads += int(absent.sum())


def _check_members(machine: Machine, mask: Values) -> None:
    """Refuse masks that do not name the threads that take part.

    Raises:
        AccessFault: a thread is not named in its own mask, or one that is named, and lives, is elsewhere.
    """
    lane = machine.active_of(machine.lane).astype(np.uint32)
    mask = machine.spread(mask)
    named = ((mask >> lane) & np.uint32(1)) != 0
    if not named.all():
        raise AccessFault("lanes", "is not named in its own mask", int(np.argmin(named)))
    if machine.active is None:
        return
    starts, part = warp_parts(machine)
    here = np.bitwise_or.reduceat(np.uint32(1) << lane, starts)
    warps = machine.warp[machine.active[starts]]
    missing = mask & machine.barriers.living_lanes(warps)[part] & ~here[part]
    if missing.any():
        raise AccessFault(
            "lanes", "waits for a lane of its mask that is elsewhere", int(np.argmax(missing != 0))
        )


@executes("vote")
def vote(site: Site) -> Step:
    """Whether a predicate holds in all lanes, in any, equally in all; or in which ones."""
    words = site.accept("sync", "all", "any", "uni", "ballot")
    mode = next(word for word in words if word != "sync")
    write = site.write(0, U32 if mode == "ballot" else PREDICATE)
    read = site.read(1, PREDICATE)
    mask = site.read(2, U32) if "sync" in words else None

    def step(machine: Machine) -> None:
        if mask is not None:
            _check_members(machine, mask(machine))
        holds = machine.spread(read(machine))
        starts, part = warp_parts(machine)
        if mode == "ballot":
            bits = holds.astype(np.uint32) << machine.active_of(machine.lane).astype(np.uint32)
            found: Any = np.bitwise_or.reduceat(bits, starts)
        else:
            every, some = np.logical_and.reduceat(holds, starts), np.logical_or.reduceat(holds, starts)
            found = {"all": every, "any": some, "uni": every | ~some}[mode]
        write(machine, found[part])
        machine.races.synchronised()

    return step


@executes("activemask")
def active_mask(site: Site) -> Step:
    """The lanes that execute this together."""
    write = site.write(0, U32)

    def step(machine: Machine) -> None:
        starts, part = warp_parts(machine)
        bits = np.uint32(1) << machine.active_of(machine.lane).astype(np.uint32)
        write(machine, np.bitwise_or.reduceat(bits, starts)[part])

    return step


@executes("elect")
def elect(site: Site) -> Step:
    """One lane of the mask: the lowest."""
    site.accept("sync")
    destination = site.operands[0]
    if not isinstance(destination, Pair):
        raise site.unsupported("its destinations")
    write, write_predicate = site.writer(destination.first, U32), site.writer(destination.second, PREDICATE)
    mask = site.read(1, U32)

    def step(machine: Machine) -> None:
        _check_members(machine, mask(machine))
        starts, part = warp_parts(machine)
        lane = machine.active_of(machine.lane)
        leader = lane[starts][part]
        write(machine, leader.astype(np.uint32))
        write_predicate(machine, lane == leader)

    return step


@executes("match")
def match(site: Site) -> Step:
    """Which lanes hold the same value; `all`: the mask if all do, else zero."""
    words = site.accept("sync", "any", "all")
    kind = type_of(f"b{site.type().bits}")
    destination = site.operands[0]
    first, second = (
        (destination.first, destination.second) if isinstance(destination, Pair) else (destination, Sink())
    )
    write, write_predicate = site.writer(first, U32), site.writer(second, PREDICATE)
    read, mask = site.read(1, kind), site.read(2, U32)

    def step(machine: Machine) -> None:
        members = mask(machine)
        _check_members(machine, members)
        values = machine.spread(read(machine)).astype(np.uint64)
        bits = np.uint32(1) << machine.active_of(machine.lane).astype(np.uint32)
        starts, part = warp_parts(machine)
        if "all" in words:
            same = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
            write(machine, np.where(same, np.bitwise_or.reduceat(bits, starts), np.uint32(0))[part])
            write_predicate(machine, same[part])
            return
        order = np.lexsort((values, part))
        changes = np.concatenate([[True], (np.diff(values[order]) != 0) | (np.diff(part[order]) != 0)])
        groups = np.bitwise_or.reduceat(bits[order], np.flatnonzero(changes))[np.cumsum(changes) - 1]
        found = np.empty_like(bits)
        found[order] = groups
        write(machine, found)
        machine.races.synchronised()

    return step


@executes("redux")
def redux(site: Site) -> Step:
    """One value of all lanes of the mask: their sum, least, largest, or logic of all bits."""
    kind = site.type()
    others = ("abs", "NaN") if kind.kind == "f" else ("add", "and", "or", "xor")
    words = site.accept("sync", "min", "max", *others)
    operation = next(word for word in words if word not in ("sync", "abs", "NaN"))
    read, mask, write = site.read(1, kind), site.read(2, U32), site.write(0, kind)
    reduce: Any = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[operation]

    def of_floats(values: Values, starts: NDArray[np.intp]) -> Values:
        """NaN counts only with `.NaN`; -0 is smaller than +0."""
        values = np.abs(values) if "abs" in words else values
        is_least = operation == "min"
        found = (np.fmin if is_least else np.fmax).reduceat(values, starts)
        wins = np.logical_or.reduceat((values == 0) & (np.signbit(values) == is_least), starts)
        found = np.where((found == 0) & wins, values.dtype.type(-0.0 if is_least else 0.0), found)
        is_nan = np.logical_or.reduceat(np.isnan(values), starts) & ("NaN" in words)
        return np.where(is_nan, values.dtype.type(np.nan), found)

    def step(machine: Machine) -> None:
        _check_members(machine, mask(machine))
        starts, part = warp_parts(machine)
        values = machine.spread(read(machine))
        if kind.kind == "f":
            found = of_floats(values, starts)
        else:
            # NumPy adds up narrow integers in 64 bits unless it is told not to.
            found = reduce.reduceat(values, starts, dtype=values.dtype)
        write(machine, found[part])
        machine.races.synchronised()

    return step


@executes("bar", "barrier")
def warp_barrier(site: Site) -> Step:
    """`bar.warp.sync`: the lanes of a warp are at one instruction here anyway."""
    site.accept("warp", "sync")
    return lambda machine: machine.races.synchronised()
