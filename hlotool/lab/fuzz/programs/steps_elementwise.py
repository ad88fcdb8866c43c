"""Steps of random graphs: elementwise operations and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, OpcodeRow, Trait
from hlotool.ir.types import ArrayShape, ElementType, TypeClass
from hlotool.lab.fuzz.programs.draft import Declined, limit_of, typed
from hlotool.lab.fuzz.programs.graph import Graph, castable, step
from hlotool.lab.fuzz.programs.limits import compiles

_INTEGERS = frozenset({TypeClass.SIGNED, TypeClass.UNSIGNED})
_FLOATS = frozenset({TypeClass.FLOATING})


def _families(row: OpcodeRow) -> frozenset[TypeClass]:
    """Families of types that an operation takes: XLA checks less of shifts and extrema than it compiles."""
    integers = _INTEGERS if Trait.INTEGER in row.traits else row.families
    return integers & row.families - ({TypeClass.COMPLEX} if Trait.EXTREMUM in row.traits else set())


_DRAWN = [row for row in OPCODES.values() if row.families and not row.attributes]
#: Families of types that an operation of one operand takes.
UNARY: Mapping[str, frozenset[TypeClass]] = {
    row.name: _families(row) for row in _DRAWN if row.max_operands == 1
}
#: The same of two operands.
BINARY: Mapping[str, frozenset[TypeClass]] = {
    row.name: _families(row)
    for row in _DRAWN
    if (row.max_operands == 2 and row.traits & {Trait.ASSOCIATIVE, Trait.SHIFTS}) or row.name == "subtract"
}


def of_families(graph: Graph, x: Instruction, families: frozenset[TypeClass]) -> Instruction:
    """`x`, or something else whose type is of one of the families."""
    if x.array_shape.element_type.family in families:
        return x
    found = graph.pick(lambda s: s.element_type.family in families)
    if found is not None:
        return found
    kind = graph.kind(families)
    if not castable(x.array_shape, kind):
        raise Declined("there is no operand of the type")
    return graph.convert(x, kind)


@step(*UNARY)
def unary(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """One operand."""
    return graph.op(opcode, of_families(graph, x, UNARY[opcode]))


@step(*BINARY)
def binary(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Two operands of one shape; floats that would overflow are scaled down."""
    x = of_families(graph, x, BINARY[opcode])
    y = x if graph.chance(0.08) else graph.like(x)
    if graph.chance():
        x, y = y, x
    kind = x.array_shape.element_type
    if not kind.is_inexact:
        return graph.op(opcode, x, y)
    limit = limit_of(kind)
    share = limit**0.5 if opcode == "multiply" else limit / 2
    x, y = graph.tamed(x, share), graph.tamed(y, share)
    a, b = graph.reach_of(x), graph.reach_of(y)
    reach = a * b if opcode == "multiply" else a + b if opcode in ("add", "subtract") else max(a, b)
    return graph.op(opcode, x, y, reach=reach)


