"""Rules of elementwise operations, of constants, and of operations that only move elements.

StableHLO: docs/spec.md#ops. CHLO: dialect/ChloOps.td.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.attributes import AttributeValue, Ints, PaddingDim, SliceDim, default_comparison
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, Class
from hlotool.ir.types import UNBOUNDED, ArrayShape
from hlotool.parser.mlir.frames import RULES, Context, Results, Rule, operation
from hlotool.parser.mlir.syntax import Dense

# Elementwise.

_FORMAT = re.compile(r"e(\d+)m(\d+)")


def plain(opcode: str) -> Rule:
    """The rule of an operation that is one instruction on the same operands."""

    def rule(context: Context) -> Results:
        row = OPCODES[opcode]
        if not row.min_operands <= len(context.operands) <= (row.max_operands or len(context.operands)):
            raise context.error(f"takes {row.min_operands} operands, not {len(context.operands)}")
        return context.main(opcode, *context.operands)

    return rule


#: Scalars are broadcast (below); complex numbers are taken apart (complex_functions.py).
_ELSEWHERE = frozenset({"clamp", "select", "acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"})

for _name, _row in OPCODES.items():
    if _row.opcode_class is Class.ELEMENTWISE and not _row.required and _name not in _ELSEWHERE:
        operation(_name.replace("-", "_"))(plain(_name))


@operation("bitcast", "bitcast_convert", "copy", "partition_id", "replica_id", "reshape")
def _of_other_classes(context: Context) -> Results:
    return plain(context.operation.name.rpartition(".")[2].replace("_", "-"))(context)


@operation("clamp", "select")
def _with_scalars(context: Context) -> Results:
    """Bounds and predicates may be scalars, which HLO broadcasts in so many words."""
    if len(context.operands) != 3:
        raise context.error(f"takes 3 operands, not {len(context.operands)}")
    dims = context.array.dims
    whole = [
        _spread(context, one, dims, ()) if context.dims(n) == () != dims else one
        for n, one in enumerate(context.operands)
    ]
    return context.main(context.operation.name.rpartition(".")[2], *whole)


def _spread(context: Context, operand: Instruction, dims: Ints, along: Ints) -> Instruction:
    """`operand` broadcast to `dims`, its own dimensions becoming those of numbers `along`."""
    shape = ArrayShape(operand.element_type, dims)
    return context.emit("broadcast", operand, shape=shape, dimensions=along)


@operation("compare")
def _compare(context: Context) -> Results:
    words = context.operation.attributes.get("words", ())
    direction = context.text("comparison_direction", default=words[0] if words else "")
    kind = context.text("compare_type", default=words[1] if len(words) > 1 else "")
    named: dict[str, AttributeValue] = {"direction": direction.upper()}
    if kind not in ("", "NOTYPE", default_comparison(context.operand(0).element_type)):
        named["type"] = kind
    return context.main("compare", *context.operands, **named)


@operation("reduce_precision")
def _reduce_precision(context: Context) -> Results:
    if found := _FORMAT.fullmatch(context.text("format", default="")):
        exponent, mantissa = int(found[1]), int(found[2])
    else:
        exponent, mantissa = context.integer("exponent_bits"), context.integer("mantissa_bits")
    return context.main("reduce-precision", *context.operands, exponent_bits=exponent, mantissa_bits=mantissa)


@operation("map")
def _map(context: Context) -> Results:
    return context.main(
        "map", *context.operands, dimensions=context.integers("dimensions"), to_apply=context.region(0)
    )


@operation("is_inf", "is_pos_inf", "is_neg_inf")
def _is_infinite(context: Context) -> Results:
    name = context.operation.name.rpartition(".")[2]
    operand = context.operand(0)
    if name == "is_inf":
        operand = context.emit("abs", operand, shape=operand.shape)
    value = -np.inf if name == "is_neg_inf" else np.inf
    return context.main("compare", operand, filled(context, value, operand.array_shape), direction="EQ")


@operation("constant_like")
def _constant_like(context: Context) -> Results:
    value = context.get("value")
    if not isinstance(value, int | float):
        raise context.error("needs a number as value")
    return filled(context, value, context.array)


def filled(context: Context, value: complex, shape: ArrayShape) -> Instruction:
    """One number in every element."""
    scalar = ArrayShape(shape.element_type, ())
    made = context.literal(np.asarray(value).astype(dtype_of(shape.element_type)), scalar)
    return _spread(context, made, shape.dims, ()) if shape.dims else made


def broadcasting(name: str) -> Rule:
    """The rule of CHLO's `broadcast_name`, whose operands are broadcast as NumPy does."""

    def rule(context: Context) -> Results:
        dims = context.array.dims
        whole = []
        for number, operand in enumerate(context.operands):
            own = context.dims(number)
            along = context.integers("broadcast_dimensions", default=())
            if len(along) != len(own):
                along = tuple(range(len(dims) - len(own), len(dims)))
            whole.append(operand if own == dims else broadcast(context, operand, dims, along))
        plain_one = replace(context.operation, name=f"chlo.{name}")
        return RULES[name](replace(context, operation=plain_one, operands=tuple(whole)))

    return rule


