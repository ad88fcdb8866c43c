"""The records between parser and builder, before names are resolved, and the computation being read.

Positions count characters from 0 in the parsed text. Values that need no names (shapes, windows, …) are IR
objects already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from hlotool.errors import HloSyntaxError, Location
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, Shape


class TextError(Exception):
    """The text breaks a rule; the reader adds file, line and caret.

    Args:
        message: what is wrong and what is allowed.
        position: of the offending character, None when it is known only roughly.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class Name(NamedTuple):
    """A name without `%` or `:`, and where it stands."""

    text: str
    position: int
    line: int


class Span(NamedTuple):
    """A piece of the text that is read later: a literal, or an attribute that hlotool does not interpret."""

    start: int
    end: int


class TypedLiteral(NamedTuple):
    """`s32[2]{0} {1, 2}`."""

    shape: ArrayShape
    span: Span


class TypedLiteralTuple(NamedTuple):
    """`( s32[] 1, f32[] 2 )`."""

    elements: tuple[TypedLiteral | TypedLiteralTuple, ...]


class OtherValue(NamedTuple):
    """The text after a key that the grammar does not know."""

    text: str


class CalleeName(NamedTuple):
    """A computation, by name."""

    name: Name


class Predecessors(NamedTuple):
    """`control-predecessors={…}`."""

    names: tuple[Name, ...]


class AttributeSyntax(NamedTuple):
    """`key=value` and where it starts."""

    key: str
    value: Any
    position: int


class OperandSyntax(NamedTuple):
    """An operand: a name, an instruction of its own, or only a shape.

    Attributes:
        shape: None where the text leaves it out.
        name: of an instruction before it.
        call: the instruction of its own.
        elements: `1` and `0` in `name#1#0`, which is an element of an element of a tuple.
    """

    shape: Shape | None
    name: Name | None
    call: CallSyntax | None
    elements: tuple[int, ...] = ()


@dataclass(slots=True)
class CallSyntax:
    """`opcode(operands)`.

    Attributes:
        opcode: as written.
        position: of the opcode.
        line: of the opcode.
        operands: of any opcode but the two that follow.
        literal: of a `constant`.
        parameter_number: of a `parameter`.
    """

    opcode: str
    position: int
    line: int
    operands: tuple[OperandSyntax, ...] = ()
    literal: Span | None = None
    parameter_number: int | None = None


@dataclass(slots=True)
class InstructionSyntax:
    """`ROOT name = shape opcode(operands), attributes`."""

    name: Name
    call: CallSyntax
    shape: Shape | None = None
    is_root: bool = False
    attributes: tuple[AttributeSyntax, ...] = ()


@dataclass(slots=True)
class AnonymousComputation:
    """Instructions in braces where a computation's name could stand."""

    instructions: list[InstructionSyntax]
    position: int
    line: int


@dataclass(slots=True)
class ComputationSyntax:
    """`ENTRY name (parameters) -> result { … }, attributes`; `result` is None without a signature."""

    name: Name
    instructions: list[InstructionSyntax]
    is_entry: bool = False
    result: Shape | None = None
    attributes: tuple[AttributeSyntax, ...] = ()


@dataclass(slots=True)
class Remainder:
    """What follows some instructions of a computation, to the end of the text.

    Attributes:
        continued: more attributes of the last of those instructions.
        instructions: the others of that computation.
        attributes: of the computation.
        computations: after it.
    """

    continued: tuple[AttributeSyntax, ...]
    instructions: list[InstructionSyntax]
    attributes: tuple[AttributeSyntax, ...]
    computations: list[ComputationSyntax]


class FieldRow(NamedTuple):
    """A row of FileLocations or StackFrames."""

    number: int
    fields: dict[str, int]
    position: int


class TablesSyntax(NamedTuple):
    """The four tables of source positions."""

    file_names: dict[int, str]
    function_names: dict[int, str]
    file_locations: list[FieldRow]
    stack_frames: list[FieldRow]


@dataclass(slots=True)
class HeaderSyntax:
    """The HloModule line and the tables."""

    name: Name
    attributes: tuple[AttributeSyntax, ...] = ()
    tables: TablesSyntax | None = None


@dataclass(slots=True)
class ModuleSyntax:
    """A whole text; `header` is None where it has no HloModule line."""

    computations: list[ComputationSyntax] = field(default_factory=list)
    header: HeaderSyntax | None = None