@step("compare")
def compare(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Any direction; of floats also the total order."""
    kind = x.array_shape.element_type
    directions = "EQ NE" if kind.is_complex else "EQ NE LT LE GT GE"
    direction, y = graph.word(directions), graph.like(x)
    if kind.is_floating and graph.chance(0.2):
        return graph.op(opcode, x, y, direction=direction, type="TOTALORDER")
    return graph.op(opcode, x, y, direction=direction)


@step("select")
def select(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """By a predicate for each element, or for all."""
    dims = () if graph.chance(0.2) else x.array_shape.dims
    return graph.op(opcode, graph.array(ElementType.PRED, dims), x, graph.like(x))


@step("convert")
def convert(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """To any type."""
    kind = graph.preferences.kind(graph.rng)
    if not castable(x.array_shape, kind) or kind is x.array_shape.element_type:
        raise Declined("no such conversion")
    return graph.convert(x, kind)


@step("clamp")
def clamp(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Between limits for each element, or for all."""
    x = of_families(graph, x, _INTEGERS | _FLOATS)
    shape: ArrayShape = x.array_shape
    dims = () if graph.chance() else shape.dims
    low, high = (graph.array(shape.element_type, dims) for _ in range(2))
    return graph.op(opcode, low, x, high)


#: Narrower floats are computed in wider ones and rounded twice, differently by each library.
FUNCTION_TYPES = frozenset(typed("f16", "bf16", "f32", "f64"))
_COMPLEX = frozenset(typed("c64", "c128"))

#: How many integers are divided by what may be zero. XLA has a result for that, but its constant folding
#: dies of it (SIGFPE, jaxlib 0.10).
_BY_ZERO = 0.04

#: How many functions are computed where they are not finite.
_UNTAMED = 0.05


@dataclass(frozen=True)
class _Domain:
    """Where a function is drawn.

    Attributes:
        most: largest magnitude of the operand.
        result: bound on the magnitude of the result for such an operand.
        least: smallest value of the operand; None where it may be negative.
    """

    most: float
    result: float
    least: float | None = None


_DOMAINS: Mapping[str, _Domain] = {
    "exponential": _Domain(4, exp(4)),
    "exponential-minus-one": _Domain(4, exp(4)),
    "log": _Domain(1e3, log(1e3) + 4, 1 / 16),
    "log-plus-one": _Domain(1e3, log(1e3) + 1, 0.0),
    "sqrt": _Domain(1e4, 1e2, 0.0),
    "rsqrt": _Domain(1e3, 4, 1 / 16),
    "cbrt": _Domain(1e3, 10),
    "tanh": _Domain(20, 1),
    "logistic": _Domain(20, 1),
    "erf": _Domain(20, 1),
    "sine": _Domain(100, 1),
    "cosine": _Domain(100, 1),
    "tan": _Domain(1, 1.6),
    "asin": _Domain(0.9, 1.2),
    "acos": _Domain(0.9, 3.2),
    "asinh": _Domain(1e3, 8),
    "acosh": _Domain(1e3, 8, 1.0),
    "atanh": _Domain(0.9, 1.5),
    "sinh": _Domain(4, 28),
    "cosh": _Domain(4, 28),
}

#: Complex functions grow in both directions: their operands are kept near the origin.
_COMPLEX_MOST = 2.0


def of_types(graph: Graph, x: Instruction, types: frozenset[ElementType]) -> Instruction:
    """`x`, or something else of one of the types, or `x` converted to one."""
    if graph.preferences.integers_only:
        raise Declined("there are only integers")
    if x.array_shape.element_type in types:
        return x
    found = graph.pick(lambda s: s.element_type in types)
    if found is not None:
        return found
    if x.array_shape.element_type is ElementType.F8E8M0FNU:
        raise Declined("nothing converts it")
    return graph.convert(x, graph.choose([t for t in typed("f32", "f64", "bf16", "f16") if t in types]))


def at_least(graph: Graph, x: Instruction, least: float) -> Instruction:
    """A float array whose magnitudes are those of `x`, all of them `least` or more."""
    shape = x.array_shape
    size = graph.op("abs", x)
    if not least:
        return size
    return graph.op("maximum", size, graph.filled(least, shape), reach=max(least, graph.reach_of(x)))


@step(*_DOMAINS)
def function(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """One operand."""
    domain = _DOMAINS[opcode]
    x = of_types(graph, x, frozenset(k for k in FUNCTION_TYPES | _COMPLEX if compiles(opcode, k)))
    kind = x.array_shape.element_type
    if graph.chance(_UNTAMED):
        return graph.op(opcode, x, reach=float("inf"))
    most = min(domain.most, limit_of(kind))
    if kind.is_complex:
        x = graph.tamed(x, min(most, _COMPLEX_MOST))
        return graph.op(opcode, x, reach=max(domain.result, 16.0))
    x = graph.tamed(x, most)
    if domain.least is not None:
        x = at_least(graph, x, domain.least)
    return graph.op(opcode, x, reach=domain.result)


@step("divide", "remainder")
def divide(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """By numbers away from zero."""
    return _quotient(graph, x, lambda a, b: graph.op(opcode, a, b, reach=4 * graph.reach_of(a)))


def _quotient(
    graph: Graph, x: Instruction, make: Callable[[Instruction, Instruction], Instruction]
) -> Instruction:
    kind = x.array_shape.element_type
    if kind is ElementType.PRED or kind is ElementType.F8E8M0FNU:
        raise Declined("nothing to divide")
    y = graph.like(x)
    if kind.is_integer:
        if not graph.chance(_BY_ZERO):
            y = graph.op("or", y, graph.filled(1, y.array_shape))
    elif kind.is_floating and not graph.chance(_UNTAMED):
        x = graph.tamed(x, limit_of(kind) / 4)
        y = at_least(graph, y, 0.25)
    elif kind.is_complex:
        # Away from zero is said of one part: a constant.
        y = graph.filled(graph.choose([2.0, 1j, 1 - 1j, -0.5]), x.array_shape)
    return make(x, y)


@step("power")
def power(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Floats near one to small powers, integers to small ones."""
    kind = x.array_shape.element_type
    if kind.is_integer:
        return graph.op(opcode, x, graph.filled(graph.choose([0, 1, 2, 3, 5]), x.array_shape))
    x = of_types(graph, x, FUNCTION_TYPES)
    shape = x.array_shape
    base = at_least(graph, graph.tamed(x, 4.0), 0.25)
    if graph.chance():
        exponent = graph.filled(graph.choose([0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5]), shape)
    else:
        exponent = graph.tamed(graph.like(x), 3.0)
    return graph.op(opcode, base, exponent, reach=64.0)


@step("atan2")
def atan2(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Two floats."""
    x = of_types(graph, x, FUNCTION_TYPES)
    return graph.op(opcode, x, graph.like(x), reach=3.2)


@step("complex")
def make_complex(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Of two real arrays."""
    x = of_types(graph, x, frozenset(typed("f32", "f64")))
    return graph.op(opcode, x, graph.like(x))


@step("reduce-precision")
def reduce_precision(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """To formats that there are, and others."""
    x = of_types(graph, x, FUNCTION_TYPES)
    exponent, mantissa = graph.choose([(8, 7), (5, 10), (8, 23), (5, 2), (4, 3), (11, 52), (6, 5), (8, 0)])
    most = 2.0 ** (2 ** (exponent - 1) - 2)
    x = graph.tamed(x, min(most, limit_of(x.array_shape.element_type)))
    return graph.op(opcode, x, exponent_bits=exponent, mantissa_bits=mantissa)


@step("stochastic-convert")
def stochastic_convert(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """With random bits that are values of the program."""
    x = of_types(graph, x, FUNCTION_TYPES)
    shape = x.array_shape
    noise = graph.array(ElementType(f"u{shape.element_type.bits}"), shape.dims)
    target = graph.choose(typed("s8", "s16", "s32", "s64"))
    return graph.op(opcode, graph.tamed(x, 100.0), noise, shape=ArrayShape(target, shape.dims))
