"""Idioms of comparisons, choices, conversions and functions of floats."""

from __future__ import annotations

from hlotool.ir.arrays import integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.fuzz.programs.draft import Declined, typed
from hlotool.lab.fuzz.programs.graph import Graph, castable
from hlotool.lab.fuzz.programs.idioms.arithmetic import corner, fill, product, small, total
from hlotool.lab.fuzz.programs.idioms.table import FLOATS, INTEGERS, NUMBERS, idiom
from hlotool.lab.fuzz.programs.steps_elementwise import FUNCTION_TYPES, at_least, of_types


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
    kind = g.preferences.kind(g.rng)
    if kind.is_complex or not castable(x.array_shape, kind):
        raise Declined("no such conversion")
    y = g.convert(x, kind)
    g.convert(y, source if g.chance(0.7) else g.choose(typed("s32", "u8", "s64")))


@idiom("floor of convert", families=NUMBERS)
def _floor_of_convert(g: Graph, x: Instruction) -> None:
    """Rounding of what is whole already, or was rounded."""
    if g.preferences.integers_only:
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


@idiom("sqrt of square", families=FLOATS)
def _sqrt_of_square(g: Graph, x: Instruction) -> None:
    x = of_types(g, x, FUNCTION_TYPES)
    x = small(g, x, 1e2)
    g.op("sqrt", product(g, x, x), reach=1e2)


@idiom("square of sqrt", families=FLOATS)
def _square_of_sqrt(g: Graph, x: Instruction) -> None:
    x = of_types(g, x, FUNCTION_TYPES)
    y = g.op("sqrt", at_least(g, small(g, x, 1e4), 0.0), reach=1e2)
    product(g, y, y)


@idiom("power with constant exponent", families=FLOATS)
def _power_with_constant(g: Graph, x: Instruction) -> None:
    x = of_types(g, x, FUNCTION_TYPES)
    base = at_least(g, small(g, x, 4.0), 0.25) if g.chance(0.7) else small(g, x, 4.0)
    g.op("power", base, fill(g, base, g.choose([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5])), reach=64.0)


@idiom("exp of log", families=FLOATS)
def _exp_of_log(g: Graph, x: Instruction) -> None:
    x = of_types(g, x, FUNCTION_TYPES)
    y = at_least(g, small(g, x, 100.0), 1 / 16)
    if g.chance():
        g.op("exponential", g.op("log", y, reach=5.0), reach=100.0)
    else:
        g.op("log", g.op("exponential", small(g, x, 8.0), reach=3e3), reach=8.0)


@idiom("product of exponentials", families=FLOATS)
def _product_of_exponentials(g: Graph, x: Instruction) -> None:
    x = of_types(g, x, FUNCTION_TYPES)
    a = g.op("exponential", small(g, x, 3.0), reach=21.0)
    b = g.op("exponential", small(g, g.like(x), 3.0), reach=21.0)
    g.op(g.word("multiply divide"), a, b, reach=441.0)


@idiom("divide by sqrt", families=FLOATS)
def _divide_by_sqrt(g: Graph, x: Instruction) -> None:
    """A product with rsqrt; also one over sqrt, and x over sqrt(x)."""
    x = of_types(g, x, FUNCTION_TYPES)
    d = at_least(g, small(g, x, 100.0), 0.25)
    y = g.choose([d, fill(g, x, 1.0), small(g, g.like(x), 100.0)])
    g.op("divide", y, g.op(g.word("sqrt rsqrt cbrt"), d, reach=10.0), reach=1e3)


@idiom("divide of a quotient", families=FLOATS)
def _divide_of_a_quotient(g: Graph, x: Instruction) -> None:
    """a / (b / c), (a / b) / c."""
    x = of_types(g, x, FUNCTION_TYPES)
    a, b, c = (
        small(g, x, 10.0),
        at_least(g, small(g, g.like(x), 10.0), 0.5),
        at_least(g, small(g, x, 10.0), 0.5),
    )
    if g.chance():
        g.op("divide", a, g.op("divide", b, c, reach=20.0), reach=200.0)
    else:
        g.op("divide", g.op("divide", a, b, reach=20.0), c, reach=40.0)


