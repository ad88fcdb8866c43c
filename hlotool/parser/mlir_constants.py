"""Constants of a StableHLO program in MLIR text: their values, and what uses them.

JAX writes each program it compiles to `module_NNNN.NAME/module.mlir`, with all constants in full. This is no
parser of MLIR: it reads the lines that the MLIR printer writes, one operation a line, and understands
constants, names, and nesting.

StableHLO: docs/spec.md#constants. MLIR: the builtin attributes DenseElements and DenseResourceElements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field

from hlotool.errors import InputError
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType
from hlotool.parser.mlir_values import fold


class MlirConstant(Struct, eq=False):
    """A value that is known before the program runs: a `stablehlo.constant`, or computed from such.

    Attributes:
        name: `%cst_3`.
        shape: element type and dimensions.
        operation: such as `stablehlo.add`.
        text: what follows the operation's `=`.
        operands: of an operation on constants.
        users: operation and location name of each use, such as `("stablehlo.add", "jit(f)/add")`.
    """

    name: str
    shape: ArrayShape
    operation: str
    text: str
    operands: tuple[MlirConstant, ...] = ()
    users: set[tuple[str, str]] = field(default_factory=set)


class MlirProgram(Struct):
    """What was read.

    Attributes:
        constants: in the order of the text.
        computed: shapes of results that depend on constants alone but are not among `constants`, because the
            operation has several results or regions. XLA may fold it to a constant all the same.
        resources: hexadecimal text of the blobs at the end of the file, by name.
    """

    constants: list[MlirConstant] = field(default_factory=list)
    computed: set[ArrayShape] = field(default_factory=set)
    resources: dict[str, str] = field(default_factory=dict)
    _values: dict[MlirConstant, Array | None] = field(default_factory=dict)

    def values(self, constant: MlirConstant) -> Array | None:
        """The value of `constant`, or None when an operation is not understood.

        Raises:
            InputError: a constant is malformed.
        """
        if constant not in self._values:
            self._values[constant] = self._compute(constant)
        return self._values[constant]

    def _compute(self, constant: MlirConstant) -> Array | None:
        if constant.operation == _CONSTANT:
            return dense_values(_attribute(constant.text), constant.shape, self.resources)
        operands = [self.values(operand) for operand in constant.operands]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        return fold(constant.operation, constant.text, known, constant.shape)


def read_mlir_constants(text: str) -> MlirProgram:
    """Read the constants of MLIR text.

    Raises:
        InputError: the text is not what the MLIR printer writes.
    """
    reader = _Reader()
    for line in text.splitlines():
        reader.line(line)
    return reader.finished()


#: `%1:2 = `, `%cst_0, %x = `
_RESULTS = re.compile(r"^(?P<results>%[\w.$-]+(?::\d+)?(?:, %[\w.$-]+(?::\d+)?)*) = ")
_OPERATION = re.compile(r'^"?(?P<name>[\w.]+)"?')
_VALUE = re.compile(r"%([\w.$-]+)")
_LOCATION = re.compile(r" loc\((?P<location>#loc\d*|\".*\")\)$")
_ALIAS = re.compile(r'^(?P<alias>#loc\d*) = loc\("(?P<name>(?:[^"\\]|\\.)*)"(?P<child>\(#loc\d*\))?\)$')
_TENSOR = re.compile(r"tensor<((?:[^<>]|<[^<>]*>)*)>")
_RESOURCE = re.compile(r'^(?P<name>\w+): "0x(?P<blob>[0-9A-Fa-f]*)",?$')
_CONSTANT = "stablehlo.constant"


class _Value(Struct):
    """What an SSA name stands for."""

    constant: MlirConstant | None = None
    #: It depends on constants alone.
    is_known: bool = False


class _Region(Struct):
    """Names defined between two braces."""

    values: dict[str, _Value] = field(default_factory=dict)
    #: It belongs to an operation that depends on constants alone, whose type follows the closing brace.
    is_known: bool = False


class _Reader:
    """Goes through the lines; names are looked up in the regions around them, as in MLIR."""

    def __init__(self) -> None:
        self._program = MlirProgram()
        self._regions = [_Region()]
        self._aliases: dict[str, str] = {}

    def line(self, raw: str) -> None:
        line = raw.strip()
        if line.startswith("#"):
            if alias := _ALIAS.match(line):
                self._aliases[alias["alias"]] = alias["name"]
            return
        if resource := _RESOURCE.match(line):
            self._program.resources[resource["name"]] = resource["blob"]
            return
        is_known = self._close(line) if line.startswith("}") and len(self._regions) > 1 else False
        is_known |= self._operation(line)
        if line.endswith("{"):
            self._regions.append(_Region(is_known=is_known))

    def _close(self, line: str) -> bool:
        """End a region; whether its operation depends on constants alone."""
        region = self._regions.pop()
        if region.is_known:
            self._program.computed.update(_result_shapes(line))
        return region.is_known

    def _operation(self, line: str) -> bool:
        """Read an operation; whether it depends on constants alone."""
        results = _RESULTS.match(line)
        rest = line[results.end() :] if results else line
        name = _OPERATION.match(rest)
        if name is None:
            return False
        is_constant = name["name"] == _CONSTANT
        operands = [] if is_constant else [self._look_up(value) for value in _VALUE.findall(rest)]
        self._use(operands, name["name"], rest)
        if results is None:
            return False
        return self._define(results["results"], name["name"], operands, rest)

    def _look_up(self, name: str) -> _Value:
        for region in reversed(self._regions):
            if name in region.values:
                return region.values[name]
        return _Value()

    def _use(self, operands: list[_Value], operation: str, rest: str) -> None:
        location = _LOCATION.search(rest)
        place = location["location"] if location else ""
        for operand in operands:
            if operand.constant is not None:
                operand.constant.users.add((operation, place))

    def _define(self, results: str, operation: str, operands: list[_Value], rest: str) -> bool:
        is_known = all(operand.is_known for operand in operands)
        constant = self._known(results, operation, operands, rest) if is_known else None
        for name in _VALUE.findall(results):
            self._regions[-1].values[name] = _Value(constant, is_known)
        return is_known

    def _known(self, results: str, operation: str, operands: list[_Value], rest: str) -> MlirConstant | None:
        """The value of an operation on constants, if it is one array and all its operands are such values."""
        is_constant = operation == _CONSTANT
        shapes = _constant_shapes(rest) if is_constant else _result_shapes(rest, _count(results))
        inputs = tuple(operand.constant for operand in operands if operand.constant is not None)
        if len(shapes) != 1 or len(inputs) < len(operands) or rest.endswith("{"):
            self._program.computed.update(shapes)
            return None
        constant = MlirConstant(results, shapes[0], operation, rest, inputs)
        self._program.constants.append(constant)
        return constant

    def finished(self) -> MlirProgram:
        """The program, location names resolved: their table stands at the end of the text."""
        for constant in self._program.constants:
            constant.users = {(operation, self._place(place)) for operation, place in constant.users}
        return self._program

    def _place(self, location: str) -> str:
        if location.startswith("#"):
            return self._aliases.get(location, "")
        return location.split('"')[1] if location else ""


def _constant_shapes(rest: str) -> list[ArrayShape]:
    """The shape of a constant: behind its value, which may be long."""
    found = _TENSOR.search(rest, rest.rfind("> : tensor<"))
    if found is None:
        raise InputError(f"MLIR: a constant without a type: {rest[:80]!r}")
    return [tensor_shape(found[1])]


def _attribute(text: str) -> str:
    """`dense<…>` or `dense_resource<…>` of a constant's text."""
    starts = [at for at in (text.find("dense<"), text.find("dense_resource<")) if at >= 0]
    if not starts:
        raise InputError(f"MLIR: a constant without a value: {text[:80]!r}")
    end = text.rfind("> : tensor<")
    if end < min(starts):
        raise InputError(f"MLIR: a constant whose value has no end: {text[:80]!r}")
    return text[min(starts) : end + 1]


