"""Idioms of functions of floats."""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.lab.fuzz.programs.draft import typed
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.arithmetic import fill, product, small
from hlotool.lab.fuzz.programs.idioms.table import FLOATS, idiom
from hlotool.lab.fuzz.programs.steps_elementwise import FUNCTION_TYPES, at_least, of_types


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
