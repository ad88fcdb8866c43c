"""Logic, shifts and fields of bits (PTX ISA, "Logic and Shift Instructions", "bfe" to "szext", "prmt")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.gpu_ptx.lowering import Site, Step, elementwise, executes
from hlotool.backends.gpu_ptx.model import Immediate
from hlotool.backends.gpu_ptx.types import Values, type_of

U32 = type_of("u32")
U64 = type_of("u64")

_LOGIC: dict[str, Callable[[Values, Values], Values]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@executes("and", "or", "xor")
def logic(site: Site) -> Step:
    """Bit by bit, or of predicates."""
    site.accept()
    kind = site.type()
    return elementwise(site, kind, [kind, kind], _LOGIC[site.instruction.opcode])


@executes("not")
def invert(site: Site) -> Step:
    """All bits inverted."""
    site.accept()
    kind = site.type()
    return elementwise(site, kind, [kind], np.invert)


@executes("cnot")
def logical_not(site: Site) -> Step:
    """1 where the operand is zero, else 0."""
    site.accept()
    kind = site.type()
    return elementwise(site, kind, [kind], lambda a: (a == 0).astype(a.dtype))


def shifted_left(a: Values, count: Values) -> Values:
    """`a << count`; counts of the width or more give zero."""
    width = a.dtype.itemsize * 8
    small = np.minimum(count, np.uint32(width - 1)).astype(a.dtype)
    return np.where(count >= width, a.dtype.type(0), a << small)


def shifted_right(a: Values, count: Values) -> Values:
    """`a >> count`; counts of the width or more give the sign, or zero."""
    width = a.dtype.itemsize * 8
    small = np.minimum(count, np.uint32(width - 1)).astype(a.dtype)
    moved = a >> small
    return moved if a.dtype.kind == "i" else np.where(count >= width, a.dtype.type(0), moved)


@executes("shl", "shr")
def shift(site: Site) -> Step:
    """Shifts; the count is clamped to the width."""
    site.accept()
    kind = site.type()
    return elementwise(
        site, kind, [kind, U32], shifted_left if site.instruction.opcode == "shl" else shifted_right
    )


@executes("shf")
def funnel_shift(site: Site) -> Step:
    """A shift of two registers joined: the upper half of a left one, the lower half of a right one."""
    words = site.accept("l", "r", "wrap", "clamp")
    left, wraps = "l" in words, "wrap" in words

    def function(low: Values, high: Values, count: Values) -> Values:
        joined = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        count = (count & np.uint32(31) if wraps else np.minimum(count, np.uint32(32))).astype(np.uint64)
        moved = (joined << count) >> np.uint64(32) if left else joined >> count
        return moved.astype(np.uint32)

    return elementwise(site, U32, [U32] * 3, function)


@executes("lop3")
def lop3(site: Site) -> Step:
    """Any function of three bits, by its table: bit `4a + 2b + c` of the last operand."""
    site.accept()
    table = site.operands[4]
    if not isinstance(table, Immediate):
        raise site.unsupported("the table has to be a literal")
    rows = [row for row in range(8) if table.value >> row & 1]

    def function(a: Values, b: Values, c: Values) -> Values:
        found = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
        for row in rows:
            found |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return found

    return elementwise(site, U32, [U32] * 3, function)


@executes("prmt")
def permute(site: Site) -> Step:
    """Four of the eight bytes of two registers, each as it is or its sign in all bits."""
    (mode,) = site.accept("f4e", "b4e", "rc8", "ecl", "ecr", "rc16") or ("",)

    def chosen(selector: Values, place: int) -> Values:
        """Of each thread the byte for `place`, in general mode with the bit for its sign."""
        if not mode:
            return (selector >> np.uint32(4 * place)) & np.uint32(15)
        start = (selector & np.uint32(3)).astype(np.int64)
        return {
            "f4e": lambda: (start + place) & 7,
            "b4e": lambda: (start - place) & 7,
            "rc8": lambda: start,
            "ecl": lambda: np.maximum(start, place),
            "ecr": lambda: np.minimum(start, place),
            "rc16": lambda: (start & 1) * 2 + (place & 1),
        }[mode]()

    def function(a: Values, b: Values, selector: Values) -> Values:
        joined = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        found = np.uint32(0)
        for place in range(4):
            which = chosen(selector, place).astype(np.uint64)
            byte = (joined >> ((which & np.uint64(7)) << np.uint64(3))).astype(np.uint8)
            byte = np.where(which & np.uint64(8), (byte.view(np.int8) >> np.int8(7)).view(np.uint8), byte)
            found = found | (byte.astype(np.uint32) << np.uint32(8 * place))
        return found

    return elementwise(site, U32, [U32] * 3, function)


@executes("bfe")
def extract(site: Site) -> Step:
    """Bits `position` to `position + length`, filled with zeros or with the sign of the field."""
    site.accept()
    kind = site.type()
    width = kind.bits

    def function(a: Values, position: Values, length: Values) -> Values:
        position, length = position & np.uint32(255), length & np.uint32(255)
        moved = shifted_right(a, position)
        if kind.kind == "u":
            mask = shifted_left(np.broadcast_to(kind.unsigned(1), length.shape), length) - kind.unsigned(1)
            return moved & mask
        # The sign is the last bit of the field that exists; a field of no bits is zero.
        spare = np.maximum(np.int64(width) - length.astype(np.int64), 0).astype(np.uint32)
        field = shifted_right(shifted_left(moved, spare), spare)
        return np.where(length == 0, a.dtype.type(0), field)

    return elementwise(site, kind, [kind, U32, U32], function)


@executes("bfi")
def insert(site: Site) -> Step:
    """Operand 2 with a field of the lowest bits of operand 1."""
    site.accept()
    kind = site.type()

    def function(a: Values, b: Values, position: Values, length: Values) -> Values:
        position, length = position & np.uint32(255), length & np.uint32(255)
        ones = shifted_left(np.broadcast_to(kind.unsigned(1), length.shape), length) - kind.unsigned(1)
        mask = shifted_left(ones, position)
        return (b & ~mask) | (shifted_left(a, position) & mask)

    return elementwise(site, kind, [kind, kind, U32, U32], function)


def highest_bit(a: Values) -> Values:
    """Position of the highest set bit of unsigned integers, -1 where there is none; int64."""
    rest = a.astype(np.uint64)
    found = np.full(rest.shape, -1, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        upper = rest >> np.uint64(step)
        some = upper != 0
        found += np.where(some, step, 0)
        rest = np.where(some, upper, rest)
    return found + (rest != 0)


@executes("clz", "bfind", "popc", "brev")
def count(site: Site) -> Step:
    """Leading zeros; position of the highest bit that is not the sign; number of set bits; bits reversed."""
    words = site.accept("shiftamt")
    kind = site.type()
    width = kind.bits

    def leading(a: Values) -> Values:
        return (width - 1 - highest_bit(a)).astype(np.uint32)

    def find(a: Values) -> Values:
        a = np.where(a < 0, ~a, a) if a.dtype.kind == "i" else a
        place = highest_bit(a.view(kind.unsigned))
        if "shiftamt" in words:
            place = np.where(place < 0, place, width - 1 - place)
        return place.astype(np.int32).view(np.uint32)

    def reverse(a: Values) -> Values:
        reversed_bytes = _REVERSED[np.ascontiguousarray(a).reshape(-1, 1).view(np.uint8)]
        return np.ascontiguousarray(reversed_bytes[:, ::-1]).view(a.dtype)[:, 0]

    if site.instruction.opcode == "brev":
        return elementwise(site, kind, [kind], reverse)
    function: Callable[[Values], Values] = {
        "clz": leading,
        "bfind": find,
        "popc": lambda a: np.bitwise_count(a).astype(np.uint32),
    }[site.instruction.opcode]
    return elementwise(site, U32, [kind], function)


_REVERSED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)


@executes("szext", "bmsk")
def mask(site: Site) -> Step:
    """The lowest `n` bits with the sign, or zeros, above; a mask of `n` ones from a position on."""
    words = site.accept("wrap", "clamp")
    kind = site.type()
    wraps = "wrap" in words

    def bounded(a: Values) -> Values:
        return a & np.uint32(31) if wraps else np.minimum(a, np.uint32(32))

    def extend(a: Values, length: Values) -> Values:
        spare = np.uint32(32) - bounded(length)
        field = shifted_right(shifted_left(a, spare), spare)
        return np.where(spare == 32, a.dtype.type(0), field)

    def ones(position: Values, length: Values) -> Values:
        length = bounded(length)
        plain = shifted_left(np.broadcast_to(np.uint32(1), length.shape), length) - np.uint32(1)
        return shifted_left(plain, bounded(position))

    if site.instruction.opcode == "szext":
        return elementwise(site, kind, [kind, U32], extend)
    return elementwise(site, U32, [U32, U32], ones)
