"""From operations of MLIR to instructions of HLO: computations that are being built, and what rules see.

A region of MLIR may read values from around it; a computation of HLO may not. Constants are copied into it,
the loops and branches of `control.py` hand on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hlotool.errors import HloSyntaxError, InputError, ProtoError, Unsupported
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.attributes import AttributeValue, FrontendAttributes, Ints, Metadata, ResultAccuracy, Sharding
from hlotool.ir.builder import Builder
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, by_name, opcodes_with
from hlotool.ir.types import UNBOUNDED, ArrayShape, Shape, TupleShape
from hlotool.parser.mlir.syntax import Attribute, Dense, Foreign, Name, Operation
from hlotool.parser.mlir.tokens import Text
from hlotool.parser.mlir_constants import dense_values
from hlotool.parser.text.pieces import Doubt, known_pieces
from hlotool.parser.text.syntax import TextError

if TYPE_CHECKING:
    from hlotool.parser.mlir.functions import Program

#: What a rule returns: the operation's results in order, or one instruction whose elements are the results.
Results: TypeAlias = "Instruction | Sequence[Instruction]"
Rule: TypeAlias = "Callable[[Context], Results]"

#: Rules by the name of the operation without its dialect, where StableHLO, MHLO or CHLO has it.
RULES: dict[str, Rule] = {}
#: Dialects whose operations are StableHLO's, those of 2020 among them.
DIALECTS = ("stablehlo", "mhlo", "chlo", "xla_hlo", "xla_chlo")
#: Values of no element may be written anywhere; others are not copied from one computation to another.
_COPIED = frozenset({"constant", "iota"})
_REGROUPING = opcodes_with(Trait.REGROUPS)


def operation(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of operations: `add` of StableHLO, MHLO and CHLO, `check.expect_eq` in full."""
    return by_name(RULES, names)


def rule_of(name: str) -> Rule | None:
    """The rule of an operation, None where HLO has none."""
    dialect, _, rest = name.partition(".")
    rest = rest.replace("-", "_")  # `mhlo.dynamic-slice`, until 2021
    return RULES.get(rest) if dialect in DIALECTS else RULES.get(name)


@dataclass(slots=True)
class Frame:
    """A computation that is being built.

    Attributes:
        program: that it belongs to.
        builder: of its instructions.
        around: of the computation in which the region stands.
        values: instructions by the names that the text gives them.
    """

    program: Program
    builder: Builder
    around: Frame | None = None
    values: dict[str, tuple[Instruction, ...]] = field(default_factory=dict)

    def look_up(self, used: Name) -> Instruction:
        """The instruction of a value, copied here where it is a constant from around.

        Raises:
            HloSyntaxError: there is no such value.
            Unsupported: it stands around this region and is no constant.
        """
        frame: Frame | None = self
        while frame is not None and used.name not in frame.values:
            frame = frame.around
        if frame is None:
            raise self.program.source.error(f"no value {used.name} is defined here", used.position)
        found = frame.values[used.name]
        if used.number >= len(found):
            message = f"{used.name} has {len(found)} results"
            raise self.program.source.error(message, used.position)
        value = found[used.number]
        if frame is self:
            return value
        if not is_constant(value):
            reason = f"{used.name} stands around this region, whose computation cannot read it"
            raise self.program.source.unsupported(reason, used.position)
        return self._copied(value)

    def _copied(self, value: Instruction) -> Instruction:
        operands = tuple(map(self._copied, value.operands))
        copy = Instruction(
            value.name, value.opcode, value.shape, operands, value.attributes, value.metadata, value.literal
        )
        copy.line = value.line
        return self.builder.add(copy)

    def bind(self, name: str, *values: Instruction) -> None:
        """Let a name of the text stand for instructions."""
        self.values[name] = values

    def finish(self, results: Sequence[Instruction], is_tuple: bool = False) -> Computation:
        """The computation that returns these values, in a tuple where they are not just one."""
        if len(results) == 1 and not is_tuple:
            return self.builder.build(results[0])
        shape = TupleShape(tuple(result.shape for result in results))
        root = self.builder.op("tuple", *results, shape=shape)
        return self.builder.build(root)


def is_constant(value: Instruction) -> bool:
    """Whether an instruction is a constant, or a broadcast of one: XLA copies those, too."""
    while value.opcode in _REGROUPING and value.operands:
        value = value.operands[0]
    return value.opcode in _COPIED


