"""Steps of random graphs: operations element by element."""

from __future__ import annotations

from collections.abc import Mapping

from hlotool.fuzz.programs.draft import Declined, limit_of
from hlotool.fuzz.programs.graph import Graph, castable
from hlotool.fuzz.programs.steps import step
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, OpcodeRow, Trait
from hlotool.ir.types import ArrayShape, ElementType, TypeClass

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
    kind = graph.taste.kind(graph.rng)
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