for _name, _row in OPCODES.items():
    if _row.opcode_class is Class.ELEMENTWISE and _row.min_operands == 2:
        operation(f"broadcast_{_name.replace('-', '_')}")(broadcasting(_name.replace("-", "_")))
operation("broadcast_select")(broadcasting("select"))


# Constants.


@operation("constant", "arith.constant", "std.constant", "sdy.constant", "util.unfoldable_constant")
def _constant(context: Context) -> Results:
    value, shape = context.get("value"), context.array
    if not isinstance(value, Dense):
        raise context.error("needs dense<…>")
    is_elided = _is_elided(value.text, context.program.resources)
    is_one = not set('["') & set(value.text) and value.text.startswith("dense<")
    if shape.size > 1 and is_one and not is_elided:
        scalar = ArrayShape(shape.element_type, ())
        one = context.literal(context.dense(value, scalar), scalar)
        return context.main("broadcast", one, dimensions=())
    literal = Literal(shape, None, elided=True)
    if not is_elided:
        literal = Literal(shape, np.ascontiguousarray(context.dense(value, shape)).reshape(shape.dims))
    return context.add(
        Instruction("constant", "constant", shape, attributes=context.common(), literal=literal)
    )


def _is_elided(text: str, resources: Mapping[str, str]) -> bool:
    """Whether the value stands nowhere: MLIR was told to leave out large ones, or the file is cut."""
    kind, _, inside = text.partition("<")
    return inside == "...>" or (kind == "dense_resource" and inside[:-1] not in resources)


@operation("iota", "dynamic_iota")
def _iota(context: Context) -> Results:
    dimension = context.integer("iota_dimension", "dim")
    if not 0 <= dimension < context.array.rank:
        raise context.error(f"has no dimension {dimension}")
    _must_be_static(context)
    return context.main("iota", iota_dimension=dimension)


def _must_be_static(context: Context) -> None:
    """Refuse results whose sizes are known only when the program runs, and are bounded by nothing."""
    if UNBOUNDED in context.array.dims:
        raise context.unsupported("a size of the result is computed by the program and has no bound")


# Movement.


@operation("broadcast_in_dim", "dynamic_broadcast_in_dim")
def _broadcast_in_dim(context: Context) -> Results:
    _must_be_static(context)
    along = context.integers("broadcast_dimensions", "dims")
    return broadcast(context, context.operand(0), context.array.dims, along)


def broadcast(context: Context, operand: Instruction, dims: Ints, along: Ints) -> Instruction:
    """`operand` broadcast to `dims`: of its dimensions, those of size 1 may be spread."""
    own = operand.dims
    if len(along) != len(own) or not all(
        0 <= d < len(dims) and s in (1, dims[d]) for d, s in zip(along, own)
    ):
        raise context.error(f"cannot broadcast sizes {own} to {dims} along {along}")
    kept = [(d, s) for d, s in zip(along, own) if s == dims[d]]
    if len(kept) < len(own):
        shape = ArrayShape(operand.element_type, tuple(size for _, size in kept))
        operand = context.emit("reshape", operand, shape=shape)
    shape = ArrayShape(operand.element_type, dims, context.array.dynamic)
    along = tuple(d for d, _ in kept)
    return context.emit("broadcast", operand, shape=shape, dimensions=along, **context.common())


@operation("broadcast")
def _broadcast(context: Context) -> Results:
    sizes = context.integers("broadcast_sizes", "sizes")
    rank = context.array.rank
    return context.main("broadcast", *context.operands, dimensions=tuple(range(len(sizes), rank)))


