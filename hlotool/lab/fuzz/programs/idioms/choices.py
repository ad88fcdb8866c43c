"""Idioms of comparisons, choices and conversions."""

from __future__ import annotations

from hlotool.ir.arrays import integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.fuzz.programs.draft import Declined, typed
from hlotool.lab.fuzz.programs.graph import Graph, castable
from hlotool.lab.fuzz.programs.idioms.arithmetic import corner, fill, total
from hlotool.lab.fuzz.programs.idioms.table import INTEGERS, NUMBERS, idiom


@idiom("not of compare", families=NUMBERS)
def _not_of_compare(g: Graph, x: Instruction) -> None:
    """NaN makes both false."""
    y = g.op("not", g.op("compare", x, g.like(x), direction=g.word("LT LE GT GE EQ NE")))
    g.op("not", y) if g.chance(0.3) else g.op("convert", y, shape=ArrayShape(ElementType.S32, y.dims))


@idiom("compare with a limit", families=INTEGERS)
def _compare_with_a_limit(g: Graph, x: Instruction) -> None:
    """Always true or never; or nearly."""
    low, high = integer_limits(x.array_shape.element_type)
    y = fill(g, x, g.choose([low, high, low + 1, high - 1, 0]))
    pair = (x, y) if g.chance() else (y, x)
    g.op("compare", *pair, direction=g.word("LT LE GT GE EQ NE"))


@idiom("compare of sums", families=INTEGERS)
def _compare_of_sums(g: Graph, x: Instruction) -> None:
    """x + a < b is not x < b - a where it overflows."""
    y = g.op(g.word("add subtract multiply"), x, corner(g, x))
    g.op("compare", y, g.choose([x, corner(g, x)]), direction=g.word("LT LE GT GE EQ NE"))


@idiom("compare of converts", families=INTEGERS)
def _compare_of_converts(g: Graph, x: Instruction) -> None:
    """In a wider type, or in one of another sign."""
    kind = g.choose(typed("s32", "u32", "s64", "s8", "u8"))
    a, b = g.convert(x, kind), g.convert(g.like(x), kind)
    g.op("compare", a, b if g.chance() else corner(g, a), direction=g.word("LT LE GT GE EQ NE"))


@idiom("compare of a pred")
def _compare_of_a_pred(g: Graph, x: Instruction) -> None:
    """And of its conversion to a number."""
    p = g.array(ElementType.PRED, x.array_shape.dims)
    if g.chance():
        g.op("compare", p, fill(g, p, g.chance()), direction=g.word("EQ NE LT GE"))
        return
    n = g.op("convert", p, shape=ArrayShape(g.choose(typed("s32", "u8", "s64")), p.dims))
    g.op("compare", n, fill(g, n, g.choose([0, 1, 2])), direction=g.word("EQ NE LT GE GT LE"))


@idiom("select of compare")
def _select_of_compare(g: Graph, x: Instruction) -> None:
    """The operands of the comparison chosen: a minimum, a maximum, or one of them."""
    y = g.like(x) if g.chance(0.7) else corner(g, x)
    kind = x.array_shape.element_type
    p = g.op("compare", x, y, direction=g.word("EQ NE") if kind.is_complex else g.word("EQ NE LT LE GT GE"))
    pair = (x, y) if g.chance() else (y, x)
    g.op("select", p, *pair)


@idiom("select of select")
def _select_of_select(g: Graph, x: Instruction) -> None:
    """By the same predicate, or its negation."""
    p = g.array(ElementType.PRED, x.array_shape.dims)
    y, z = g.like(x), g.like(x)
    inner = g.op("select", p, x, y)
    q = p if g.chance(0.6) else g.op("not", p)
    g.op("select", q, *((inner, z) if g.chance() else (z, inner)))


@idiom("select by a constant")
def _select_by_a_constant(g: Graph, x: Instruction) -> None:
    p = fill(g, g.array(ElementType.PRED, x.array_shape.dims), g.chance())
    g.op("select", p, x, g.like(x))


@idiom("select of preds")
def _select_of_preds(g: Graph, x: Instruction) -> None:
    """An and, an or, a negation."""
    p = g.array(ElementType.PRED, x.array_shape.dims)
    q = g.like(p)
    a, b = (g.choose([fill(g, p, True), fill(g, p, False), q, p]) for _ in range(2))
    g.op("select", p, a, b)


@idiom("select of equal branches under arithmetic", families=NUMBERS)
def _select_moved(g: Graph, x: Instruction) -> None:
    """select(p, a + b, a + c)."""
    p = g.array(ElementType.PRED, x.array_shape.dims)
    y, z = g.like(x), corner(g, x)
    opcode = g.word("add subtract maximum")
    g.op("select", p, total(g, opcode, x, y), total(g, opcode, x, z))


@idiom("conversion there and back")
def _conversion_there_and_back(g: Graph, x: Instruction) -> None:
    """Through a narrower type it is not the identity."""
    source = x.array_shape.element_type
    if source.is_complex:
        raise Declined("of numbers that have one part")
    kind = g.taste.kind(g.rng)
    if kind.is_complex or not castable(x.array_shape, kind):
        raise Declined("no such conversion")
    y = g.convert(x, kind)
    g.convert(y, source if g.chance(0.7) else g.choose(typed("s32", "u8", "s64")))


@idiom("floor of convert", families=NUMBERS)
def _floor_of_convert(g: Graph, x: Instruction) -> None:
    """Rounding of what is whole already, or was rounded."""
    if g.taste.integers_only:
        raise Declined("there are only integers")
    y = g.convert(x, ElementType.F32)
    rounds = "floor ceil round-nearest-even round-nearest-afz"
    g.convert(g.op(g.word(rounds), g.op(g.word(rounds), y)), g.choose(typed("s32", "s64", "s16")))


@idiom("mask of iotas", 1)
def _mask_of_iotas(g: Graph, x: Instruction) -> None:
    """A triangle, a band, the first so many: compared iotas that choose elements."""
    shape = x.array_shape
    kind = g.choose(typed("s32", "s32", "u8", "s64"))
    if max(shape.dims) > 120:
        raise Declined("beyond the type")
    a = g.iota(kind, shape.dims, g.rng.randrange(shape.rank))
    if g.chance() and shape.rank > 1:
        b = g.iota(kind, shape.dims, g.rng.randrange(shape.rank))
    else:
        b = g.filled(g.choose([0, 1, 2, *shape.dims]), a.array_shape)
    p = g.op("compare", a, b, direction=g.word("LT LE GT GE EQ NE"))
    g.op("select", p, x, fill(g, x, 0))
