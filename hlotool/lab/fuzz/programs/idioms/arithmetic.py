"""Idioms of arithmetic: what is equal for numbers, and not always for those of a type; of bits."""

from __future__ import annotations

from hlotool.ir.arrays import integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TypeClass
from hlotool.lab.fuzz.programs.draft import Declined, limit_of
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.table import BITS, INTEGERS, NUMBERS, idiom

SIGNED = frozenset({TypeClass.SIGNED, TypeClass.FLOATING})


def fill(g: Graph, x: Instruction, value: object) -> Instruction:
    """As large as `x`, with one value everywhere."""
    return g.filled(value, x.array_shape)


def corner(g: Graph, x: Instruction) -> Instruction:
    """As large as `x`, with a number that rewrites may look for."""
    return fill(g, x, g.number(x.array_shape.element_type))


def small(g: Graph, x: Instruction, limit: float) -> Instruction:
    """`x`, floats of magnitudes below `limit`."""
    kind = x.array_shape.element_type
    return g.tamed(x, min(limit, limit_of(kind) ** 0.5)) if kind.is_inexact else x


def product(g: Graph, a: Instruction, b: Instruction) -> Instruction:
    """Of numbers that do not overflow floats."""
    share = limit_of(a.array_shape.element_type) ** 0.5
    if a.array_shape.element_type.is_inexact:
        a, b = g.tamed(a, share), g.tamed(b, share)
    return g.op("multiply", a, b, reach=g.reach_of(a) * g.reach_of(b))


def total(g: Graph, opcode: str, a: Instruction, b: Instruction) -> Instruction:
    """Sum or difference of numbers that do not overflow floats."""
    if a.array_shape.element_type.is_inexact:
        a, b = (g.tamed(v, limit_of(v.array_shape.element_type) / 2) for v in (a, b))
    return g.op(opcode, a, b, reach=g.reach_of(a) + g.reach_of(b))


@idiom("abs of square", families=SIGNED)
def _abs_of_square(g: Graph, x: Instruction) -> None:
    x = small(g, x, 1e4)
    g.op("abs", product(g, x, x))


@idiom("abs of abs", families=SIGNED)
def _abs_of_abs(g: Graph, x: Instruction) -> None:
    """And of a negation, and compared with zero."""
    y = g.op("abs", g.op("negate", g.op("abs", x)) if g.chance() else x)
    g.op("compare", y, fill(g, y, 0), direction=g.word("GE LT EQ"))


@idiom("integer power", families=INTEGERS)
def _integer_power(g: Graph, x: Instruction) -> None:
    """Negative exponents and overflow have defined results."""
    low = -1 if x.array_shape.element_type.is_signed else 0
    g.op("power", x, fill(g, x, g.choose([low, 0, 1, 2, 3, 4])))


@idiom("negate of negate", families=NUMBERS)
def _negate_of_negate(g: Graph, x: Instruction) -> None:
    if x.array_shape.element_type.is_unsigned and g.chance():
        raise Declined("seldom")
    g.op("negate", g.op("negate", x))


@idiom("difference with itself", families=NUMBERS)
def _difference_with_itself(g: Graph, x: Instruction) -> None:
    """Zero, but for infinities."""
    g.op(g.word("subtract xor") if x.array_shape.element_type.is_integer else "subtract", x, x)


@idiom("divide by constant", families=NUMBERS)
def _divide_by_constant(g: Graph, x: Instruction) -> None:
    """A shift or a multiplication, where it is exact; signed division rounds to zero."""
    kind = x.array_shape.element_type
    if kind.is_integer:
        low, high = integer_limits(kind)
        options = [
            1,
            2,
            3,
            4,
            5,
            7,
            8,
            16,
            high,
            high // 2 + 1,
            *([-1, -2, -3, low] if kind.is_signed else []),
        ]
        divisor: float = g.choose([n for n in options if low <= n <= high and n])
    else:
        x = small(g, x, limit_of(kind) / 8)
        divisor = g.choose([1.0, 2.0, 0.5, 3.0, -1.0, -4.0, 1.5])
    g.op("divide", x, fill(g, x, divisor), reach=g.reach_of(x) * 2)


@idiom("remainder by constant", families=INTEGERS)
def _remainder_by_constant(g: Graph, x: Instruction) -> None:
    """A mask, for powers of two and what is not negative."""
    kind = x.array_shape.element_type
    low, high = integer_limits(kind)
    options = [1, 2, 4, 8, 3, 5, high, *([-1, -4, low] if kind.is_signed else [])]
    g.op("remainder", x, fill(g, x, g.choose([n for n in options if low <= n <= high and n])))