@idiom("parts of a complex number", families=FLOATS)
def _parts_of_a_complex(g: Graph, x: Instruction) -> None:
    """real(complex(a, b)), and the magnitude of a real number."""
    x = of_types(g, x, frozenset(typed("f32", "f64")))
    z = g.op("complex", small(g, x, 1e3), small(g, g.like(x), 1e3))
    if g.chance():
        z = g.op("negate", z)
    g.op(g.word("real imag abs"), z, reach=2e3)


@idiom("precision reduced twice", families=FLOATS)
def _precision_reduced_twice(g: Graph, x: Instruction) -> None:
    x = of_types(g, x, FUNCTION_TYPES)
    x = small(g, x, 100.0)
    first, second = (g.choose([(8, 7), (5, 10), (8, 23), (8, 3), (11, 20)]) for _ in range(2))
    y = g.op("reduce-precision", x, exponent_bits=first[0], mantissa_bits=first[1])
    g.op("reduce-precision", y, exponent_bits=second[0], mantissa_bits=second[1])


@idiom("tanh as logistic", families=FLOATS)
def _tanh_as_logistic(g: Graph, x: Instruction) -> None:
    """One over one plus exp of the negation, and 0.5 + 0.5 * tanh(0.5 * x)."""
    x = of_types(g, x, FUNCTION_TYPES)
    x = small(g, x, 8.0)
    if g.chance():
        denominator = g.op(
            "add", fill(g, x, 1.0), g.op("exponential", g.op("negate", x), reach=3e3), reach=3e3
        )
        g.op("divide", fill(g, x, 1.0), denominator, reach=1.0)
        return
    half = fill(g, x, 0.5)
    y = g.op("tanh", g.op("multiply", half, x), reach=1.0)
    g.op("add", half, g.op("multiply", half, y), reach=1.0)


def _hidden(g: Graph, x: Instruction, value: int) -> Instruction:
    """0 or 1 everywhere, which a compiler may find out late: two equal comparisons, combined."""
    y = g.like(x)
    direction = g.word("LT GE EQ NE")
    one, other = (g.op("compare", x, y, direction=direction) for _ in range(2))
    form = g.word("xor and compare select")
    if form == "xor":
        zero = g.op("xor", one, other)
    elif form == "and":
        zero = g.op("and", one, g.op("not", other))
    elif form == "compare":
        zero = g.op("compare", one, other, direction="NE")
    else:
        zero = g.op("select", one, g.op("not", other), other)
    bits = g.op("not", zero) if value else zero
    return g.op("convert", bits, shape=ArrayShape(x.array_shape.element_type, x.array_shape.dims), reach=1.0)


@idiom("function of a hidden constant", families=FLOATS)
def _function_of_a_hidden_constant(g: Graph, x: Instruction) -> None:
    """Where functions have their corners: what is folded late is folded by other code than what runs."""
    x = of_types(g, x, FUNCTION_TYPES)
    a = _hidden(g, x, g.choose([0, 0, 1]))
    of_two, of_one = "atan2 power remainder divide", "sqrt log-plus-one exponential-minus-one sine tanh sign"
    opcode = g.word(of_two if g.chance(0.6) else of_one)
    if opcode in ("atan2", "power"):
        b = g.choose([a, a, _hidden(g, x, g.choose([0, 1])), small(g, x, 4.0)])
        g.op(opcode, a, b, reach=4.0)
    elif opcode in ("remainder", "divide"):
        g.op(opcode, a, at_least(g, small(g, x, 4.0), 0.25), reach=4.0)
    else:
        g.op(opcode, a, reach=4.0)
