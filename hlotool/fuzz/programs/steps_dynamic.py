"""Steps of random graphs: dimensions whose size is known only at run time.

XLA's compiler pads what is dynamic, and has no rule for many operations on it. Sizes are therefore set,
passed on by operations that it has rules for, and turned into static arrays again before anybody else sees
them.
"""

from __future__ import annotations

from hlotool.fuzz.programs.draft import Declined
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.steps import step
from hlotool.fuzz.programs.steps_reduction import reducers_of, summands
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType
from hlotool.values.monoids import neutral


def _size(graph: Graph, bound: int) -> Instruction:
    """A number from 0 to `bound`: a constant, or computed."""
    if graph.chance(0.4):
        return graph.constant(graph.rng.randint(0, bound), ElementType.S32)
    zero, most = graph.constant(0, ElementType.S32), graph.constant(bound, ElementType.S32)
    return graph.op("clamp", zero, graph.array(ElementType.S32, ()), most)


@step("set-dimension-size")
def set_dimension_size(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Cut at run time, computed with, and combined along the dimension, or asked for its size."""
    shape = x.array_shape
    if not shape.rank or not shape.size or shape.element_type.bits < 8:
        raise Declined("nothing to cut")
    kind = shape.element_type
    axis = graph.rng.randrange(shape.rank)
    reach = graph.reach_of(x)
    cut = graph.op(opcode, x, _size(graph, shape.dims[axis]), dimensions=(axis,), reach=reach)
    if graph.chance(0.4) and kind is not ElementType.PRED:
        cut = graph.op("negate", cut)
    if graph.chance(0.3):
        order = tuple(graph.rng.sample(range(shape.rank), shape.rank))
        cut, axis = graph.op("transpose", cut, dimensions=order), order.index(axis)
    if graph.chance(0.3):
        return graph.op("get-dimension-size", cut, dimensions=(axis,))
    combine = graph.word(reducers_of(kind))
    init = graph.constant(neutral(combine, kind), kind)
    (cut, init), reach = summands(graph, combine, shape.size, cut, init)
    axes = tuple(sorted({axis, *(d for d in range(shape.rank) if graph.chance(0.3))}))
    to_apply = graph.combiner(combine, kind)
    return graph.op("reduce", cut, init, dimensions=axes, to_apply=to_apply, reach=reach)


@step("get-dimension-size")
def get_dimension_size(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Of an array of known size."""
    rank = x.array_shape.rank
    if not rank:
        raise Declined("a scalar has no dimensions")
    return graph.op(opcode, x, dimensions=(graph.rng.randrange(rank),))