def plain_name(name: str) -> str:
    """A name of the text as one of an instruction: `%arg0` is `arg0`, `%3` is `v3`."""
    body = "".join(sign if sign.isalnum() or sign in "_.-" else "_" for sign in name.removeprefix("%"))
    return body if body[:1].isalpha() or body[:1] == "_" else f"v{body}"


@dataclass(slots=True)
class Context:
    """What a rule sees of its operation.

    Attributes:
        operation: as it stands in the text.
        frame: where its instructions go.
        operands: their instructions.
        shapes: of the results, as the text states them.
    """

    operation: Operation
    frame: Frame
    operands: tuple[Instruction, ...]
    shapes: tuple[Shape, ...]

    @property
    def program(self) -> Program:
        """The program that is being built."""
        return self.frame.program

    @property
    def source(self) -> Text:
        """The text, for errors."""
        return self.frame.program.source

    @property
    def shape(self) -> Shape:
        """The shape of the result; of several, of the tuple of them."""
        return self.shapes[0] if len(self.shapes) == 1 else TupleShape(self.shapes)

    @property
    def array(self) -> ArrayShape:
        """The shape of the only result, which must be an array."""
        if not isinstance(self.shape, ArrayShape):
            raise self.error("must have one array as its result")
        return self.shape

    def error(self, message: str) -> HloSyntaxError:
        """The error to raise for what the operation must not be."""
        return self.source.error(f"{self.operation.name} {message}", self.operation.position)

    def unsupported(self, reason: str) -> Unsupported:
        """The error to raise for what HLO does not have."""
        return self.source.unsupported(f"{self.operation.name}: {reason}", self.operation.position)

    def dims(self, number: int) -> Ints:
        """The sizes of an operand, which must be an array."""
        return self.operand(number).dims

    def operand(self, number: int) -> Instruction:
        """An operand, which must be an array."""
        if number >= len(self.operands):
            raise self.error(f"needs more than {len(self.operands)} operands")
        found = self.operands[number]
        if not isinstance(found.shape, ArrayShape):
            raise self.error(f"needs an array as operand {number}")
        return found

    # Attributes.

    def get(self, *names: str) -> Attribute:
        """The first of several attributes that is there; None where there is none."""
        listed = self.operation.attributes
        return next((listed[name] for name in names if name in listed), None)

    def integers(self, *names: str, default: Ints | None = None) -> Ints:
        """A list of integers, under whichever name."""
        found = self.get(*names)
        if found is None and default is not None:
            return default
        return self.as_integers(found, names[0])

    def as_integers(self, value: Attribute, name: str) -> Ints:
        """The integers of `[1, 2]`, `array<…>` or `dense<…>`; also truth values."""
        if isinstance(value, Dense):
            return tuple(map(int, self.dense(value).reshape(-1)))
        if isinstance(value, tuple) and all(isinstance(one, int) for one in value):
            return tuple(map(int, value))
        raise self.error(f"needs integers as {name}")

    def integer(self, *names: str, default: int | None = None) -> int:
        """One integer."""
        found = self.get(*names)
        if found is None and default is not None:
            return default
        if not isinstance(found, int):
            raise self.error(f"needs an integer as {names[0]}")
        return int(found)

    def flag(self, *names: str, default: bool = False) -> bool:
        """A truth value."""
        found = self.get(*names)
        return default if found is None else bool(found)

    def text(self, *names: str, default: str | None = None) -> str:
        """A word or a string."""
        found = self.get(*names)
        if found is None and default is not None:
            return default
        if not isinstance(found, str):
            raise self.error(f"needs a word as {names[0]}")
        return str(found)

    def dense(self, value: Attribute, shape: ArrayShape | None = None) -> Array:
        """The array of a dense attribute."""
        if not isinstance(value, Dense):
            raise self.error("needs dense<…>")
        kind = shape if shape is not None else value.type
        if not isinstance(kind, ArrayShape):
            raise self.error("needs dense<…> with its type")
        try:
            return dense_values(value.text, kind, self.program.resources)
        except InputError as error:
            raise self.source.error(str(error).removeprefix("MLIR: "), value.position) from error

    # Instructions.

    def emit(
        self, opcode: str, *operands: Instruction, shape: Shape | None = None, **attributes: AttributeValue
    ) -> Instruction:
        """An instruction; its shape is the operation's where none is given."""
        made = Instruction(opcode, opcode, self.shape if shape is None else shape, operands, attributes)
        return self.add(made)

    def add(self, made: Instruction) -> Instruction:
        """An instruction of this operation."""
        made.line = self.source.line(self.operation.position)
        if scope := self.program.scope(self.operation.scope):
            made.metadata = Metadata(op_name=scope)
        return self.frame.builder.add(made)

    def main(self, opcode: str, *operands: Instruction, **attributes: AttributeValue) -> Instruction:
        """The instruction that stands for the operation: with its sharding and its frontend attributes."""
        named = {**self.common(), **attributes}
        return self.add(Instruction(opcode, opcode, self.shape, operands, named))

    def common(self) -> dict[str, AttributeValue]:
        """Attributes that any instruction may have."""
        return common_attributes(self.operation.attributes, self.source, self.operation.position)

    def literal(self, value: Array, shape: ArrayShape) -> Instruction:
        """A constant."""
        return self.add(Instruction("constant", "constant", shape, literal=Literal(shape, value)))

    def constant(self, number: int) -> Array:
        """The value of an operand that must be a constant."""
        found = self.operand(number)
        if found.opcode == "broadcast" and not found.operands[0].dims and UNBOUNDED not in found.dims:
            one = found.operands[0].literal
            if one is not None and one.value is not None and not isinstance(one.value, tuple):
                return np.full(found.dims, one.value)
        if found.literal is None or found.literal.value is None or isinstance(found.literal.value, tuple):
            raise self.unsupported(f"operand {number} is no constant, and sizes of HLO are")
        return found.literal.value

    def region(self, number: int) -> Computation:
        """A region as a computation of its own."""
        if number >= len(self.operation.regions):
            raise self.error(f"needs more than {len(self.operation.regions)} regions")
        return self.program.region(self, self.operation.regions[number])


