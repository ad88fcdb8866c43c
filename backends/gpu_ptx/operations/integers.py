"""Integer arithmetic, which wraps (PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision ...")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.gpu_ptx.lowering import Site, Step, elementwise, executes
from hlotool.backends.gpu_ptx.types import SIGNED, Type, Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine


def wide_product(a: Values, b: Values) -> tuple[Values, Values]:
    """High and low 64 bits of the products of unsigned 64-bit integers."""
    low_mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low_mask, a >> half, b & low_mask, b >> half
    first, second, third, last = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    middle = second + (first >> half)
    other = third + (middle & low_mask)
    return last + (middle >> half) + (other >> half), a * b


def high_product(a: Values, b: Values, kind: Type) -> Values:
    """The upper half of the product of two integers of type `kind`, as the same dtype."""
    if kind.bits < 64:
        wide = np.dtype(f"{'i' if kind.kind == 's' else 'u'}{kind.bits // 4}")
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(kind.bits)).astype(a.dtype)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    high, _ = wide_product(ua, ub)
    if kind.kind == "s":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return high.view(a.dtype)


def _saturated(site: Site, sign: int) -> Step:
    """`add.sat.s32` and `sub.sat.s32`."""
    kind = site.type()
    if kind.name != "s32":
        raise site.unsupported(".sat is of .s32 alone")

    def function(a: Values, b: Values) -> Values:
        exact = a.astype(np.int64) + np.int64(sign) * b.astype(np.int64)
        return np.clip(exact, -(1 << 31), (1 << 31) - 1).astype(np.int32)

    return elementwise(site, kind, [kind, kind], function)


def _with_carry(site: Site, subtracts: bool) -> Step:
    """`add.cc`, `addc`, `addc.cc` and those of subtraction: the carry is a bit of each thread."""
    site.accept("cc")
    kind = type_of(f"u{site.type().bits}")
    reads = [site.read(1, kind), site.read(2, kind)]
    write = site.write(0, kind)
    takes, gives = site.instruction.opcode.endswith("c"), site.instruction.has("cc")

    def step(machine: Machine) -> None:
        a, b = reads[0](machine), reads[1](machine)
        carry = machine.active_of(machine.carry) if takes else np.bool_(False)
        if subtracts:
            found = a - b
            borrow = a < b
            result = found - carry.astype(found.dtype)
            out = borrow | (carry & (found == 0))
        else:
            found = a + b
            result = found + carry.astype(found.dtype)
            out = (found < a) | (carry & (result == 0))
        write(machine, result)
        if gives:
            machine.set_carry(out)

    return step


@executes("add", "sub", family="integer")
def add(site: Site) -> Step:
    """Sum and difference."""
    subtracts = site.instruction.opcode == "sub"
    if site.instruction.has("sat"):
        site.accept("sat")
        return _saturated(site, -1 if subtracts else 1)
    if site.instruction.has("cc"):
        return _with_carry(site, subtracts)
    site.accept()
    kind = site.type()
    return elementwise(site, kind, [kind, kind], np.subtract if subtracts else np.add)


@executes("addc", "subc")
def addc(site: Site) -> Step:
    """Sum and difference with the carry of the last instruction that set it."""
    return _with_carry(site, site.instruction.opcode == "subc")


@executes("mul", family="integer")
def mul(site: Site) -> Step:
    """Product: its lower half, upper half, or all of it."""
    (part,) = site.accept("lo", "hi", "wide") or ("lo",)
    kind = site.type()
    if part == "wide":
        double = type_of(f"{kind.kind}{2 * kind.bits}")
        wide = _dtype(double)
        return elementwise(site, double, [kind, kind], lambda a, b: a.astype(wide) * b.astype(wide))
    if part == "hi":
        return elementwise(site, kind, [kind, kind], lambda a, b: high_product(a, b, kind))
    return elementwise(site, kind, [kind, kind], np.multiply)


@executes("mul24", "mad24")
def mul24(site: Site) -> Step:
    """Products of the lower 24 bits: bits 0 to 31 (`lo`) or 16 to 47 (`hi`)."""
    (part,) = site.accept("lo", "hi")
    kind = site.type()
    wide = np.int64 if kind.kind == "s" else np.uint64

    def product(a: Values, b: Values) -> Values:
        low = [(x.astype(wide) << wide(40)) >> wide(40) for x in (a, b)]
        exact = low[0] * low[1]
        return (exact if part == "lo" else exact >> wide(16)).astype(a.dtype)

    if site.instruction.opcode == "mad24":
        return elementwise(site, kind, [kind] * 3, lambda a, b, c: product(a, b) + c)
    return elementwise(site, kind, [kind, kind], product)


@executes("mad", family="integer")
def mad(site: Site) -> Step:
    """Product plus a third operand."""
    words = site.accept("lo", "hi", "wide", "cc", "sat")
    if "cc" in words:
        return madc(site)
    kind = site.type()
    if "sat" in words:
        return elementwise(
            site, kind, [kind] * 3, lambda a, b, c: _saturated_sum(high_product(a, b, kind), c)
        )
    if "wide" in words:
        double = type_of(f"{kind.kind}{2 * kind.bits}")
        wide = _dtype(double)
        return elementwise(
            site, double, [kind, kind, double], lambda a, b, c: a.astype(wide) * b.astype(wide) + c
        )
    if "hi" in words:
        return elementwise(site, kind, [kind] * 3, lambda a, b, c: high_product(a, b, kind) + c)
    return elementwise(site, kind, [kind] * 3, lambda a, b, c: a * b + c)


def _saturated_sum(a: Values, c: Values) -> Values:
    return np.clip(a.astype(np.int64) + c.astype(np.int64), -(1 << 31), (1 << 31) - 1).astype(np.int32)


@executes("madc")
def madc(site: Site) -> Step:
    """Half a product plus a third operand plus the carry, which it sets with `.cc`."""
    words = site.accept("lo", "hi", "cc")
    kind = site.type()
    reads = [site.read(place, kind) for place in (1, 2, 3)]
    write = site.write(0, kind)
    takes, gives, high = site.instruction.opcode == "madc", "cc" in words, "hi" in words

    def step(machine: Machine) -> None:
        a, b, c = (machine.spread(read(machine)) for read in reads)
        product = high_product(a, b, kind) if high else a * b
        unsigned = kind.unsigned
        product, c = product.view(unsigned), c.view(unsigned)
        total = product + c
        carry = machine.active_of(machine.carry) if takes else np.bool_(False)
        result = total + carry.astype(unsigned)
        write(machine, result.view(a.dtype))
        if gives:
            machine.set_carry((total < product) | (carry & (result == 0)))

    return step


def _dtype(kind: Type) -> Any:
    return SIGNED[kind.bits] if kind.kind == "s" else kind.unsigned


def _truncated(a: Values, b: Values) -> tuple[Values, Values]:
    """Quotient towards zero and remainder; where the divisor is zero, all bits set and the dividend."""
    zero = b == 0
    divisor = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient, remainder = a // divisor, a % divisor
    else:
        overflow = (divisor == -1) & (a == np.iinfo(a.dtype).min)
        remainder = np.where(
            overflow, a.dtype.type(0), np.fmod(a, np.where(overflow, a.dtype.type(1), divisor))
        )
        quotient = np.where(overflow, a, (a - remainder) // np.where(overflow, a.dtype.type(1), divisor))
    return np.where(zero, ~a.dtype.type(0), quotient), np.where(zero, a, remainder)


@executes("div", "rem", family="integer")
def div(site: Site) -> Step:
    """Quotient and remainder. Division by zero is unspecified by the ISA; here as GPUs do it."""
    site.accept()
    kind = site.type()
    part = int(site.instruction.opcode == "rem")
    return elementwise(site, kind, [kind, kind], lambda a, b: _truncated(a, b)[part])


@executes("min", "max", family="integer")
def minmax(site: Site) -> Step:
    """Smaller and larger; `.relu`: not below zero."""
    relu = "relu" in site.accept("relu")
    kind = site.type()
    choose: Callable[[Values, Values], Values] = (
        np.minimum if site.instruction.opcode == "min" else np.maximum
    )

    def function(a: Values, b: Values) -> Values:
        return np.maximum(choose(a, b), a.dtype.type(0)) if relu else choose(a, b)

    return elementwise(site, kind, [kind, kind], function)


@executes("abs", "neg", family="integer")
def negate(site: Site) -> Step:
    """Absolute value and negation, which leave the most negative integer as it is."""
    site.accept()
    kind = site.type()
    return elementwise(site, kind, [kind], np.abs if site.instruction.opcode == "abs" else np.negative)


@executes("sad")
def sad(site: Site) -> Step:
    """`c + |a - b|`."""
    site.accept()
    kind = site.type()
    return elementwise(site, kind, [kind] * 3, lambda a, b, c: c + np.where(a < b, b - a, a - b))


@executes("dp4a", "dp2a")
def dot(site: Site) -> Step:
    """`c` plus the products of four bytes of `a` and `b`, or of two halves of `a` and two bytes of `b`."""
    words = site.accept("lo", "hi")
    first, second = site.types
    bits = type_of("b32")

    def parts(raw: Values, word: str, width: int) -> Values:
        lane = np.dtype(f"{'i' if word[0] == 's' else 'u'}{width}")
        return np.ascontiguousarray(raw).reshape(-1, 1).view(lane).astype(np.int64)

    def function(a: Values, b: Values, c: Values) -> Values:
        a, b, c = np.broadcast_arrays(a, b, c)
        if site.instruction.opcode == "dp4a":
            left, right = parts(a, first, 1), parts(b, second, 1)
        else:
            left, right = parts(a, first, 2), parts(b, second, 1)[:, 2 * ("hi" in words) :][:, :2]
        return c + (left * right).sum(axis=1).astype(np.uint32)

    return elementwise(site, bits, [bits] * 3, function)
