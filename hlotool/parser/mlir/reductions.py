"""Rules of reductions, indexing, sorting, random numbers, collectives and transfers to the host.

StableHLO: docs/spec.md#reduce, #gather, #scatter, #sort, #rng_bit_generator, #all_reduce, #infeed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlotool.ir.attributes import AttributeValue, Ints, MeshAxis, MeshGroups, ReplicaGroups
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import TOKEN, ArrayShape, ElementType, Shape, TupleShape, strip_layouts
from hlotool.parser.mlir.frames import Context, Results, operation
from hlotool.parser.mlir.syntax import Argument, Attribute, Dense, Foreign, Name, Operation, Region
from hlotool.parser.shardy import parse_meshes


@operation("reduce")
def _reduce(context: Context) -> Results:
    name = context.text("applies", default="")
    if not name:
        reducer = context.region(0)
    elif len(context.operands) == 2:
        reducer = applied(context, name, strip_layouts(context.operands[1].shape))
    else:
        raise context.error("applies one operation to one operand")
    return context.main(
        "reduce", *context.operands, dimensions=context.integers("dimensions"), to_apply=reducer
    )


def applied(context: Context, name: str, kind: Shape) -> Computation:
    """The region that `applies stablehlo.add` means: the operation on two values."""
    at = context.operation.position
    names = [Name("%lhs", 0, at), Name("%rhs", 0, at)]
    made = Operation(name, at, [("%result", 1)], names, result_types=(kind,))
    ending = Operation("stablehlo.return", at, operands=[Name("%result", 0, at)])
    arguments = [Argument(name.name, kind, {}, at) for name in names]
    return context.program.region(context, Region(arguments, [made, ending]))


@operation("sort")
def _sort(context: Context) -> Results:
    rank = len(context.dims(0))
    dimension = context.integer("dimension", default=-1)
    stable: dict[str, AttributeValue] = {"is_stable": True} if context.flag("is_stable") else {}
    dimensions = (dimension + rank if dimension < 0 else dimension,)
    return context.main(
        "sort", *context.operands, dimensions=dimensions, to_apply=context.region(0), **stable
    )


@operation("scan")
def _scan(context: Context) -> Results:
    body = context.region(0)
    taken = [parameter.shape for parameter in body.parameters]
    # A step sees all of a carry, and of an input what one dimension less has.
    carries = sum(one.shape == shape for one, shape in zip(context.operands, taken))
    flags: dict[str, AttributeValue] = {
        name: True for name in ("is_reverse", "is_associative") if context.flag(name)
    }
    dimensions = (context.integer("dimension"),)
    return context.main(
        "scan", *context.operands, dimensions=dimensions, num_carries=carries, to_apply=body, **flags
    )


@operation("top_k", "topk")
def _top_k(context: Context) -> Results:
    k, operand = context.integer("k"), context.operand(0)
    largest = context.flag("largest", default=True)
    named: dict[str, AttributeValue] = {"largest": largest}
    return context.main("topk", operand, k=k, **named)


_GATHER = ("operand_batching_dims", "start_indices_batching_dims")
_SCATTER = ("input_batching_dims", "scatter_indices_batching_dims")


def _numbers(
    context: Context, name: str, required: tuple[str, ...], batching: tuple[str, ...]
) -> dict[str, AttributeValue]:
    """Dimension numbers of a gather or a scatter; those of batches only where there are some."""
    stated = context.get(name)
    if not isinstance(stated, dict):
        raise context.error(f"needs {name}")
    found: dict[str, AttributeValue] = {
        key: context.as_integers(stated.get(key, ()), key) for key in required
    }
    for key in batching:
        if listed := context.as_integers(stated.get(key, ()), key):
            found[key] = listed
    index = stated.get("index_vector_dim", 0)
    found["index_vector_dim"] = index if isinstance(index, int) else 0
    return found


def _promises(context: Context, *names: str) -> dict[str, AttributeValue]:
    return {name: True for name in names if context.flag(name)}


@operation("gather")
def _gather(context: Context) -> Results:
    return _gathered(context, context.integers("slice_sizes"))


@operation("dynamic_gather")
def _dynamic_gather(context: Context) -> Results:
    return _gathered(context, tuple(map(int, context.constant(2).reshape(-1))))


def _gathered(context: Context, sizes: Ints) -> Instruction:
    numbers = _numbers(
        context, "dimension_numbers", ("offset_dims", "collapsed_slice_dims", "start_index_map"), _GATHER
    )
    promises = _promises(context, "indices_are_sorted")
    return context.main("gather", *context.operands[:2], **numbers, slice_sizes=sizes, **promises)


@operation("scatter")
def _scatter(context: Context) -> Results:
    numbers = _numbers(
        context,
        "scatter_dimension_numbers",
        ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
        _SCATTER,
    )
    promises = _promises(context, "indices_are_sorted", "unique_indices")
    return context.main("scatter", *context.operands, **numbers, **promises, to_apply=context.region(0))


# Random numbers.

_GENERATORS = {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"}


@operation("rng_bit_generator")
def _rng_bit_generator(context: Context) -> Results:
    word = context.text("rng_algorithm", "algorithm")
    if word not in _GENERATORS:
        raise context.error(f"knows no generator {word!r}")
    return context.main("rng-bit-generator", *context.operands, algorithm=_GENERATORS[word])


@operation("rng")
def _rng(context: Context) -> Results:
    word = context.text("rng_distribution", "distribution").lower()
    return context.main("rng", *context.operands[:2], distribution=f"rng_{word}")


# Collectives.


def _exchange(context: Context) -> dict[str, AttributeValue]:
    """Groups and channel of a collective."""
    named: dict[str, AttributeValue] = {}
    channel = context.get("channel_handle")
    handle = channel.get("handle") if isinstance(channel, dict) else channel
    if isinstance(handle, int) and handle > 0:
        named["channel_id"] = int(handle)
    groups = context.get("replica_groups")
    if isinstance(groups, Dense):
        rows = context.dense(groups)
        if rows.ndim != 2:
            raise context.error("needs groups of devices in rows")
        # Groups of different sizes are filled up with -1.
        listed = tuple(tuple(int(n) for n in row if n >= 0) for row in rows)
        named["replica_groups"] = ReplicaGroups(listed if rows.size else ())
    elif groups is not None:
        named["replica_groups"] = ReplicaGroups(mesh=_mesh_groups(context, groups))
    if context.flag("use_global_device_ids"):
        named["use_global_device_ids"] = True
    return named


_PART = re.compile(r"\((\d+)\)(\d+)")


def _mesh_groups(context: Context, groups: Attribute) -> MeshGroups:
    """`#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`."""
    stated = groups if isinstance(groups, dict) else {}
    name = str(stated.get("mesh", ""))
    listed = stated.get("axes", ())
    if name not in context.program.meshes or not all(isinstance(one, dict) for one in listed):
        raise context.unsupported("groups of devices that are no axes of a mesh of this module")
    axes = []
    for one in listed:
        part = one.get("sub_axis_info")
        sizes = _PART.search(part.text) if isinstance(part, Foreign) else None
        before, size = (int(sizes[1]), int(sizes[2])) if sizes else (None, None)
        axes.append(MeshAxis(str(one.get("name", "")), before, size))
    try:
        mesh = parse_meshes(f"{{{name} = #sdy.mesh{context.program.meshes[name]}}}")[name]
    except ValueError as error:
        raise context.error(f"unreadable mesh @{name}: {error}") from error
    return MeshGroups(mesh, tuple(axes))


@operation("all_reduce")
def _all_reduce(context: Context) -> Results:
    return context.main("all-reduce", *context.operands, **_exchange(context), to_apply=context.region(0))


@operation("reduce_scatter")
def _reduce_scatter(context: Context) -> Results:
    return context.main(
        "reduce-scatter",
        *context.operands,
        **_exchange(context),
        dimensions=(context.integer("scatter_dimension"),),
        to_apply=context.region(0),
    )


@operation("all_gather")
def _all_gather(context: Context) -> Results:
    dimension = context.integer("all_gather_dim")
    return context.main("all-gather", *context.operands, **_exchange(context), dimensions=(dimension,))


@operation("collective_broadcast")
def _collective_broadcast(context: Context) -> Results:
    return context.main("collective-broadcast", *context.operands, **_exchange(context))


@operation("collective_permute")
def _collective_permute(context: Context) -> Results:
    rows = context.dense(context.get("source_target_pairs"))
    pairs = tuple((int(row[0]), int(row[1])) for row in rows.reshape(-1, 2))
    named = {key: value for key, value in _exchange(context).items() if key == "channel_id"}
    return context.main("collective-permute", *context.operands, source_target_pairs=pairs, **named)


@operation("all_to_all")
def _all_to_all(context: Context) -> Results:
    """XLA: XlaBuilder::AllToAllArray: one collective, then the parts are moved to where they belong."""
    if len(context.operands) != 1:
        raise context.unsupported("exchanges several arrays at once")
    split, concat = context.integer("split_dimension"), context.integer("concat_dimension")
    count, operand = context.integer("split_count"), context.operand(0)
    dims = operand.dims
    if not (0 <= split < len(dims) and 0 <= concat < len(dims)) or not count or dims[split] % count:
        raise context.error("has no such dimensions")
    moved = context.emit(
        "all-to-all",
        operand,
        shape=operand.array_shape.without_layout(),
        dimensions=(split,),
        **_exchange(context),
    )
    if split == concat:
        return moved
    kind = operand.element_type
    apart = (*dims[:split], count, dims[split] // count, *dims[split + 1 :])
    order: list[int] = []
    for d in range(len(dims)):
        if d == concat:
            order.append(split)
        order.append(d + 1 if d >= split else d)
    parts = context.emit("reshape", moved, shape=ArrayShape(kind, apart))
    turned = context.emit(
        "transpose", parts, shape=ArrayShape(kind, tuple(apart[d] for d in order)), dimensions=tuple(order)
    )
    return context.emit("reshape", turned)


@operation("cross-replica-sum")
def _cross_replica_sum(context: Context) -> Results:
    scalar = ArrayShape(context.operand(0).element_type, ())
    return context.main(
        "all-reduce",
        *context.operands,
        **_exchange(context),
        to_apply=applied(context, "stablehlo.add", scalar),
    )


# Transfers to the host.


def _arrays(context: Context) -> Sequence[Shape]:
    """What arrives, besides the token."""
    if not context.shapes:
        raise context.error("returns a token at least")
    return context.shapes[:-1]


@operation("infeed")
def _infeed(context: Context) -> Results:
    arrays = _arrays(context)
    data: Shape = TupleShape(tuple(arrays))
    config = context.text("infeed_config", default="")
    made = context.emit(
        "infeed",
        *context.operands,
        shape=TupleShape((data, TOKEN)),
        **({"infeed_config": config} if config else {}),
    )
    whole = context.emit("get-tuple-element", made, shape=data, index=0)
    token = context.emit("get-tuple-element", made, shape=TOKEN, index=1)
    parts = [
        context.emit("get-tuple-element", whole, shape=shape, index=number)
        for number, shape in enumerate(arrays)
    ]
    return [*parts, token]


@operation("outfeed")
def _outfeed(context: Context) -> Results:
    *arrays, token = context.operands
    shape = TupleShape(tuple(array.shape for array in arrays))
    data = context.emit("tuple", *arrays, shape=shape)
    return context.main("outfeed", data, token, outfeed_shape=shape)


def _transfer(context: Context) -> dict[str, AttributeValue]:
    named = _exchange(context)
    if context.flag("is_host_transfer"):
        named["is_host_transfer"] = True
    return named


@operation("send")
def _send(context: Context) -> Results:
    *arrays, token = context.operands
    named = _transfer(context)
    data = arrays[0] if len(arrays) == 1 else context.emit("tuple", *arrays, shape=_tuple_of(arrays))
    shape = TupleShape((data.shape, ArrayShape(ElementType.U32, ()), TOKEN))
    begun = context.emit("send", data, token, shape=shape, **named, **context.common())
    return context.emit("send-done", begun, shape=TOKEN, **named)


@operation("recv")
def _recv(context: Context) -> Results:
    shapes = _arrays(context)
    named = _transfer(context)
    data: Shape = shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))
    shape = TupleShape((data, ArrayShape(ElementType.U32, ()), TOKEN))
    begun = context.emit("recv", *context.operands, shape=shape, **named, **context.common())
    done = context.emit("recv-done", begun, shape=TupleShape((data, TOKEN)), **named)
    received = context.emit("get-tuple-element", done, shape=data, index=0)
    token = context.emit("get-tuple-element", done, shape=TOKEN, index=1)
    return [*_parts(context, received, shapes), token]


def _tuple_of(arrays: Sequence[Instruction]) -> TupleShape:
    return TupleShape(tuple(array.shape for array in arrays))


def _parts(context: Context, whole: Instruction, shapes: Sequence[Shape]) -> list[Instruction]:
    """The elements of what was received, which is no tuple where it is one array."""
    if len(shapes) == 1:
        return [whole]
    return [
        context.emit("get-tuple-element", whole, shape=shape, index=number)
        for number, shape in enumerate(shapes)
    ]
