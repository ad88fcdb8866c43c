"""What PTX text is read into: programs of kernels of instructions.

Registers are numbered per kernel, branch targets are indices into the kernel's code, device functions are
already expanded where they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hlotool.errors import Location, Unsupported


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register; predicates have one bit."""

    name: str
    bits: int
    index: int


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: an integer, or the bits of a float of `float_bits` bits."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    """A register that the hardware sets, such as `%tid.x`."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, or a label, by the name that it has in the text."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """The address of a variable of a state space: `offset` within what the space holds for the kernel."""

    space: str
    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`."""

    base: Operand
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, …}`; also the coordinates of a tensor address."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`destination|predicate`."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: the result is dropped."""


@dataclass(frozen=True, slots=True)
class Target:
    """Index of the instruction that a branch goes to."""

    index: int


Operand: TypeAlias = (
    "Register | Immediate | Special | Symbol | Place | Address | Vector | Pair | Not | Sink | Target"
    " | GlobalVariable"
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        opcode: the first word, such as `ld`.
        modifiers: the words after it, such as `("global", "v2", "b32")`.
        operands: as written, destinations first.
        predicate: it is executed where this holds.
        line: line of the text, from 1.
        text: as written, in one line.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    predicate: Register | Not | None
    line: int
    text: str

    def has(self, modifier: str) -> bool:
        """It has that word."""
        return modifier in self.modifiers

    def one_of(self, *words: str) -> str | None:
        """The first modifier that is one of `words`."""
        return next((word for word in self.modifiers if word in words), None)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel: `size` bytes at `offset` of its parameter space."""

    name: str
    bits: int
    alignment: int
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class GlobalVariable:
    """A variable of space `global` or `const`; `initial` holds all of its bytes, or None where none are
    given.
    """

    program: str
    name: str
    space: str
    size: int
    alignment: int
    initial: bytes | None


@dataclass(frozen=True)
class Kernel:
    """An entry point.

    Attributes:
        program: name of the text that it stands in.
        shared_bytes: static shared memory; dynamic shared memory begins behind it.
        local_bytes: local memory of each thread.
        max_threads: the largest block that it was compiled for (`.maxntid`, `.reqntid`), or None.
        register_bits: width of each register.
        is_dynamic: it uses shared memory whose extent the launch says.
    """

    program: str
    name: str
    line: int
    parameters: tuple[Parameter, ...]
    code: tuple[Instruction, ...]
    register_bits: tuple[int, ...]
    shared_bytes: int
    local_bytes: int
    max_threads: int | None
    required_block: tuple[int, int, int] | None = None
    is_dynamic: bool = False
    compiled: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def parameter_bytes(self) -> int:
        """Size of the parameter space."""
        return max((parameter.offset + parameter.size for parameter in self.parameters), default=0)

    def unsupported(self, instruction: Instruction, reason: str) -> Unsupported:
        """The error that says that `instruction` cannot be executed."""
        return unsupported(self.program, instruction.line, instruction.text, reason)


@dataclass(frozen=True)
class PtxProgram:
    """A PTX module."""

    name: str
    version: str
    target: str
    kernels: Mapping[str, Kernel]
    globals: Mapping[str, GlobalVariable]


def unsupported(program: str, line: int, text: str, reason: str) -> Unsupported:
    """PTX that is not executed: where it stands and what it says."""
    return Unsupported(f"{reason}: {text}", location=Location(program, line))
