"""Products of small matrices by a warp, and how it loads and stores them (PTX ISA, "mma", "ldmatrix",
"stmatrix").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.backends.gpu_ptx.fragments import (
    ELEMENTS,
    GROUP,
    LANES,
    PLACE,
    left_factor,
    multiplied,
    result_places,
    right_factor,
)
from hlotool.backends.gpu_ptx.lowering import Reader, Site, Step, Writer, executes
from hlotool.backends.gpu_ptx.model import Operand
from hlotool.backends.gpu_ptx.operations.moves import (
    SPACES,
    checked_addresses,
    load_words,
    space_of,
    store_words,
)
from hlotool.backends.gpu_ptx.types import Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

B16, B32 = type_of("b16"), type_of("b32")
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
#: What results are held in: type of the registers, values in each.
_RESULTS = {"f32": ("f32", 1), "f16": ("f16x2", 2), "s32": ("s32", 1), "f64": ("f64", 1)}


def whole_warps(machine: Machine) -> int:
    """How many warps are active, all with all of their threads.

    Raises:
        AccessFault: a thread of one takes no part.
    """
    count = machine.active_count
    lanes = machine.active_of(machine.lane)
    if count % 32 or (lanes.reshape(-1, 32) != LANES).any():
        raise AccessFault("lanes", "not all threads of a warp execute it together")
    return count // 32


def by_warp(machine: Machine, values: Values) -> Values:
    """Values of shape (warps, 32)."""
    return machine.spread(values).reshape(-1, 32)


def _named_rows(machine: Machine, addresses: Values, matrices: int) -> Values:
    """The addresses of rows that lanes name, of shape (warps, 32); those of these matrices are checked.

    Raises:
        AccessFault: a thread takes no part, or a row lies at no multiple of 16 bytes.
    """
    whole_warps(machine)
    rows = by_warp(machine, addresses)
    checked_addresses(machine, rows[:, : 8 * matrices].ravel(), 16)
    return rows


@executes("ldmatrix")
def load_matrix(site: Site) -> Step:
    """8×8 matrices of 16 bits: lane `8i + r` names row `r` of matrix `i`."""
    words = site.accept("sync", "aligned", "m8n8", "trans", *_COUNTS, *SPACES)
    if site.types != ["b16"]:
        raise site.unsupported("this type is not known")
    writes = [site.writer(element, B32) for element in site.elements(0)]
    address, space = site.address(site.operands[1]), space_of(site)
    transposed = "trans" in words
    _check_count(site, words, len(writes))

    def step(machine: Machine) -> None:
        rows = _named_rows(machine, address(machine), len(writes))
        found = []
        for number in range(len(writes)):
            if transposed:
                halves = [
                    load_words(
                        machine, space, (rows[:, 8 * number + 2 * PLACE + half] + 2 * GROUP).ravel(), 16
                    )
                    for half in (0, 1)
                ]
                found.append(halves[0].astype(np.uint32) | (halves[1].astype(np.uint32) << np.uint32(16)))
            else:
                places = (rows[:, 8 * number + GROUP] + 4 * PLACE).ravel()
                found.append(load_words(machine, space, places, 32))
        for write, words in zip(writes, found):
            write(machine, words)
        machine.races.synchronised()

    return step


@executes("stmatrix")
def store_matrix(site: Site) -> Step:
    """The opposite of `ldmatrix`."""
    words = site.accept("sync", "aligned", "m8n8", "trans", *_COUNTS, *SPACES)
    if site.types != ["b16"]:
        raise site.unsupported("this type is not known")
    reads = [site.reader(element, B32) for element in site.elements(1)]
    address, space = site.address(site.operands[0]), space_of(site)
    transposed = "trans" in words
    _check_count(site, words, len(reads))

    def step(machine: Machine) -> None:
        rows = _named_rows(machine, address(machine), len(reads))
        for number, read in enumerate(reads):
            values = machine.spread(read(machine))
            if not transposed:
                store_words(machine, space, (rows[:, 8 * number + GROUP] + 4 * PLACE).ravel(), values, 32)
                continue
            for half in (0, 1):
                places = (rows[:, 8 * number + 2 * PLACE + half] + 2 * GROUP).ravel()
                store_words(machine, space, places, (values >> np.uint32(16 * half)).astype(np.uint16), 16)
        machine.races.synchronised()

    return step


def _check_count(site: Site, words: Sequence[str], count: int) -> None:
    expected = next((_COUNTS[word] for word in words if word in _COUNTS), 0)
    if expected != count:
        raise site.unsupported("the number of its registers")


@executes("movmatrix")
def move_matrix(site: Site) -> Step:
    """An 8×8 matrix of 16 bits transposed, in registers."""
    site.accept("sync", "aligned", "m8n8", "trans")
    read, write = site.read(1, B32), site.write(0, B32)

    def step(machine: Machine) -> None:
        whole_warps(machine)
        halves = np.ascontiguousarray(by_warp(machine, read(machine))).view(np.uint16).reshape(-1, 8, 8)
        write(machine, np.ascontiguousarray(halves.transpose(0, 2, 1)).reshape(-1).view(np.uint32))

    return step


class Registers:
    """The accumulator of a product: values of shape (warps, 32) for each of its elements.

    Args:
        operands: its registers.
        kind: `f32`, `f16` (two in a register), `s32` or `f64`.
    """

    def __init__(self, site: Site, operands: Sequence[Operand], kind: str, *, written: bool = False) -> None:
        if kind not in _RESULTS:
            raise site.unsupported(f"an accumulator of .{kind}")
        name, self.per_register = _RESULTS[kind]
        self.count = len(operands) * self.per_register
        self.reads: list[Reader] = [site.reader(operand, type_of(name)) for operand in operands]
        self.writes: list[Writer] = (
            [site.writer(operand, type_of(name)) for operand in operands] if written else []
        )

    def read(self, machine: Machine) -> list[Values]:
        """All values, f64, or int64 of s32."""
        found: list[Values] = []
        for read in self.reads:
            values = read(machine)
            wide = np.int64 if values.dtype.kind == "i" else np.float64
            rows = (
                [values]
                if self.per_register == 1
                else [np.broadcast_to(row, machine.active_count) for row in values]
            )
            found += [by_warp(machine, row.astype(wide)) for row in rows]
        return found

    def write(self, machine: Machine, values: Sequence[Values]) -> None:
        """Write values of shape (warps, 32)."""
        for number, write in enumerate(self.writes):
            if self.per_register == 1:
                write(machine, np.ascontiguousarray(values[number]).reshape(-1))
            else:
                write(machine, np.stack([values[2 * number].reshape(-1), values[2 * number + 1].reshape(-1)]))


@executes("mma", family="float")
def multiply(site: Site) -> Step:
    """`D = A @ B + C`."""
    return _multiply(site)


@executes("mma", family="integer")
def multiply_integers(site: Site) -> Step:
    """`D = A @ B + C`, of integers, which wrap or saturate."""
    return _multiply(site)


def _multiply(site: Site) -> Step:
    shape = next((word for word in site.words if re.fullmatch(r"m\d+n\d+k\d+", word)), "")
    words = site.accept("sync", "aligned", "row", "col", "satfinite", shape)
    if (
        not shape
        or len(site.types) != 4
        or [word for word in words if word in ("row", "col")] != ["row", "col"]
    ):
        raise site.unsupported("this product is not known")
    rows, columns, depth = map(int, re.findall(r"\d+", shape))
    result, left_name, right_name, start = site.types
    if left_name not in ELEMENTS or right_name not in ELEMENTS or columns != 8 or result != start:
        raise site.unsupported("this product is not known")
    left_type, right_type = ELEMENTS[left_name], ELEMENTS[right_name]
    if (rows, depth) == (8, 4) and left_name == "f16":
        raise site.unsupported("the layout of Volta")
    parts = [site.elements(place) for place in range(4)]
    # Each warp holds all elements, each once.
    sizes = (rows * depth // left_type.per_register, depth * 8 // right_type.per_register)
    if [32 * len(part) for part in parts[1:3]] != list(sizes):
        raise site.unsupported("the number of its registers")
    lefts = [site.reader(element, type_of(f"b{left_type.register_bits}")) for element in parts[1]]
    rights = [site.reader(element, type_of(f"b{right_type.register_bits}")) for element in parts[2]]
    accumulator, destination = (
        Registers(site, parts[3], start),
        Registers(site, parts[0], result, written=True),
    )
    if 32 * accumulator.count != rows * 8:
        raise site.unsupported("the number of its registers")
    places = result_places(accumulator.count)
    saturates = "satfinite" in words

    def step(machine: Machine) -> None:
        warps = whole_warps(machine)
        left = left_factor([by_warp(machine, read(machine)) for read in lefts], left_type, rows, depth)
        right = right_factor([by_warp(machine, read(machine)) for read in rights], right_type, depth)
        held = accumulator.read(machine)
        begin = np.empty((warps, rows, 8), held[0].dtype)
        for (row, column), values in zip(places, held):
            begin[:, row, column] = values
        found = multiplied(left, right, begin, result, saturates, machine.seed)
        destination.write(machine, [found[:, row, column] for row, column in places])
        machine.races.synchronised()

    return step