@dataclass(slots=True)
class LoneInstruction:
    """A text that is one instruction, with or without a name."""

    instruction: InstructionSyntax


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the file it came from."""

    text: str
    path: str | None = None

    def error(self, message: str, position: int | None) -> HloSyntaxError:
        """The error to raise for something at `position`; the end of the text when that is None."""
        at = len(self.text.rstrip()) if position is None else position
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start : end if end >= 0 else len(self.text)]
        location = Location(self.path, self.text.count("\n", 0, at) + 1, at - start + 1)
        return HloSyntaxError(message, location, line.rstrip("\r"))


class Scope:
    """A computation while its instructions are read.

    Attributes:
        by_name: what operands may refer to, with `name#index` for the elements that have been referred to.
        has_elements: some have been.
        instructions: in order.
        root: the one marked ROOT.
        parameters: by number.
        makes_parameters: operands that are unknown but have a shape become parameters, as in a text that is a
            single instruction.
    """

    __slots__ = ("by_name", "has_elements", "instructions", "makes_parameters", "parameters", "root")

    def __init__(self, makes_parameters: bool = False) -> None:
        self.by_name: dict[str, Instruction] = {}
        self.has_elements = False
        self.instructions: list[Instruction] = []
        self.root: Instruction | None = None
        self.parameters: dict[int, Instruction] = {}
        self.makes_parameters = makes_parameters

    def add(self, instruction: Instruction, position: int | None) -> None:
        """Put an instruction at the end; its name must be new."""
        if instruction.name in self.by_name:
            raise TextError(f"two instructions are called {instruction.name}", position)
        self.by_name[instruction.name] = instruction
        self.instructions.append(instruction)
        self.has_elements |= "#" in instruction.name

    def add_parameter(self, instruction: Instruction, position: int | None) -> None:
        """Put a parameter at the end; its name and its number must be new."""
        number = instruction.parameter_number
        assert number is not None
        if number < 0:
            raise TextError("a parameter number cannot be negative", position)
        if number in self.parameters:
            raise TextError(f"two parameters have number {number}", position)
        self.add(instruction, position)
        self.parameters[number] = instruction

    def element(self, whole: Instruction, index: int) -> Instruction | None:
        """What `whole#index` refers to, if something has referred to it before."""
        return self.by_name.get(element_name(whole, index))

    def mark_root(self, instruction: Instruction, position: int | None) -> None:
        """Make it the root; there is only one."""
        if self.root is not None:
            raise TextError(f"two ROOT instructions: {self.root.name} is one already", position)
        self.root = instruction

    def truncate(self, length: int) -> None:
        """Forget the instructions from number `length` on."""
        for instruction in self.instructions[length:]:
            if self.by_name.get(instruction.name) is instruction:
                del self.by_name[instruction.name]
            if self.parameters.get(instruction.parameter_number or 0) is instruction:
                del self.parameters[instruction.parameter_number or 0]
            if self.root is instruction:
                self.root = None
        del self.instructions[length:]

    def finish(self, name: str, line: int, position: int | None) -> Computation:
        """The computation; the last instruction is the root unless one is marked."""
        if self.parameters and max(self.parameters) >= len(self.parameters):
            missing = next(n for n in count() if n not in self.parameters)
            raise TextError(
                f"computation {name}: there is no parameter {missing}, but one after it", position
            )
        if self.has_elements:
            self._name_elements()
        return Computation(name, self.instructions, self.root or self.instructions[-1], line=line)

    def _name_elements(self) -> None:
        """Give elements a name of their own, now that all others are known: `while.6_1`, as XLA does."""
        for reference, instruction in [item for item in self.by_name.items() if "#" in item[0]]:
            base = f"{instruction.operands[0].name}_{instruction.attributes['index']}"
            name = base
            for number in count(1):
                if name not in self.by_name:
                    break
                name = f"{base}.{number}"
            del self.by_name[reference]
            instruction.name = name
            self.by_name[name] = instruction


def element_name(whole: Instruction, index: int) -> str:
    """How operands refer to an element of a tuple."""
    return f"{whole.name}#{index}"


@dataclass(slots=True)
class Draft:
    """An instruction whose attributes are not checked yet.

    Attributes:
        name: of the instruction.
        opcode: of the table.
        shape: None where the text leaves it out.
        operands: in order.
        call: as written.
        scope: where it is going to stand.
    """

    name: str
    opcode: str
    shape: Shape | None
    operands: tuple[Instruction, ...]
    call: CallSyntax
    scope: Scope
