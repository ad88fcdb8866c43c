"""Products by four warps, with factors in shared memory ("Asynchronous Warpgroup Level Matrix Instructions").

The product is computed when it is issued; that its factors are read until it is waited for is told to the
check of races, so that a write which comes too early is seen.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.backends.gpu_ptx.fragments import ELEMENTS, Element, left_factor, multiplied, result_places
from hlotool.backends.gpu_ptx.lowering import Reader, Site, Step, executes
from hlotool.backends.gpu_ptx.model import Immediate, Vector
from hlotool.backends.gpu_ptx.operations.matrices import Registers, by_warp, whole_warps
from hlotool.backends.gpu_ptx.types import Values, type_of
from hlotool.errors import KernelFault, Location

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

GROUP_THREADS = 128
#: Bytes of a row of a swizzled tile, and the bits of the address by which its 16-byte chunks are permuted,
#: by the mode.
_SWIZZLES = {0: (16, 0), 1: (128, 7), 2: (64, 3), 3: (32, 1)}


@lru_cache(maxsize=1024)
def tile_offsets(descriptor: int, rows: int, depth: int, size: int, along_rows: bool) -> Values:
    """Offsets in the block's shared memory of the elements of a factor, shape (rows, depth).

    Args:
        descriptor: start, two strides and the swizzle ("Matrix Descriptor").
        size: bytes of an element.
        along_rows: neighbours in memory are of one column ("MN-major"), not of one row ("K-major").

    Raises:
        ValueError: a layout that is not known.
    """
    start, leading, stride = ((descriptor >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    width, bits = _SWIZZLES[descriptor >> 62 & 3]
    if descriptor >> 49 & 7:
        raise ValueError("a base offset")
    row, column = np.arange(rows)[:, None], np.arange(depth)
    if along_rows:
        if not bits:
            raise ValueError("a factor along its rows without swizzle")
        across = width // size
        place = row // across * leading + column // 8 * stride + column % 8 * width + row % across * size
    elif bits:
        place = row // 8 * stride + row % 8 * width + column * size
    else:
        across = 16 // size
        place = row // 8 * stride + row % 8 * 16 + column // across * leading + column % across * size
    place = start + place
    return place ^ ((place >> 7 & bits) << 4)


def _factor(
    machine: Machine, first: int, descriptor: int, rows: int, depth: int, element: Element, along_rows: bool
) -> Any:
    """A factor of shape (rows, depth) of the warpgroup whose first thread is `first`, and the granules that
    it reads.
    """
    size = element.bits // 8
    try:
        places = tile_offsets(descriptor, rows, depth, size, along_rows)
    except ValueError as error:
        raise AccessFault("bounds", f"{error} of a matrix descriptor is not executed") from None
    if int(places.max()) + size > machine.shared_bytes:
        raise AccessFault(
            "bounds", f"a matrix descriptor reaches byte {int(places.max())} of {machine.shared_bytes}"
        )
    offsets = places + machine.block[first] * machine.shared_stride
    words = machine.shared.load(offsets.ravel(), element.bits).reshape(offsets.shape)
    return element.values(words), machine.races.begin_reading(first, offsets.ravel(), size)


def _flag(site: Site, place: int) -> int:
    """A literal behind the descriptors."""
    operand = site.operands[place]
    if not isinstance(operand, Immediate):
        raise site.unsupported("a number that is not known before it runs")
    return operand.value


@executes("wgmma", family="integer")
def integers(site: Site) -> Step:
    """The words about groups, and products of integers."""
    words = site.words
    if "mma_async" in words:
        return _multiply(site)
    site.accept("fence", "sync", "aligned", "commit_group", "wait_group")
    if "commit_group" in words:
        return lambda machine: machine.products.commit(machine)
    if "wait_group" in words:
        left = _flag(site, 0)
        return lambda machine: machine.products.wait(machine, left)
    return lambda machine: machine.races.synchronised()


@executes("wgmma", family="float")
def floats(site: Site) -> Step:
    """Products of floats."""
    return _multiply(site)


class Readings:
    """Operations that are not waited for: groups of what they read, for each `threads` threads (by the first
    one).
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._open: dict[int, list[Values]] = {}
        self._committed: dict[int, list[list[Values]]] = {}

    def begin(self, first: int, reads: list[Values]) -> None:
        """One more operation."""
        self._open.setdefault(first, []).extend(reads)

    def commit(self, machine: Machine) -> None:
        """What was begun is a group."""
        for first in machine.active_threads[:: self._threads].tolist():
            self._committed.setdefault(first, []).append(self._open.pop(first, []))

    def wait(self, machine: Machine, left: int) -> None:
        """All groups but the `left` latest are complete."""
        for first in machine.active_threads[:: self._threads].tolist():
            groups = self._committed.get(first, [])
            while len(groups) > left:
                for where in groups.pop(0):
                    machine.races.end_reading(first, where)

    def finish(self, machine: Machine, what: str) -> None:
        """The kernel ends; raises KernelFault where `what` was not waited for."""
        if any(self._open.values()) or any(map(any, self._committed.values())):
            kernel = machine.kernel
            where = Location(kernel.program, kernel.line)
            raise KernelFault("race", f"ends before {what} is waited for", kernel.name, where)


