"""Copies of tiles of tensors, and the barriers that they are waited for with ("cp.async.bulk.tensor",
"mbarrier").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.backends.gpu_ptx.lowering import WINDOWS, Site, Step, executes
from hlotool.backends.gpu_ptx.model import Immediate, Vector
from hlotool.backends.gpu_ptx.operations.moves import checked_addresses, load_words, store_words
from hlotool.backends.gpu_ptx.tensor_maps import MAP_BYTES, TensorMap
from hlotool.backends.gpu_ptx.transactions import BARRIER_BYTES
from hlotool.backends.gpu_ptx.types import Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

U32 = type_of("u32")
_SHARED = ("shared", "shared::cta")
_BY_BARRIER = "mbarrier::complete_tx::bytes"


def bulk(site: Site) -> Step:
    """A tile of a tensor to shared memory or from there, or a word about groups of the latter."""
    words = site.words
    if "commit_group" in words:
        site.accept("async", "bulk", "commit_group")
        return lambda machine: machine.tiles.commit(machine)
    if "wait_group" in words:
        site.accept("async", "bulk", "wait_group", "read")
        left = site.operands[0]
        if not isinstance(left, Immediate):
            raise site.unsupported("a number that is not known before it runs")
        return lambda machine: machine.tiles.wait(machine, left.value)
    rank = next((word for word in words if re.fullmatch(r"[1-5]d", word)), "")
    site.accept("async", "bulk", "tensor", rank, "tile", "global", *_SHARED, _BY_BARRIER, "bulk_group")
    loads = _BY_BARRIER in words
    if not rank or loads == ("bulk_group" in words):
        raise site.unsupported("this copy is not known")
    return _load(site) if loads else _store(site)


class _Tensor:
    """`[map, {coordinates}]`."""

    def __init__(self, site: Site, place: int) -> None:
        operand = site.operands[place]
        if not isinstance(operand, Vector) or not isinstance(operand.elements[1], Vector):
            raise site.unsupported("this tensor is not known")
        self._map = site.reader(operand.elements[0], type_of("u64"))
        signed = type_of("s32")
        self._corner = [site.reader(each, signed) for each in operand.elements[1].elements]

    def tiles(self, machine: Machine) -> list[tuple[TensorMap, list[int]]]:
        """Of each active thread the map and the corner of the tile."""
        where = machine.spread(self._map(machine)).astype(np.int64) - WINDOWS["param"]
        corners = [machine.spread(read(machine)).tolist() for read in self._corner]
        found = []
        for which, (offset, *corner) in enumerate(zip(where.tolist(), *corners)):
            if not 0 <= offset <= machine.parameters.size - MAP_BYTES:
                raise AccessFault("bounds", "a map that is no parameter of the kernel", which)
            found.append(
                (TensorMap.decode(machine.parameters[offset : offset + MAP_BYTES].tobytes()), corner)
            )
        return found


def _places(machine: Machine, thread: int, described: TensorMap, address: int) -> Values:
    """Offsets in all shared memory of the elements of the tile at `address` of the block's."""
    alignment = 8 * described.row if described.row else 128
    if address % alignment:
        raise AccessFault("alignment", f"a tile at byte {address}, which is no multiple of {alignment}")
    places = described.swizzled(address + described.places)
    if int(places.max()) + described.size > machine.shared_bytes:
        raise AccessFault("bounds", f"a tile reaches byte {int(places.max())} of {machine.shared_bytes}")
    found: Values = places + machine.block[thread] * machine.shared_stride
    return found


def _load(site: Site) -> Step:
    """From global memory: zeros come from where the tensor is not."""
    target, tensor = site.address(site.operands[0]), _Tensor(site, 1)
    barrier = site.address(site.operands[2])

    def step(machine: Machine) -> None:
        to = machine.spread(target(machine)).tolist()
        at = machine.spread(barrier(machine)).tolist()
        everyone, threads = machine.active, machine.active_threads.tolist()
        for thread, address, at_barrier, (described, corner) in zip(threads, to, at, tensor.tiles(machine)):
            places = _places(machine, thread, described, address)
            sources, inside = described.addresses(corner)
            machine.active = np.full(int(inside.sum()), thread)
            data = np.zeros((len(places), described.size), np.uint8)
            if inside.any():
                words = load_words(machine, "global", sources[inside], 8 * described.size)
                data[inside] = words[:, None].view(np.uint8)
            machine.active = everyone
            machine.transactions.copy(thread, at_barrier, places, data)

    return step


def _store(site: Site) -> Step:
    """To global memory, but what lies outside of the tensor; it is read until it is waited for."""
    tensor, source = _Tensor(site, 0), site.address(site.operands[1])

    def step(machine: Machine) -> None:
        origin = machine.spread(source(machine)).tolist()
        everyone, threads = machine.active, machine.active_threads.tolist()
        for thread, address, (described, corner) in zip(threads, origin, tensor.tiles(machine)):
            places = _places(machine, thread, described, address)
            bits = 8 * described.size
            words = machine.shared.load(places, bits)
            machine.tiles.begin(thread, [machine.races.begin_reading(thread, places, described.size)])
            targets, inside = described.addresses(corner)
            machine.active = np.full(int(inside.sum()), thread)
            if inside.any():
                store_words(machine, "global", targets[inside], words[inside], bits)
            machine.active = everyone

    return step


@executes("mbarrier")
def barrier(site: Site) -> Step:
    """Making, ending and arriving at barriers; waiting is `control.TryWait`."""
    words = site.accept("init", "inval", "arrive", "expect_tx", "b64", "release", "cta", "relaxed", *_SHARED)
    arrives = "arrive" in words
    operands = site.operands[1:] if arrives else site.operands
    address = site.address(operands[0])
    extra = site.reader(operands[1], U32) if len(operands) > 1 else None

    def step(machine: Machine) -> None:
        where = machine.spread(checked_addresses(machine, address(machine), BARRIER_BYTES))
        _, offsets = machine.locate("shared", where, BARRIER_BYTES)
        if "init" in words or "inval" in words:
            machine.races.writes(offsets, BARRIER_BYTES)
        else:
            machine.races.reads(offsets, BARRIER_BYTES)
        number = np.ones(len(where), np.uint32) if extra is None else machine.spread(extra(machine))
        if "init" in words:
            machine.transactions.begin(where, number)
        elif "inval" in words:
            machine.transactions.end(where)
        elif "expect_tx" in words:
            machine.transactions.arrive(where, number, np.full(len(where), int(arrives)))
        else:
            machine.transactions.arrive(where, np.zeros(len(where), np.int64), number)

    return step