def common_attributes(
    attributes: dict[str, Attribute], source: Text, position: int
) -> dict[str, AttributeValue]:
    """Sharding, frontend attributes and accuracy of an operation or an argument.

    Raises:
        HloSyntaxError: an unreadable sharding.
    """
    found: dict[str, AttributeValue] = {}
    stated = attributes.get("mhlo.sharding")
    # JAX 0.4 wrote an empty one for arguments of unknown sizes.
    if isinstance(stated, str) and stated:
        found["sharding"] = sharding(stated, source, position)
    listed: list[tuple[str, str]] = []
    noted = attributes.get("mhlo.frontend_attributes")
    if isinstance(noted, dict):
        listed = [(key, quoted(value)) for key, value in noted.items() if isinstance(value, str)]
    shardy = attributes.get("sdy.sharding")
    if isinstance(shardy, Foreign):
        listed.append(("xla.sdy.sharding", quoted(shardy.text)))
    if listed:
        found["frontend_attributes"] = FrontendAttributes(tuple(listed))
    accuracy = attributes.get("result_accuracy")
    if isinstance(accuracy, dict):
        mode = str(accuracy.get("mode", "")).lower()
        if mode not in ("", "default"):
            numbers = {key: float(accuracy.get(key, 0)) for key in ("atol", "rtol")}
            is_mode = mode == "highest"
            found["result_accuracy"] = ResultAccuracy(
                mode if is_mode else None, **numbers, ulps=int(accuracy.get("ulps", 0))
            )
    return found


def quoted(text: str) -> str:
    """A text as the value of a frontend attribute."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def sharding(text: str, source: Text, position: int) -> Sharding:
    """HLO's sharding, which an attribute has as text, and JAX 0.4 had as the bytes of an OpSharding."""
    from hlotool.parser.proto.schema import decode
    from hlotool.parser.proto.submessages import read_sharding

    try:
        if text.startswith("\x08"):
            return read_sharding(decode("OpSharding", text.encode("latin-1"), "mhlo.sharding"))
        bound = known_pieces(False).bound("negate", f", sharding={text}").values["sharding"]
    except (TextError, Doubt, HloSyntaxError, ProtoError, ValueError) as error:
        raise source.error(f"unreadable sharding {text[:60]!r}", position) from error
    assert isinstance(bound, Sharding)
    return bound
