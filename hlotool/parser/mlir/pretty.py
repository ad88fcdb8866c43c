"""Operations of StableHLO, Shardy and `func` whose pretty form is like no other's.

StableHLO: dialect/AssemblyFormat.cpp. Shardy: sdy/ir/ops.td.
"""

from __future__ import annotations

from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType
from hlotool.parser.mlir.operations import OperationReader
from hlotool.parser.mlir.syntax import (
    RETURNS,
    Argument,
    Attribute,
    Dense,
    Foreign,
    Name,
    Operation,
    OtherType,
    Region,
    Type,
)
from hlotool.parser.mlir.types import element_name


def _constant(reader: OperationReader, made: Operation) -> None:
    """`stablehlo.constant {attributes} dense<…> : type`; the older `() {value = …} : () -> type` is loose.

    A number that is no tensor, `arith.constant 0 : index`, is one without dimensions.
    """
    if reader.word == "(":
        reader.loose(made)
        return
    if reader.word == "{":
        made.attributes |= reader.dictionary()
    if reader.kind == "number" or reader.word in ("true", "false"):
        position, text = reader.position, reader.next()
        kind = _scalar(reader) if reader.taken(":") else ArrayShape(ElementType.PRED, ())
        value: Attribute = Dense(f"dense<{text}>", kind, position)
    else:
        value = reader.attribute()
    made.attributes["value"] = value
    if not isinstance(value, Dense) or value.type is None:
        raise reader.source.error("expected dense<…> with its type", made.position)
    made.result_types = (value.type,)


def _scalar(reader: OperationReader) -> Type:
    """The type of one number, `index` or `f32`, as that of a tensor without dimensions."""
    found = reader.type()
    kind = ELEMENT_TYPES.get(element_name(found.text)) if isinstance(found, OtherType) else None
    return found if kind is None else ArrayShape(kind, ())


def _slice(reader: OperationReader, made: Operation) -> None:
    """`stablehlo.slice %x [0:2, 1:9:3] : …`."""
    made.operands.append(reader.name_used())
    bounds = reader.listed("[", "]", lambda: _bounds(reader))
    for key, values in zip(("start_indices", "limit_indices", "strides"), zip(*bounds)):
        made.attributes[key] = values
    if not bounds:
        made.attributes |= dict.fromkeys(("start_indices", "limit_indices", "strides"), ())
    reader.loose(made)


def _bounds(reader: OperationReader) -> tuple[int, int, int]:
    start = reader.integer()
    reader.take(":")
    return start, reader.integer(), reader.integer() if reader.taken(":") else 1


def _convolution(reader: OperationReader, made: Operation) -> None:
    """`stablehlo.convolution(%x, %w) dim_numbers = […]x[…]->[…], window = {…} {…} : …`."""
    made.operands = reader.listed("(", ")", reader.name_used)
    reader.take("dim_numbers")
    reader.take("=")
    start = reader.position
    for separator in ("x", "->", ""):
        reader.balanced()
        if separator:
            reader.take(separator)
    made.attributes["dimension_numbers"] = Foreign(reader.source.text[start : reader.position])
    reader.loose(made)


def _reduce(reader: OperationReader, made: Operation) -> None:
    """`stablehlo.reduce(%x init: %i), (%y init: %j) applies OP across dimensions = [0] : …`."""
    initial: list[Name] = []
    while reader.taken("("):
        made.operands.append(reader.name_used())
        reader.take("init")
        reader.take(":")
        initial.append(reader.name_used())
        reader.take(")")
        reader.taken(",")
    made.operands += initial
    if reader.taken("applies"):
        made.attributes["applies"] = reader.of_kind("word", "an operation")
    for word in ("across", "dimensions", "="):
        reader.take(word)
    made.attributes["dimensions"] = reader.bare()
    if reader.word == "{":
        made.attributes |= reader.dictionary()
    reader.take(":")
    reader.signature(made)
    if reader.taken("reducer"):
        pairs: list[list[Argument]] = []
        while reader.word == "(":
            pairs.append(reader.listed("(", ")", reader.argument))
        if any(len(pair) != 2 for pair in pairs):
            raise reader.source.error("a reducer takes its arguments in pairs", made.position)
        body = reader.region()
        made.regions = [Region([pair[n] for n in (0, 1) for pair in pairs], body.operations)]