@operation("dynamic_reshape")
def _dynamic_reshape(context: Context) -> Results:
    _must_be_static(context)
    return context.main("reshape", context.operand(0))


@operation("transpose")
def _transpose(context: Context) -> Results:
    return context.main("transpose", *context.operands, dimensions=context.integers("permutation", "dims"))


@operation("reverse")
def _reverse(context: Context) -> Results:
    return context.main("reverse", *context.operands, dimensions=context.integers("dimensions", "dims"))


@operation("concatenate")
def _concatenate(context: Context) -> Results:
    dimension = context.integer("dimension", "dim")
    return context.main("concatenate", *context.operands, dimensions=(dimension,))


@operation("slice")
def _slice(context: Context) -> Results:
    lists = [context.integers(key) for key in ("start_indices", "limit_indices", "strides")]
    return _sliced(context, lists)


@operation("real_dynamic_slice")
def _real_dynamic_slice(context: Context) -> Results:
    return _sliced(context, [constant_integers(context, number) for number in (1, 2, 3)])


def constant_integers(context: Context, number: int) -> Ints:
    """Integers that an operand must have as a constant, also as one number in every element."""
    return tuple(map(int, context.constant(number).reshape(-1)))


def _sliced(context: Context, lists: Sequence[Ints]) -> Instruction:
    if {len(one) for one in lists} != {len(context.dims(0))}:
        raise context.error(
            f"needs a start, a limit and a stride for each of {len(context.dims(0))} dimensions"
        )
    return context.main("slice", context.operand(0), slice=tuple(SliceDim(*one) for one in zip(*lists)))


@operation("pad")
def _pad(context: Context) -> Results:
    return _padded(
        context,
        context.integers("edge_padding_low", "low"),
        context.integers("edge_padding_high", "high"),
        context.integers("interior_padding", "interior"),
    )


@operation("dynamic_pad")
def _dynamic_pad(context: Context) -> Results:
    return _padded(context, *(constant_integers(context, number) for number in (2, 3, 4)))


def _padded(context: Context, low: Ints, high: Ints, interior: Ints) -> Instruction:
    if {len(low), len(high), len(interior)} != {len(context.dims(0))}:
        raise context.error(f"needs paddings for each of {len(context.dims(0))} dimensions")
    padding = tuple(PaddingDim(*one) for one in zip(low, high, interior))
    return context.main("pad", context.operand(0), context.operand(1), padding=padding)


@operation("dynamic_slice")
def _dynamic_slice(context: Context) -> Results:
    sizes = context.integers("slice_sizes", "sizes")
    return context.main("dynamic-slice", *context.operands, dynamic_slice_sizes=sizes)


@operation("dynamic_update_slice")
def _dynamic_update_slice(context: Context) -> Results:
    return context.main("dynamic-update-slice", *context.operands)


@operation("get_dimension_size", "set_dimension_size")
def _dimension_size(context: Context) -> Results:
    opcode = context.operation.name.rpartition(".")[2].replace("_", "-")
    return context.main(opcode, *context.operands, dimensions=(context.integer("dimension", "dim"),))


# Tuples, tokens, barriers.


@operation("tuple")
def _tuple(context: Context) -> Results:
    return context.main("tuple", *context.operands)


@operation("get_tuple_element")
def _element(context: Context) -> Results:
    found = context.get("index", "value")
    index = found[0] if isinstance(found, tuple) and found else found
    if not isinstance(index, int):
        raise context.error("needs an index")
    return context.main("get-tuple-element", *context.operands, index=index)


@operation("after_all", "create_token")
def _after_all(context: Context) -> Results:
    return context.main("after-all", *context.operands)


@operation("optimization_barrier")
def _barrier(context: Context) -> Results:
    if len(context.operands) == 1:
        return context.main("opt-barrier", *context.operands)
    whole = context.emit("tuple", *context.operands)
    return context.main("opt-barrier", whole)


@operation("conj")
def _conjugate(context: Context) -> Results:
    operand = context.operand(0)
    part = ArrayShape(operand.element_type.real_part, operand.dims)
    if not operand.element_type.is_complex:
        return operand
    real = context.emit("real", operand, shape=part)
    imaginary = context.emit("negate", context.emit("imag", operand, shape=part), shape=part)
    return context.main("complex", real, imaginary)