def _result_shapes(rest: str, count: int | None = None) -> list[ArrayShape]:
    """Shapes of an operation's results: what follows the arrow, or the last types where there is no arrow."""
    _, arrow, types = rest.rpartition(" -> ")
    if arrow:
        count = None
    else:
        types = rest.rpartition(" : ")[2]
    shapes = [tensor_shape(tensor) for tensor in _TENSOR.findall(types)]
    return shapes if count is None else shapes[-count:]


def _count(results: str) -> int:
    """How many results `%1:2, %x` are."""
    return sum(int(number or 1) for number in re.findall(r"%[\w.$-]+(?::(\d+))?", results))


# Values and types of MLIR text: `dense<…>` attributes and `tensor<…>` types as arrays and shapes.

_INTEGER = re.compile(r"^(?:i|si|ui)(\d+)$")


def tensor_shape(text: str) -> ArrayShape:
    """The shape of `tensor<text>`: `64x3xf32`, `30xcomplex<f32>`, `i1`.

    Raises:
        InputError: it has unknown sizes or an element type that HLO does not have.
    """
    *dims, element = re.split(r"(?<=\d)x", text.split(",")[0])
    if not all(dim.isdigit() for dim in dims):
        raise InputError(f"MLIR: tensor<{text}> has no fixed shape")
    return ArrayShape(_element_type(element, text), tuple(map(int, dims)))