def _while(reader: OperationReader, made: Operation) -> None:
    """`stablehlo.while(%a = %x, …) : types attributes {…} cond { … } do { … }`."""
    names: list[tuple[str, int]] = []

    def pair() -> None:
        position = reader.position
        names.append((reader.of_kind("value", "the name of an argument"), position))
        reader.take("=")
        made.operands.append(reader.name_used())

    reader.listed("(", ")", pair)
    kinds = []
    if reader.taken(":"):
        kinds.append(reader.type())
        while reader.taken(","):
            kinds.append(reader.type())
    if len(kinds) != len(names):
        raise reader.source.error(f"{len(names)} values, but {len(kinds)} types", made.position)
    made.result_types = made.operand_types = tuple(kinds)
    if reader.taken("attributes"):
        made.attributes |= reader.dictionary()
    for word in ("cond", "do"):
        reader.take(word)
        body = reader.region()
        arguments = [Argument(name, kind, {}, at) for (name, at), kind in zip(names, kinds)]
        made.regions.append(Region(arguments, body.operations))


def _manual(reader: OperationReader, made: Operation) -> None:
    """`sdy.manual_computation(%x) in_shardings=[…] out_shardings=[…] manual_axes={…} (%a: T) { … } : …`."""
    made.operands = reader.listed("(", ")", reader.name_used)
    for key in ("in_shardings", "out_shardings", "manual_axes"):
        reader.take(key)
        reader.take("=")
        made.attributes[key] = Foreign(reader.balanced())
    if reader.word == "{":
        made.attributes |= reader.dictionary()
    arguments = reader.listed("(", ")", reader.argument)
    body = reader.region()
    made.regions = [Region(arguments, body.operations)]
    if reader.word == "{":
        made.attributes |= reader.dictionary()
    reader.take(":")
    reader.signature(made)


def _cast(reader: OperationReader, made: Operation) -> None:
    """`tensor.cast %x : type to type`; more sizes may be known than the first type states."""
    made.operands.append(reader.name_used())
    if reader.word == "{":
        made.attributes |= reader.dictionary()
    reader.take(":")
    reader.type()
    reader.take("to")
    made.result_types = (_scalar(reader),)


def _dim(reader: OperationReader, made: Operation) -> None:
    """`tensor.dim %x, %number : type`, an index."""
    reader.loose(made)
    made.result_types = (ArrayShape(ElementType.S64, ()),)


def _collective(reader: OperationReader, made: Operation) -> None:
    """`sdy.all_to_all [{"x"}: 0->1] %x out_sharding=<@mesh, [{}, {"x"}]> : type`, which tells the axes."""
    if reader.word in ("[", "{"):
        reader.balanced()
    reader.loose(made)


def _mesh(reader: OperationReader, made: Operation) -> None:
    """`sdy.mesh @mesh = <["x"=2]>`, also with `#sdy.mesh` before the bracket."""
    made.attributes["sym_name"] = reader.symbol()
    reader.take("=")
    if reader.kind == "hash":
        reader.next()
    made.attributes["mesh"] = Foreign(reader.balanced())
    if reader.word == "{":
        made.attributes |= reader.dictionary()


def _returned(reader: OperationReader, made: Operation) -> None:
    """`return %x, %y : types`, also without any."""
    while reader.kind == "value":
        made.operands.append(reader.name_used())
        if not reader.taken(","):
            break
    if reader.word == "{":
        made.attributes |= reader.dictionary()
    if made.operands:
        reader.take(":")
        made.operand_types = (reader.type(),)
        while reader.taken(","):
            made.operand_types = (*made.operand_types, reader.type())


_CONSTANTS = (
    "stablehlo.constant",
    "mhlo.constant",
    "chlo.constant",
    "arith.constant",
    "std.constant",
    "sdy.constant",
    "util.unfoldable_constant",
    "constant",
)

PRETTY = {
    **dict.fromkeys(("builtin.module", "module"), OperationReader.module),
    **dict.fromkeys(("func.func", "func"), OperationReader.function),
    **dict.fromkeys(_CONSTANTS, _constant),
    **dict.fromkeys(("stablehlo.slice", "mhlo.slice"), _slice),
    **dict.fromkeys(("stablehlo.convolution", "mhlo.convolution"), _convolution),
    **dict.fromkeys(("stablehlo.dynamic_conv", "mhlo.dynamic_conv"), _convolution),
    **dict.fromkeys(("stablehlo.reduce", "mhlo.reduce"), _reduce),
    **dict.fromkeys(("stablehlo.while", "mhlo.while"), _while),
    **dict.fromkeys(RETURNS, _returned),
    **dict.fromkeys(
        ("sdy.all_gather", "sdy.all_reduce", "sdy.all_slice", "sdy.all_to_all", "sdy.reduce_scatter"),
        _collective,
    ),
    "sdy.manual_computation": _manual,
    "sdy.mesh": _mesh,
    "tensor.cast": _cast,
    "arith.index_cast": _cast,
    "tensor.dim": _dim,
}
