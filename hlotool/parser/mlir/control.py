"""Rules of operations that run regions or call functions: loops, branches, calls, custom calls.

StableHLO: docs/spec.md#while, #case, #if, #custom_call, #composite. Shardy: sdy/ir/ops.td.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.ir.attributes import AttributeValue, BackendConfig, FrontendAttributes, OperandAlias
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Layout, Shape, TupleShape
from hlotool.parser.mlir.frames import Context, Results, is_constant, operation, quoted
from hlotool.parser.mlir.functions import free_names
from hlotool.parser.mlir.syntax import Dense, Dictionary, Foreign, Region

_VERSIONS = {
    2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED",
    4: "API_VERSION_TYPED_FFI",
}
#: How Shardy says how a value is spread that has no sharding attribute of its own.
_PER_VALUE = "#sdy.sharding_per_value<[{}]>"


def _read_from_around(context: Context, regions: Sequence[Region]) -> list[tuple[str, int]]:
    """Names that regions read from around them, constants aside, with their numbers of values."""
    frame = context.frame
    names = dict.fromkeys(name for region in regions for name in free_names(region))
    return [
        (name, len(frame.values[name]))
        for name in names
        if not all(map(is_constant, frame.values.get(name, ())))
    ]


@operation("while")
def _while(context: Context) -> Results:
    regions = context.operation.regions
    if len(regions) != 2:
        raise context.error("needs a condition and a body")
    read = _read_from_around(context, regions)
    around = [value for name, _ in read for value in context.frame.values[name]]
    parts = (*context.operands, *around)
    state = TupleShape(tuple(part.shape for part in parts))
    carried = context.emit("tuple", *parts, shape=state)
    condition = context.program.loop(context, regions[0], state, read, is_body=False)
    body = context.program.loop(context, regions[1], state, read, is_body=True)
    loop = context.emit("while", carried, shape=state, condition=condition, body=body, **context.common())
    return [
        context.emit("get-tuple-element", loop, shape=shape, index=number)
        for number, shape in enumerate(context.shapes)
    ]


@operation("case", "if")
def _branches(context: Context) -> Results:
    regions = context.operation.regions
    chosen, arguments = context.operands[:1], context.operands[1:]
    if not regions or not chosen or len(arguments) not in (0, len(regions)):
        raise context.error("needs branches and what chooses among them")
    if arguments:  # until 2021 a branch took a value by name
        made = [(argument, context.region(number)) for number, argument in enumerate(arguments)]
    else:
        made = [context.program.branch(context, one, _read_from_around(context, [one])) for one in regions]
    operands = [operand for operand, _ in made]
    callees = tuple(callee for _, callee in made)
    named: dict[str, AttributeValue] = {"branch_computations": callees}
    if context.operation.name.endswith(".if"):
        if len(callees) != 2:
            raise context.error("needs two branches")
        named = {"true_computation": callees[0], "false_computation": callees[1]}
    return context.main("conditional", *chosen, *operands, **named)


@operation("call", "func.call")
def _call(context: Context) -> Results:
    callee = context.program.function(context.text("callee"), context.operation.position)
    return context.main("call", *context.operands, to_apply=callee)


#: Collectives that have a start and an end of their own in HLO, and those that are called.
_BEGUN = frozenset({"all_reduce", "all_gather", "collective_permute"})
_CALLED = frozenset({"all_to_all", "collective_broadcast", "reduce_scatter"})


@operation("async_start")
def _async_start(context: Context) -> Results:
    """One collective, begun. jaxlib 0.10.2 reads none of the slices that StableHLO has besides."""
    regions, operands = context.operation.regions, context.operands
    if len(regions) != 1 or len(regions[0].operations) != 2:
        raise context.error("needs a region of one operation and a return")
    collective = regions[0].operations[0].name.partition(".")[2]
    if collective in _CALLED:
        shape = TupleShape((TupleShape(tuple(one.shape for one in operands)), context.shape))
        return context.emit("async-start", *operands, shape=shape, calls=context.region(0))
    if collective not in _BEGUN or len(operands) != 1:
        raise context.unsupported(f"begins {regions[0].operations[0].name} of {len(operands)} operands")
    (made,) = context.program.inner(context, regions[0], operands)
    made.opcode += "-start"
    if collective != "all_reduce":
        made.shape = TupleShape((operands[0].shape, made.shape))
    return made


@operation("async_done")
def _async_done(context: Context) -> Results:
    begun = context.operands[0]
    if not begun.opcode.endswith("-start"):
        raise context.unsupported("ends what has not begun in the same function")
    return context.main(f"{begun.opcode.removesuffix('start')}done", begun)


@operation("composite")
def _composite(context: Context) -> Results:
    name = context.text("decomposition")
    callee = context.program.function(name, context.operation.position)
    return context.main("call", *context.operands, to_apply=callee)


@operation("custom_call")
def _custom_call(context: Context) -> Results:
    target = context.text("call_target_name", "callee")
    named = context.common()
    config = context.get("mhlo.backend_config", "backend_config")
    if isinstance(config, Dictionary):
        named["backend_config"] = BackendConfig(config.text)
    elif isinstance(config, str) and config:
        named["backend_config"] = BackendConfig(config, quoted=not config.startswith("{"))
    if context.flag("has_side_effect"):
        named["custom_call_has_side_effect"] = True
    version = context.integer("api_version", default=1)
    if version in _VERSIONS:
        named["api_version"] = _VERSIONS[version]
    aliases = _output_aliases(context)
    if target in ("Pin", "Unpin"):  # XLA's importer adds what is true of them
        aliases = aliases or (OperandAlias((), 0, ()),)
    if aliases:
        named["output_to_operand_aliasing"] = aliases
    called = context.get("called_computations")
    if isinstance(called, tuple) and called:
        found = [context.program.function(str(one), context.operation.position) for one in called]
        named["called_computations"] = tuple(found)
    layouts = _layouts(context, "operand_layouts", [operand.shape for operand in context.operands])
    if layouts is not None:
        named["operand_layout_constraints"] = tuple(layouts)
    shapes = _layouts(context, "result_layouts", context.shapes) or context.shapes
    shape: Shape = shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))
    made = context.emit("custom-call", *context.operands, shape=shape, custom_call_target=target, **named)
    if len(shapes) == 1:
        return made
    return [
        context.emit("get-tuple-element", made, shape=one, index=number) for number, one in enumerate(shapes)
    ]


def _layouts(context: Context, name: str, shapes: Sequence[Shape]) -> list[Shape] | None:
    stated = context.get(name)
    if not isinstance(stated, tuple) or len(stated) != len(shapes):
        return None
    return [
        ArrayShape(shape.element_type, shape.dims, shape.dynamic, Layout(context.as_integers(order, name)))
        if isinstance(shape, ArrayShape) and isinstance(order, Dense)
        else shape
        for shape, order in zip(shapes, stated)
    ]


def _output_aliases(context: Context) -> tuple[OperandAlias, ...]:
    listed = context.get("output_operand_aliases")
    found: list[OperandAlias] = []
    for one in listed if isinstance(listed, tuple) else ():
        if isinstance(one, dict):
            output, inner = one.get("output_tuple_indices", ()), one.get("operand_tuple_indices", ())
            found.append(OperandAlias(output, one.get("operand_index", 0), inner))
    return tuple(found)


# Comparisons of StableHLO's own tests. Source: stablehlo/tests/CheckOps.td.


@operation("check.expect_eq", "check.expect_almost_eq", "check.expect_close")
def _expect(context: Context) -> Results:
    if len(context.operands) != 2:
        raise context.error("compares two values")
    return _comparison(context, context.operation.name, *context.operands)


@operation("check.expect_eq_const", "check.expect_almost_eq_const")
def _expect_constant(context: Context) -> Results:
    shape = context.operand(0).array_shape.without_layout()
    expected = context.literal(context.dense(context.get("value"), shape), shape)
    return _comparison(context, context.operation.name.removesuffix("_const"), context.operand(0), expected)


def _comparison(context: Context, target: str, *values: Instruction) -> Results:
    options = {
        name: context.operation.attributes[name]
        for name in ("tolerance", "max_ulp_difference", "min_ulp_difference")
        if name in context.operation.attributes
    }
    text = ", ".join(f"{name} = {value}" for name, value in options.items())
    context.emit(
        "custom-call",
        *values,
        shape=TupleShape(()),
        custom_call_target=target,
        custom_call_has_side_effect=True,
        backend_config=BackendConfig(f"{{{text}}}"),
    )
    return ()


# Shardy, as XLA writes it into HLO: in frontend attributes.


@operation("sdy.all_reduce", "sdy.propagation_barrier")
def _same(context: Context) -> Results:
    """The whole array as it is, however its parts lie. XLA: shardy/stablehlo_round_trip/export_ops.cc."""
    return [context.operand(0)]


@operation(
    "sdy.all_gather",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.reduce_scatter",
    "sdy.reshard",
    "sdy.sharding_constraint",
)
def _constraint(context: Context) -> Results:
    """The whole array as it is, in other parts. XLA: shardy/stablehlo_round_trip/export_ops.cc."""
    stated = context.get("text", "sharding", "out_sharding")
    if not isinstance(stated, Foreign):
        raise context.error("needs a sharding")
    text = stated.text.removeprefix("#sdy.sharding")
    return _annotated(
        context, "Sharding", context.operands[0], context.shape, sharding=_PER_VALUE.format(text)
    )


@operation("sdy.manual_computation")
def _manual(context: Context) -> Results:
    [region] = context.operation.regions or [Region([], [])]
    if len(region.arguments) != len(context.operands):
        raise context.error("needs an argument for each operand")
    axes = f"#sdy<manual_axes{_text(context, 'manual_axes')}>"
    into = _each(context, "in_shardings", len(context.operands))
    out = _each(context, "out_shardings", len(context.shapes))
    local = [
        _annotated(
            context,
            "xla.sdy.GlobalToLocalShape",
            operand,
            context.program.shape_of(argument),
            in_shardings=_PER_VALUE.format(sharding),
            manual_axes=axes,
        )
        for operand, argument, sharding in zip(context.operands, region.arguments, into)
    ]
    results = context.program.inner(context, region, local)
    return [
        _annotated(
            context,
            "xla.sdy.LocalToGlobalShape",
            result,
            shape,
            manual_axes=axes,
            out_shardings=_PER_VALUE.format(sharding),
        )
        for result, shape, sharding in zip(results, context.shapes, out)
    ]


def _text(context: Context, name: str) -> str:
    found = context.get(name)
    if isinstance(found, Foreign):
        return (
            found.text.removeprefix("#sdy<manual_axes").removesuffix(">")
            if "#sdy<" in found.text
            else found.text
        )
    raise context.error(f"needs {name}")


def _each(context: Context, name: str, count: int) -> list[str]:
    """The shardings of `[<…>, <…>]`, each with its brackets."""
    text = _text(context, name)
    found, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        if sign == "<":
            start = at if depth == 0 else start
            depth += 1
        elif sign == ">" and text[at - 1] != "-":
            depth -= 1
            if depth == 0:
                found.append(text[start : at + 1])
    if len(found) != count:
        raise context.error(f"has {len(found)} {name} for {count} values")
    return found


def _annotated(
    context: Context, target: str, operand: Instruction, shape: Shape, **shardy: str
) -> Instruction:
    entries = tuple((f"xla.sdy.{key}", quoted(value)) for key, value in shardy.items())
    is_border = target != "Sharding"
    side: dict[str, AttributeValue] = {"custom_call_has_side_effect": True} if is_border else {}
    return context.emit(
        "custom-call",
        operand,
        shape=shape,
        custom_call_target=target,
        frontend_attributes=FrontendAttributes(entries),
        **side,
    )