def _check_fence(site: Site) -> None:
    """Refuse a product without a `wgmma.fence` before it in the text, or of registers that are written behind
    it; copies of registers are none to what assembles it.
    """
    lists = (each for each in site.operands[:2] if isinstance(each, Vector))
    read = {register for each in lists for register in each.elements}
    at = next(place for place, one in enumerate(site.kernel.code) if one is site.instruction)
    why = "there is no wgmma.fence before it"
    for one in reversed(site.kernel.code[:at]):
        if one.opcode == "wgmma" and one.has("fence"):
            return
        target = one.operands[0] if one.operands else None
        written = target.elements if isinstance(target, Vector) else (target,)
        if one.opcode not in ("wgmma", "mov", "st") and not read.isdisjoint(written):
            why = f"no wgmma.fence is behind line {one.line}, which writes its registers"
            break
    where = Location(site.kernel.program, site.instruction.line)
    raise KernelFault("race", why, site.kernel.name, where, site.instruction.text)


def _multiply(site: Site) -> Step:
    """`D = A @ B + D`, or `D = A @ B`."""
    _check_fence(site)
    shape = next((word for word in site.words if re.fullmatch(r"m64n\d+k\d+", word)), "")
    words = site.accept("mma_async", "sync", "aligned", "satfinite", shape)
    if not shape or len(site.types) != 3:
        raise site.unsupported("this product is not known")
    columns, depth = map(int, re.findall(r"\d+", shape)[1:])
    result, left_name, right_name = site.types
    if left_name not in ELEMENTS or right_name not in ELEMENTS:
        raise site.unsupported("this product is not known")
    left_type, right_type = ELEMENTS[left_name], ELEMENTS[right_name]
    in_registers = isinstance(site.operands[1], Vector)
    lefts: list[Reader] = (
        [site.reader(element, type_of("b32")) for element in site.elements(1)] if in_registers else []
    )
    u64 = type_of("u64")
    left_at = None if in_registers else site.read(1, u64)
    right_at = site.read(2, u64)
    adds = site.read(3, type_of("pred"))
    flags = [_flag(site, place) for place in range(4, len(site.operands))]
    floats = left_type.name not in ("s8", "u8")
    signs = flags[:2] if floats else [1, 1]
    along = flags[2:] if floats else []
    left_along = bool(along[0]) if along and not in_registers else False
    right_along = bool(along[-1]) if along else False
    accumulator = Registers(site, site.elements(0), result, written=True)
    if accumulator.count * GROUP_THREADS != 64 * columns:
        raise site.unsupported("the number of its registers")
    places = result_places(accumulator.count)
    saturates = "satfinite" in words

    def step(machine: Machine) -> None:
        warps = whole_warps(machine)
        threads = machine.active_threads
        if warps % 4 or (machine.thread[threads[::GROUP_THREADS]] % GROUP_THREADS).any():
            raise AccessFault("lanes", "not all threads of a warpgroup execute it together")
        groups = warps // 4
        firsts = threads[::GROUP_THREADS].tolist()
        right_where = machine.spread(right_at(machine))[::GROUP_THREADS].tolist()
        left = np.empty((groups, 64, depth))
        right = np.empty((groups, depth, columns))
        if in_registers:
            by_row = left_factor([by_warp(machine, read(machine)) for read in lefts], left_type, 16, depth)
            left[:] = by_row.reshape(groups, 64, depth)
        left_where = [] if left_at is None else machine.spread(left_at(machine))[::GROUP_THREADS].tolist()
        for group, first in enumerate(firsts):
            reads = []
            if left_where:
                left[group], granules = _factor(
                    machine, first, left_where[group], 64, depth, left_type, left_along
                )
                reads.append(granules)
            found, granules = _factor(
                machine, first, right_where[group], columns, depth, right_type, right_along
            )
            right[group] = found.T
            machine.products.begin(first, [*reads, granules])
        held = accumulator.read(machine)
        begin = np.zeros((warps, 16, columns), held[0].dtype)
        for (row, column), values in zip(places, held):
            begin[:, row, column] = values
        begin = begin.reshape(groups, 64, columns)
        keeps = machine.spread(adds(machine))[::GROUP_THREADS]
        begin[~keeps] = 0
        if signs != [1, 1]:
            left = left * (signs[0] * signs[1])
        product = multiplied(left, right, begin, result, saturates, machine.seed).reshape(warps, 16, columns)
        accumulator.write(machine, [product[:, row, column] for row, column in places])

    return step
