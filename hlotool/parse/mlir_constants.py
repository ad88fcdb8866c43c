"""Constants of a StableHLO program in MLIR text: their values, and what uses them.

JAX writes each program it compiles to `module_NNNN.NAME/module.mlir`, with all constants in full. This is no
parser of MLIR: it reads the lines that the MLIR printer writes, one operation a line, and understands
constants, names, and nesting.

StableHLO: docs/spec.md#constants. MLIR: the builtin attributes DenseElements and DenseResourceElements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hlotool.errors import InputError
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape
from hlotool.parse.mlir_values import dense_values, tensor_shape


@dataclass(slots=True, eq=False)
class MlirConstant:
    """One `stablehlo.constant`.

    Attributes:
        name: `%cst_3`.
        shape: element type and dimensions.
        attribute: text of its value, such as `dense<…>`; see `values`.
        users: operation and location name of each use, such as `("stablehlo.add", "jit(f)/add")`.
    """

    name: str
    shape: ArrayShape
    attribute: str
    users: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class MlirProgram:
    """What was read.

    Attributes:
        constants: in the order of the text.
        computed: shapes of results that depend on constants alone. XLA may fold such an operation, so a
            constant of that shape in the HLO need not be one of `constants`.
        resources: hexadecimal text of the blobs at the end of the file, by name.
    """

    constants: list[MlirConstant] = field(default_factory=list)
    computed: set[ArrayShape] = field(default_factory=set)
    resources: dict[str, str] = field(default_factory=dict)

    def values(self, constant: MlirConstant) -> Array:
        """The value of `constant`, an array of its shape; raises InputError when it is malformed."""
        return dense_values(constant.attribute, constant.shape, self.resources)


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


@dataclass(slots=True)
class _Value:
    """What an SSA name stands for."""

    constant: MlirConstant | None = None
    #: It depends on constants alone.
    is_known: bool = False


class _Reader:
    """Goes through the lines; names are looked up in the regions around them, as in MLIR."""

    def __init__(self) -> None:
        self._program = MlirProgram()
        self._scopes: list[dict[str, _Value]] = [{}]
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
        if line.startswith("}") and len(self._scopes) > 1:
            self._scopes.pop()
        self._operation(line)
        if line.endswith("{"):
            self._scopes.append({})

    def _operation(self, line: str) -> None:
        results = _RESULTS.match(line)
        rest = line[results.end() :] if results else line
        name = _OPERATION.match(rest)
        if name is None:
            return
        if name["name"] == _CONSTANT:
            if results is None:
                raise InputError(f"MLIR: a constant without a name: {line[:80]!r}")
            self._constant(results["results"], rest)
            return
        operands = [self._look_up(value) for value in _VALUE.findall(rest)]
        self._use(operands, name["name"], rest)
        if results is not None:
            self._define(results["results"], operands, rest)

    def _constant(self, name: str, rest: str) -> None:
        start = min(at for at in (rest.find("dense<"), rest.find("dense_resource<")) if at >= 0)
        end = rest.rindex("> : tensor<") + 1
        shape = tensor_shape(_only_tensor(rest[end:]))
        constant = MlirConstant(name, shape, rest[start:end])
        self._program.constants.append(constant)
        self._scopes[-1][name.removeprefix("%")] = _Value(constant, is_known=True)

    def _look_up(self, name: str) -> _Value:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return _Value()

    def _use(self, operands: list[_Value], operation: str, rest: str) -> None:
        location = _LOCATION.search(rest)
        place = location["location"] if location else ""
        for operand in operands:
            if operand.constant is not None:
                operand.constant.users.add((operation, place))

    def _define(self, results: str, operands: list[_Value], rest: str) -> None:
        is_known = all(operand.is_known for operand in operands)
        if is_known:
            self._program.computed.update(_result_shapes(rest))
        for name in _VALUE.findall(results):
            self._scopes[-1][name] = _Value(is_known=is_known)

    def finished(self) -> MlirProgram:
        """The program, location names resolved: their table stands at the end of the text."""
        for constant in self._program.constants:
            constant.users = {(operation, self._place(place)) for operation, place in constant.users}
        return self._program

    def _place(self, location: str) -> str:
        if location.startswith("#"):
            return self._aliases.get(location, "")
        return location.split('"')[1] if location else ""


def _only_tensor(text: str) -> str:
    found = _TENSOR.search(text)
    if found is None:
        raise InputError(f"MLIR: no tensor type in {text[:80]!r}")
    return found[1]


def _result_shapes(rest: str) -> Iterator[ArrayShape]:
    """Shapes of an operation's results: what follows the arrow, or the only type where there is no arrow."""
    _, arrow, types = rest.rpartition(" -> ")
    if not arrow:
        types = rest.rpartition(" : ")[2]
    for tensor in _TENSOR.findall(types):
        yield tensor_shape(tensor)
