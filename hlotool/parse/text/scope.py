"""A computation while its instructions are read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import Shape
from hlotool.parse.text.syntax import CallSyntax, TextError


class Scope:
    """A computation while its instructions are read.

    Attributes:
        by_name: what operands may refer to, with `name#index` for the elements that have been referred to.
        instructions: in order.
        root: the one marked ROOT.
        parameters: by number.
        makes_parameters: operands that are unknown but have a shape become parameters, as in a text that is a
            single instruction.
    """

    __slots__ = ("by_name", "instructions", "makes_parameters", "parameters", "root")

    def __init__(self, makes_parameters: bool = False) -> None:
        self.by_name: dict[str, Instruction] = {}
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

    def add_parameter(self, instruction: Instruction, position: int | None) -> None:
        """Put a parameter at the end; its name and its number must be new."""
        number = instruction.parameter_number
        assert number is not None
        if number < 0:
            raise TextError("a parameter number cannot be negative", position)
        if number in self.parameters:
            raise TextError(f"two parameters have number {number}", position)
        self.parameters[number] = instruction
        self.add(instruction, position)

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
        missing = next((n for n in range(len(self.parameters)) if n not in self.parameters), None)
        if missing is not None:
            raise TextError(
                f"computation {name}: there is no parameter {missing}, but one after it", position
            )
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