def _element_type(element: str, text: str) -> ElementType:
    names = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}
    name = names.get(element, element.lower())
    if integer := _INTEGER.match(name):
        name = ("u" if name.startswith("u") else "s") + integer[1]
    if name not in ELEMENT_TYPES:
        raise InputError(f"MLIR: element type of tensor<{text}> is not known")
    return ELEMENT_TYPES[name]


def dense_values(attribute: str, shape: ArrayShape, resources: Mapping[str, str]) -> Array:
    """The array that a `dense<…>` or `dense_resource<…>` attribute of this shape holds.

    Args:
        attribute: with its angle brackets.
        shape: of the tensor.
        resources: blobs of the file, in hexadecimal.

    Raises:
        InputError: malformed, or the number of values does not fit the shape.
    """
    try:
        return _values(attribute, shape, resources)
    except (ValueError, OverflowError, MemoryError) as error:
        start = attribute[:40]
        raise InputError(f"MLIR: {start}… is no constant of shape {shape.logical_text()}: {error}") from error


def _values(attribute: str, shape: ArrayShape, resources: Mapping[str, str]) -> Array:
    kind, _, body = attribute.partition("<")
    body = body.removesuffix(">")
    if kind == "dense_resource":
        if body not in resources:
            raise InputError(f"MLIR: resource {body} is not in the file")
        return _from_bytes(bytes.fromhex(resources[body])[4:], shape)  # 4 bytes of alignment come first
    if not body:
        return np.zeros(shape.dims, dtype_of(shape.element_type))
    if body.startswith('"0x'):
        return _from_bytes(bytes.fromhex(body[3:-1]), shape)
    return _from_list(body, shape)


def _from_bytes(content: bytes, shape: ArrayShape) -> Array:
    """Little-endian elements in row-major order; i1 may be packed, eight to a byte, lowest bit first."""
    kind = shape.element_type
    dtype = dtype_of(kind)
    if kind is ElementType.PRED and len(content) == (shape.size + 7) // 8 < shape.size:
        bits = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")
        return bits[: shape.size].astype(np.bool_).reshape(shape.dims)
    if len(content) == dtype.itemsize:
        content *= shape.size
    if len(content) != shape.size * dtype.itemsize:
        raise InputError(f"MLIR: {len(content)} bytes for a constant of shape {shape.logical_text()}")
    if kind is ElementType.PRED:
        return np.frombuffer(content, np.uint8).astype(np.bool_).reshape(shape.dims)
    if kind.is_integer and kind.bits < 8:
        raw = np.frombuffer(content, np.int8 if kind.is_signed else np.uint8)
        return raw.astype(dtype).reshape(shape.dims)
    return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape.dims)


def _from_list(body: str, shape: ArrayShape) -> Array:
    """A nested list of numbers, or one number for all elements."""
    words = re.findall(r"[^\s,\[\]()]+", body)
    is_complex = shape.element_type.is_complex
    kind = shape.element_type.real_part
    values = np.array([_number(word, kind) for word in words], dtype_of(kind))
    if is_complex:
        values = values.view(dtype_of(shape.element_type))
    if len(values) == 1:
        return np.full(shape.dims, values[0], values.dtype)
    if len(values) != shape.size:
        raise InputError(f"MLIR: {len(values)} values for a constant of shape {shape.logical_text()}")
    return values.reshape(shape.dims)


def _number(word: str, kind: ElementType) -> Any:
    """One number: `true`, `-3`, `1.000000e+00`, or the bits of a float as `0x7FC00000`."""
    try:
        if kind is ElementType.PRED:
            return {"true": True, "false": False, "1": True, "-1": True, "0": False}[word]
        if kind.is_floating and word.startswith("0x"):
            return _from_bits(int(word, 16), kind)
        return float(word) if kind.is_floating else int(word, 0)
    except (KeyError, ValueError) as error:
        raise InputError(f"MLIR: {word!r} is no value of type {kind}") from error


def _from_bits(bits: int, kind: ElementType) -> Any:
    dtype = dtype_of(kind)
    return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype.newbyteorder("<"))[0]
