"""`atom` and `red`: threads at one address one after the other (PTX ISA, "atom", "red").

The order is that of the threads, or drawn by the seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.lowering import Reader, Site, Step, executes
from hlotool.backends.gpu_ptx.model import Sink
from hlotool.backends.gpu_ptx.operations.floats import larger, smaller
from hlotool.backends.gpu_ptx.operations.moves import (
    CACHING,
    SPACES,
    checked_addresses,
    load_words,
    space_of,
    store_words,
)
from hlotool.backends.gpu_ptx.types import Type, Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
#: Operations that can be done for all threads by `ufunc.at`, which takes them one after the other.
_AT: dict[str, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum, **_LOGIC}
_VECTORS = ("v2", "v4", "v8")


def _updated(operation: str, old: Values, operands: list[Values]) -> Values:
    """What is stored where `old` was."""
    value = operands[0]
    if operation == "add":
        return old + value
    if operation in ("min", "max"):
        if old.dtype.kind == "f":
            return smaller(old, value) if operation == "min" else larger(old, value)
        return np.minimum(old, value) if operation == "min" else np.maximum(old, value)
    if operation in _LOGIC:
        return _LOGIC[operation](old, value)
    if operation == "cas":
        return np.where(old == value, operands[1], old)
    if operation == "inc":
        return np.where(old >= value, old.dtype.type(0), old + old.dtype.type(1))
    if operation == "dec":
        return np.where((old == 0) | (old > value), value, old - old.dtype.type(1))
    return np.broadcast_to(value, old.shape)


@executes("atom", "red")
def atomic(site: Site) -> Step:
    """Read, compute, write; `atom` gives the value that was there."""
    words = site.accept(*_OPERATIONS, *CACHING, *SPACES, *_VECTORS, "noftz", "async", "mbarrier")
    if "async" in words:
        raise site.unsupported("an asynchronous reduction")
    operation = next(word for word in words if word in _OPERATIONS)
    reduction = site.instruction.opcode == "red"
    kind = site.type()
    if operation in ("cas", "exch"):
        kind = type_of(f"b{kind.bits}")
    first = 0 if reduction else 1
    address, space = site.address(site.operands[first]), space_of(site)
    results = [Sink()] if reduction else list(site.elements(0))
    values = [site.elements(place) for place in range(first + 1, len(site.operands))]
    if "L2::cache_hint" in words:
        values.pop()
    lanes = [[site.reader(parts[lane], kind) for parts in values] for lane in range(len(values[0]))]
    bits = type_of(f"b{kind.bits}")
    writes = [site.writer(result, bits) for result in results]
    needed = not isinstance(results[0], Sink)
    width = kind.bits // 8 * len(lanes)

    def step(machine: Machine) -> None:
        addresses = machine.spread(checked_addresses(machine, address(machine), width))
        for lane, operands in enumerate(lanes):
            places = addresses + np.int64(lane * kind.bits // 8)
            old = _perform(machine, operation, kind, space, places, operands, needed)
            if old is not None:
                writes[lane](machine, old)

    return step


def _perform(
    machine: Machine,
    operation: str,
    kind: Type,
    space: str,
    addresses: Values,
    operands: list[Reader],
    needed: bool,
) -> Values | None:
    """One value for each thread; the bits that were there, if they are needed."""
    values = [
        np.broadcast_to(read(machine), (kind.lanes, len(addresses)) if kind.lanes > 1 else addresses.shape)
        for read in operands
    ]
    everyone = machine.active
    threads = machine.active_threads
    order = _order(machine, addresses)
    kept = machine.races.suspend()
    try:
        plain = kind.lanes == 1 and kind.element not in ("f16", "bf16") and operation in _AT
        if plain and not needed and not (kind.kind == "f" and operation != "add"):
            unique, leaders, inverse = np.unique(addresses[order], return_index=True, return_inverse=True)
            machine.active = threads[order][leaders]
            held = kind.decode(load_words(machine, space, unique, kind.bits)).copy()
            _AT[operation].at(held, inverse, values[0][order])
            store_words(machine, space, unique, kind.encode(held), kind.bits)
            return None
        old = np.zeros(len(addresses), kind.unsigned)
        for chosen in _rounds(addresses, order):
            machine.active = threads[chosen]
            raw = load_words(machine, space, addresses[chosen], kind.bits)
            old[chosen] = raw
            new = _updated(operation, kind.decode(raw), [value[..., chosen] for value in values])
            store_words(machine, space, addresses[chosen], kind.encode(new), kind.bits)
        return old
    finally:
        machine.active = everyone
        machine.races.resume(kept)


def _order(machine: Machine, addresses: Values) -> NDArray[np.intp]:
    """In which order threads do it."""
    if machine.random is None:
        return np.arange(len(addresses))
    return machine.random.permutation(len(addresses))


def _rounds(addresses: Values, order: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Threads in rounds; in each, all addresses differ, and those of one address come in their order."""
    by_address = order[np.argsort(addresses[order], kind="stable")]
    placed = addresses[by_address]
    starts = np.concatenate([[True], placed[1:] != placed[:-1]])
    begin = np.maximum.accumulate(np.where(starts, np.arange(len(placed)), 0))
    rank = np.arange(len(placed)) - begin
    by_rank = np.argsort(rank, kind="stable")
    limits = np.flatnonzero(np.diff(rank[by_rank])) + 1
    return [by_address[part] for part in np.split(by_rank, limits)]
