"""Steps of random graphs: products summed over dimensions."""

from __future__ import annotations

from math import prod

from hlotool.fuzz.programs.draft import Declined, Dims, limit_of
from hlotool.fuzz.programs.graph import Graph
from hlotool.fuzz.programs.limits import compiles
from hlotool.fuzz.programs.steps import step
from hlotool.fuzz.programs.steps_reduction import positions, random_window
from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions
from hlotool.ir.module import Instruction
from hlotool.ir.shape_inference import infer_shape
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType

#: Result types other than the operands' own.
_WIDER = {
    "s8": "s32",
    "u8": "s32",
    "bf16": "f32",
    "f16": "f32",
    "f8e4m3fn": "f32",
    "f8e5m2": "f32",
    "s4": "s8",
}


def _factors(
    graph: Graph, x: Instruction, y: Instruction, terms: int, kind: ElementType
) -> tuple[Instruction, Instruction, float]:
    """Both such that `terms` products of their elements add up to a finite `kind`, and a bound on that."""
    limit = min(limit_of(kind), limit_of(x.array_shape.element_type))
    share = (limit / max(terms, 1)) ** 0.5
    x, y = graph.tamed(x, share), graph.tamed(y, share)
    return x, y, max(terms, 1) * graph.reach_of(x) * graph.reach_of(y)


def _result_type(graph: Graph, kind: ElementType) -> ElementType:
    wider = _WIDER.get(kind.value)
    return ELEMENT_TYPES[wider] if wider is not None and graph.chance() else kind


@step("dot")
def dot(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Any number of batch, contracting and free dimensions, in any order."""
    if not compiles(opcode, x.array_shape.element_type) or x.array_shape.rank > 4:
        raise Declined("not multiplied")
    shape = x.array_shape
    order = graph.rng.sample(range(shape.rank), shape.rank)
    batch = order[: graph.choose([0, 0, 0, 1, 2])]
    contracting = order[len(batch) :][: graph.choose([0, 1, 1, 1, 2])]
    named = [("batch", d, shape.dims[d]) for d in batch] + [("sum", d, shape.dims[d]) for d in contracting]
    named += [("free", n, graph.choose([1, 2, 3, 4, 5, 8])) for n in range(graph.choose([0, 1, 1, 2]))]
    placed = graph.rng.sample(named, len(named))
    where = {(role, d): position for position, (role, d, _) in enumerate(placed)}
    y = graph.array(shape.element_type, tuple(size for _, _, size in placed))
    kind = _result_type(graph, shape.element_type)
    terms = prod(shape.dims[d] for d in contracting)
    x, y, reach = _factors(graph, x, y, terms, kind)
    attributes: dict[str, AttributeValue] = {
        "lhs_contracting_dims": tuple(contracting),
        "rhs_contracting_dims": tuple(where["sum", d] for d in contracting),
    }
    if batch:
        attributes["lhs_batch_dims"] = tuple(batch)
        attributes["rhs_batch_dims"] = tuple(where["batch", d] for d in batch)
    free = [n for d, n in enumerate(shape.dims) if d not in (*batch, *contracting)]
    free += [size for role, _, size in placed if role == "free"]
    result = ArrayShape(kind, (*(shape.dims[d] for d in batch), *free))
    if result.size * max(terms, 1) > 200_000:
        raise Declined("too many products")
    if graph.chance():
        return graph.with_attributes(opcode, (x, y), attributes, result, reach)
    return _swapped(graph, opcode, (y, x), attributes, kind, reach)


def _swapped(
    graph: Graph,
    opcode: str,
    operands: tuple[Instruction, Instruction],
    attributes: dict[str, AttributeValue],
    kind: ElementType,
    reach: float,
) -> Instruction:
    """The same product with its sides exchanged."""
    other = {"lhs": "rhs", "rhs": "lhs"}
    turned = {other[name[:3]] + name[3:]: value for name, value in attributes.items()}
    ordered = {name: turned[name] for name in sorted(turned)}
    inferred = infer_shape(opcode, [o.shape for o in operands], ordered)
    assert isinstance(inferred, ArrayShape)
    return graph.with_attributes(opcode, operands, ordered, ArrayShape(kind, inferred.dims), reach)


@step("convolution")
def convolution(graph: Graph, opcode: str, x: Instruction) -> Instruction:
    """Any number of spatial dimensions, any labels, groups."""
    kind = x.array_shape.element_type
    if not compiles(opcode, kind):
        raise Declined("not multiplied")
    count = graph.choose([0, 1, 1, 2, 2])
    spatial = tuple(graph.choose([1, 2, 3, 4, 5, 7]) for _ in range(count))
    window = random_window(graph, spatial, reversal=True)
    groups, mode = graph.choose([1, 1, 1, 2, 3]), graph.choose(["feature", "batch"])
    images, features, outputs = (graph.choose([1, 1, 2, 3]) for _ in range(3))
    images *= groups if mode == "batch" else 1
    outputs *= groups
    lhs_features = features * (groups if mode == "feature" else 1)
    sizes = tuple(positions(n, d) for n, d in zip(spatial, window.dims))
    lhs, lhs_at = _placed(graph, (images, lhs_features, *spatial))
    rhs, rhs_at = _placed(graph, (features, outputs, *(d.size for d in window.dims)))
    result, result_at = _placed(graph, (images // (groups if mode == "batch" else 1), outputs, *sizes))
    shape = x.array_shape
    left = x if shape.dims == lhs else graph.array(kind, lhs)
    right = graph.array(kind, rhs)
    terms = features * prod(d.size for d in window.dims)
    target = _result_type(graph, kind)
    left, right, reach = _factors(graph, left, right, terms, target)
    attributes: dict[str, AttributeValue] = {}
    if count:
        attributes["window"] = window
    attributes["dim_labels"] = ConvolutionDimensions(
        lhs_at[0], lhs_at[1], lhs_at[2:], rhs_at[0], rhs_at[1], rhs_at[2:], result_at[0], result_at[1],
        result_at[2:],
    )  # fmt: skip
    if groups > 1:
        attributes[f"{mode}_group_count"] = groups
    return graph.with_attributes(opcode, (left, right), attributes, ArrayShape(target, result), reach)


def _placed(graph: Graph, sizes: Dims) -> tuple[Dims, Dims]:
    """The sizes in a random order, and where each of them went; half of the time the usual order."""
    order = list(range(len(sizes)))
    if graph.chance():
        graph.rng.shuffle(order)
    return tuple(sizes[i] for i in order), tuple(order.index(i) for i in range(len(sizes)))
