"""Integer instructions against Python's integers: each formula is that of the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.ptx import elementwise
from support.ptx_operands import COUNT, signed_of
from support.ptx_operands import integer_operands as operands


def check(
    instruction: str,
    bits: int,
    number: int,
    formula: Callable[..., int],
    *,
    signed: bool = False,
    result_bits: int = 0,
    **given: Any,
) -> None:
    """All results, as unsigned integers, are those of a formula of Python integers."""
    result_bits = result_bits or bits
    arrays = given.pop("arrays", None) or operands(bits, number)
    found = elementwise(instruction, arrays, np.dtype(f"u{result_bits // 8}"), **given)
    for place, values in enumerate(zip(*(array.tolist() for array in arrays))):
        if signed:
            values = tuple(signed_of(value, 8 * array.itemsize) for value, array in zip(values, arrays))
        expected = formula(*values) % (1 << result_bits)
        assert int(found[place]) == expected, (instruction, values, hex(int(found[place])), hex(expected))


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


WIDTHS = [16, 32, 64]


@pytest.mark.parametrize("bits", WIDTHS)
def test_arithmetic_wraps(bits: int) -> None:
    check(f"add.s{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a + b)
    check(f"sub.u{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a - b)
    check(f"mul.lo.s{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a * b)
    check(f"mad.lo.u{bits} {{d}}, {{0}}, {{1}}, {{2}};", bits, 3, lambda a, b, c: a * b + c)
    check(f"neg.s{bits} {{d}}, {{0}};", bits, 1, lambda a: -a, signed=True)
    check(f"abs.s{bits} {{d}}, {{0}};", bits, 1, abs, signed=True)
    check(f"min.s{bits} {{d}}, {{0}}, {{1}};", bits, 2, min, signed=True)
    check(f"max.u{bits} {{d}}, {{0}}, {{1}};", bits, 2, max)
    check(f"sad.u{bits} {{d}}, {{0}}, {{1}}, {{2}};", bits, 3, lambda a, b, c: c + abs(a - b))


@pytest.mark.parametrize("bits", WIDTHS)
def test_upper_halves_of_products(bits: int) -> None:
    check(f"mul.hi.u{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a * b >> bits)
    check(f"mul.hi.s{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a * b >> bits, signed=True)
    check(
        f"mad.hi.s{bits} {{d}}, {{0}}, {{1}}, {{2}};",
        bits,
        3,
        lambda a, b, c: (a * b >> bits) + c,
        signed=True,
    )


@pytest.mark.parametrize("bits", [16, 32])
def test_wide_products(bits: int) -> None:
    check(f"mul.wide.u{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a * b, result_bits=2 * bits)
    check(
        f"mul.wide.s{bits} {{d}}, {{0}}, {{1}};",
        bits,
        2,
        lambda a, b: a * b,
        signed=True,
        result_bits=2 * bits,
    )


@pytest.mark.parametrize("bits", WIDTHS)
def test_division(bits: int) -> None:
    a, b = operands(bits, 2)
    b[b == 0] = 3
    arrays = [a, b]
    check(f"div.u{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a // b, arrays=arrays)
    check(f"rem.u{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, b: a % b, arrays=arrays)
    check(f"div.s{bits} {{d}}, {{0}}, {{1}};", bits, 2, truncated, signed=True, arrays=arrays)
    check(
        f"rem.s{bits} {{d}}, {{0}}, {{1}};",
        bits,
        2,
        lambda a, b: a - b * truncated(a, b),
        signed=True,
        arrays=arrays,
    )


def test_saturated_sums() -> None:
    def clamp(value: int) -> int:
        return max(-(1 << 31), min((1 << 31) - 1, value))

    check("add.sat.s32 {d}, {0}, {1};", 32, 2, lambda a, b: clamp(a + b), signed=True)
    check("sub.sat.s32 {d}, {0}, {1};", 32, 2, lambda a, b: clamp(a - b), signed=True)


@pytest.mark.parametrize("bits", [32, 64])
def test_carries(bits: int) -> None:
    """The carry of one instruction goes into the next."""
    first = f"add.cc.u{bits} {{d}}, {{0}}, {{1}};\naddc.u{bits} {{d}}, {{2}}, {{3}};"
    check(first, bits, 4, lambda a, b, c, d: c + d + (a + b >> bits))
    borrow = f"sub.cc.u{bits} {{d}}, {{0}}, {{1}};\nsubc.cc.u{bits} {{d}}, {{2}}, {{3}};\n"
    borrow += f"subc.u{bits} {{d}}, 0, 0;"
    check(borrow, bits, 4, lambda a, b, c, d: -int((d << bits) + b > (c << bits) + a))
    product = f"mad.lo.cc.u{bits} {{d}}, {{0}}, {{1}}, {{2}};\nmadc.hi.u{bits} {{d}}, {{0}}, {{1}}, {{3}};"
    check(product, bits, 4, lambda a, b, c, d: (a * b + c + (d << bits)) >> bits)


def test_logic_and_tables() -> None:
    check("and.b32 {d}, {0}, {1};", 32, 2, lambda a, b: a & b)
    check("or.b64 {d}, {0}, {1};", 64, 2, lambda a, b: a | b)
    check("xor.b16 {d}, {0}, {1};", 16, 2, lambda a, b: a ^ b)
    check("not.b32 {d}, {0};", 32, 1, lambda a: ~a)
    check("cnot.b32 {d}, {0};", 32, 1, lambda a: int(a == 0))
    for table in (0x96, 0xE8, 0x2C, 0xFE):

        def expected(a: int, b: int, c: int, table: int = table) -> int:
            return sum(
                (table >> ((a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (c >> bit & 1)) & 1) << bit
                for bit in range(32)
            )

        check(f"lop3.b32 {{d}}, {{0}}, {{1}}, {{2}}, {table};", 32, 3, expected)


@pytest.mark.parametrize("bits", WIDTHS)
def test_shifts_are_clamped(bits: int) -> None:
    counts = np.resize(np.array([0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 1 << 31], np.uint32), COUNT)
    arrays = [operands(bits, 1)[0], counts]
    check(f"shl.b{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, n: a << n if n < bits else 0, arrays=arrays)
    check(f"shr.u{bits} {{d}}, {{0}}, {{1}};", bits, 2, lambda a, n: a >> n if n < bits else 0, arrays=arrays)
    signs = [arrays[0], counts]
    found = elementwise(f"shr.s{bits} {{d}}, {{0}}, {{1}};", signs, np.dtype(f"u{bits // 8}"))
    expected = [
        (signed_of(a, bits) >> min(n, bits)) % (1 << bits)
        for a, n in zip(arrays[0].tolist(), counts.tolist())
    ]
    assert found.tolist() == expected


def test_funnel_shifts() -> None:
    check("shf.l.wrap.b32 {d}, {0}, {1}, {2};", 32, 3, lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32)
    check("shf.r.wrap.b32 {d}, {0}, {1}, {2};", 32, 3, lambda a, b, c: (b << 32 | a) >> (c & 31))
    check("shf.l.clamp.b32 {d}, {0}, {1}, {2};", 32, 3, lambda a, b, c: ((b << 32 | a) << min(c, 32)) >> 32)
    check("shf.r.clamp.b32 {d}, {0}, {1}, {2};", 32, 3, lambda a, b, c: (b << 32 | a) >> min(c, 32))


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_fields(bits: int) -> None:
    random = np.random.default_rng(3)
    positions = random.integers(0, bits + 8, COUNT).astype(np.uint32)
    lengths = random.integers(0, bits + 8, COUNT).astype(np.uint32)
    positions[::7] = 0
    lengths[::5] = 0
    a, b = operands(bits, 2)

    def extract(a: int, position: int, length: int) -> int:
        return a >> position & ((1 << length) - 1)

    def extract_signed(a: int, position: int, length: int) -> int:
        if length == 0:
            return 0
        sign = a >> min(position + length - 1, bits - 1) & 1
        found = 0
        for at in range(bits):
            inside = at < length and position + at < bits
            found |= (a >> position + at & 1 if inside else sign) << at
        return found

    def insert(a: int, b: int, position: int, length: int) -> int:
        found = b
        for at in range(length):
            if position + at >= bits or at >= bits:
                break
            found = found & ~(1 << position + at) | (a >> at & 1) << position + at
        return found

    check(f"bfe.u{bits} {{d}}, {{0}}, {{1}}, {{2}};", bits, 3, extract, arrays=[a, positions, lengths])
    check(f"bfe.s{bits} {{d}}, {{0}}, {{1}}, {{2}};", bits, 3, extract_signed, arrays=[a, positions, lengths])
    check(
        f"bfi.b{bits} {{d}}, {{0}}, {{1}}, {{2}}, {{3}};", bits, 4, insert, arrays=[a, b, positions, lengths]
    )


@pytest.mark.parametrize("bits", [32, 64])
def test_counts(bits: int) -> None:
    check(f"clz.b{bits} {{d}}, {{0}};", bits, 1, lambda a: bits - a.bit_length(), result_bits=32)
    check(f"popc.b{bits} {{d}}, {{0}};", bits, 1, lambda a: a.bit_count(), result_bits=32)
    check(f"brev.b{bits} {{d}}, {{0}};", bits, 1, lambda a: int(f"{a:0{bits}b}"[::-1], 2))
    check(f"bfind.u{bits} {{d}}, {{0}};", bits, 1, lambda a: a.bit_length() - 1, result_bits=32)
    check(
        f"bfind.s{bits} {{d}}, {{0}};",
        bits,
        1,
        lambda a: (a if a >= 0 else ~a).bit_length() - 1,
        result_bits=32,
        signed=True,
    )
    check(
        f"bfind.shiftamt.u{bits} {{d}}, {{0}};",
        bits,
        1,
        lambda a: bits - a.bit_length() if a else -1,
        result_bits=32,
    )


def test_bytes_are_permuted() -> None:
    def general(a: int, b: int, selector: int) -> int:
        source = (a | b << 32).to_bytes(8, "little")
        found = 0
        for place in range(4):
            word = selector >> 4 * place & 15
            byte = source[word & 7]
            found |= ((0xFF if byte >> 7 else 0) if word & 8 else byte) << 8 * place
        return found

    check("prmt.b32 {d}, {0}, {1}, {2};", 32, 3, general)

    def forward(a: int, b: int, selector: int) -> int:
        source = (a | b << 32).to_bytes(8, "little")
        return int.from_bytes(bytes(source[(selector & 3) + place] for place in range(4)), "little")

    check("prmt.b32.f4e {d}, {0}, {1}, {2};", 32, 3, forward)


def test_dot_products_of_bytes() -> None:
    def parts(value: int, signed: bool) -> list[int]:
        return [signed_of(byte, 8) if signed else byte for byte in value.to_bytes(4, "little")]

    for left in ("u32", "s32"):
        for right in ("u32", "s32"):

            def formula(a: int, b: int, c: int, left: str = left, right: str = right) -> int:
                return c + sum(x * y for x, y in zip(parts(a, left == "s32"), parts(b, right == "s32")))

            check(f"dp4a.{left}.{right} {{d}}, {{0}}, {{1}}, {{2}};", 32, 3, formula)


def test_packed_integers() -> None:
    def each(a: int, b: int) -> int:
        return sum(((a >> shift) + (b >> shift) & 0xFFFF) << shift for shift in (0, 16))

    check("add.u16x2 {d}, {0}, {1};", 32, 2, each)

    def smaller(a: int, b: int) -> int:
        return sum(
            (min(signed_of(a >> shift, 16), signed_of(b >> shift, 16)) & 0xFFFF) << shift for shift in (0, 16)
        )

    check("min.s16x2 {d}, {0}, {1};", 32, 2, smaller)


@pytest.mark.parametrize(
    ("word", "formula"), [("lt", int.__lt__), ("ge", int.__ge__), ("eq", int.__eq__), ("ne", int.__ne__)]
)
def test_comparisons(word: str, formula: Callable[[int, int], bool]) -> None:
    for kind, bits in (("s32", 32), ("u32", 32), ("s64", 64), ("u16", 16)):
        arrays = operands(bits, 2)
        found = elementwise(f"setp.{word}.{kind} {{d}}, {{0}}, {{1}};", arrays, np.bool_)
        pairs = zip(*(array.tolist() for array in arrays))
        expected = [
            formula(signed_of(a, bits), signed_of(b, bits)) if kind[0] == "s" else formula(a, b)
            for a, b in pairs
        ]
        assert found.tolist() == expected, kind