@idiom("remainder of remainder", families=INTEGERS, bits=8)
def _remainder_of_remainder(g: Graph, x: Instruction) -> None:
    a, b = g.choose([2, 4, 6, 8, 12]), g.choose([2, 3, 4, 6, 8])
    y = g.op("remainder", x, fill(g, x, a))
    if g.chance(0.4):
        y = g.op("add", y, fill(g, x, a))
    g.op("remainder", y, fill(g, x, b))


@idiom("remainder of iota", 1, INTEGERS, bits=8)
def _remainder_of_iota(g: Graph, x: Instruction) -> None:
    """And of an iota and a multiple: what loops over tiles compute."""
    shape = x.array_shape
    y = g.iota(shape.element_type, shape.dims, g.rng.randrange(shape.rank))
    n = g.choose([2, 3, 4, 5])
    if g.chance():
        y = g.op("add", y, g.op("multiply", x, fill(g, x, n)))
    g.op(g.word("remainder divide"), y, fill(g, x, n))


@idiom("quotient times divisor", families=INTEGERS)
def _quotient_times_divisor(g: Graph, x: Instruction) -> None:
    """With the remainder added it is the number again."""
    kind = x.array_shape.element_type
    d = fill(g, x, min(g.choose([2, 3, 4, 7]), integer_limits(kind)[1]))
    y = g.op("multiply", g.op("divide", x, d), d)
    if g.chance():
        g.op(g.word("add subtract"), y if g.chance() else x, g.op("remainder", x, d))


@idiom("divide of divide", families=NUMBERS)
def _divide_of_divide(g: Graph, x: Instruction) -> None:
    kind = x.array_shape.element_type
    a, b = (g.choose([2, 3, 4, 8, 16]) for _ in range(2))
    most = integer_limits(kind)[1] if kind.is_integer else 100
    y = g.op("divide", x, fill(g, x, min(a, most)))
    g.op("divide", y, fill(g, x, min(b, most)))


@idiom("common factor", families=NUMBERS)
def _common_factor(g: Graph, x: Instruction) -> None:
    """Sum of two products with a factor in common."""
    factor = fill(g, x, g.choose([1, 2, 3])) if g.chance() else g.like(x)
    y = g.like(x)
    total(g, g.word("add subtract"), product(g, x, factor), product(g, factor, y))


@idiom("constants folded together", families=NUMBERS)
def _constants_folded(g: Graph, x: Instruction) -> None:
    """(x + a) + b, (x - a) + b, a - (b - x), (x * a) * b."""
    a, b = corner(g, x), corner(g, x)
    form = g.rng.randrange(4)
    if form == 0:
        total(g, "add", total(g, "add", x, a), b)
    elif form == 1:
        total(g, "add", total(g, "subtract", x, a), b)
    elif form == 2:
        total(g, "subtract", a, total(g, "subtract", b, x))
    else:
        product(g, product(g, x, a), b)


@idiom("neutral element", families=NUMBERS)
def _neutral_element(g: Graph, x: Instruction) -> None:
    """Zero added, one multiplied, zero multiplied; negative zero is another matter."""
    opcode, value = g.choose([("add", 0), ("subtract", 0), ("multiply", 1), ("multiply", 0), ("divide", 1)])
    operands = [x, fill(g, x, value)]
    if opcode in ("add", "multiply") and g.chance():
        operands.reverse()
    g.op(opcode, *operands, reach=g.reach_of(x))


@idiom("sum of a value and its negation", families=NUMBERS)
def _sum_with_negation(g: Graph, x: Instruction) -> None:
    y = g.like(x)
    total(g, g.word("add subtract"), y, g.op("negate", x))


@idiom("clamp of clamp", families=NUMBERS)
def _clamp_of_clamp(g: Graph, x: Instruction) -> None:
    """Of intervals that meet, or do not."""
    kind = x.array_shape.element_type

    def bound() -> Instruction:
        return g.constant(g.choose([0, 1, 2, 5, -1, -3] if kind.family in SIGNED else [0, 1, 2, 3]), kind)

    y = g.op("clamp", bound(), x, bound())
    if g.chance(0.3):
        y = g.op(g.word("maximum minimum"), y, corner(g, y))
    g.op("clamp", bound(), y, bound())


@idiom("minimum of maximum", families=NUMBERS)
def _minimum_of_maximum(g: Graph, x: Instruction) -> None:
    """With constants, or absorbing: min(x, max(x, y))."""
    y = g.like(x) if g.chance() else corner(g, x)
    inner = g.op("maximum", x, y)
    other = x if g.chance(0.4) else corner(g, x)
    g.op("minimum", other, inner)


@idiom("sign times abs", families=SIGNED)
def _sign_times_abs(g: Graph, x: Instruction) -> None:
    g.op("multiply", g.op("sign", x), g.op("abs", x), reach=g.reach_of(x))


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
