"""Idioms of bits: shifts, masks, counts."""

from __future__ import annotations

from hlotool.fuzz.programs.draft import Declined
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.idioms.arithmetic import corner, fill
from hlotool.fuzz.programs.idioms.table import BITS, INTEGERS, NUMBERS, idiom
from hlotool.ir.dtypes import integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType


@idiom("shift back and forth", families=INTEGERS)
def _shift_back_and_forth(g: Graph, x: Instruction) -> None:
    """A mask, or a sign extension; amounts at and beyond the width have defined results."""
    kind = x.array_shape.element_type
    amounts = [0, 1, 2, kind.bits - 1, kind.bits, kind.bits + 1]
    amounts = [a for a in amounts if a <= integer_limits(kind)[1]]
    first = fill(g, x, g.choose(amounts))
    second = first if g.chance(0.6) else fill(g, x, g.choose(amounts))
    shifts = ["shift-left", g.word("shift-right-logical shift-right-arithmetic")]
    if g.chance(0.4):
        shifts.reverse()
    g.op(shifts[1], g.op(shifts[0], x, first), second)


@idiom("multiply by power of two", families=INTEGERS)
def _multiply_by_power_of_two(g: Graph, x: Instruction) -> None:
    low, high = integer_limits(x.array_shape.element_type)
    y = g.op("multiply", x, fill(g, x, g.choose([n for n in (1, 2, 4, 64, high // 2 + 1, low) if n])))
    g.op(g.word("divide shift-right-logical"), y, fill(g, x, 1))


@idiom("masks of masks", families=BITS)
def _masks_of_masks(g: Graph, x: Instruction) -> None:
    """and of or, xor of xor, with the same operand or constants."""
    y = g.like(x) if g.chance() else corner(g, x)
    inner = g.op(g.word("and or xor"), x, y)
    other = g.choose([x, y]) if g.chance(0.6) else corner(g, x)
    g.op(g.word("and or xor"), other, g.op("not", inner) if g.chance(0.3) else inner)


@idiom("de Morgan", families=BITS)
def _de_morgan(g: Graph, x: Instruction) -> None:
    y = g.like(x)
    g.op("not", g.op(g.word("and or"), g.op("not", x), g.op("not", y) if g.chance(0.7) else y))


@idiom("bitcast there and back", families=NUMBERS, bits=8)
def _bitcast_there_and_back(g: Graph, x: Instruction) -> None:
    """Sign bits are set and cleared between."""
    shape = x.array_shape
    bits = ElementType(f"u{shape.element_type.bits}")
    if shape.element_type is bits:
        raise Declined("nothing changes")
    y = g.op("bitcast-convert", x, shape=ArrayShape(bits, shape.dims))
    mask = 1 << (bits.bits - 1)
    y = g.op(g.word("and xor"), y, fill(g, y, g.choose([mask - 1, mask])))
    g.op("bitcast-convert", y, shape=shape, reach=g.reach_of(x))


@idiom("counts of bits", families=INTEGERS)
def _counts_of_bits(g: Graph, x: Instruction) -> None:
    """popcnt(x & (x - 1)), clz of a shift."""
    one = fill(g, x, 1)
    if g.chance():
        g.op("popcnt", g.op("and", x, g.op("subtract", x, one)))
    else:
        g.op("count-leading-zeros", g.op(g.word("shift-right-logical shift-left"), x, one))
