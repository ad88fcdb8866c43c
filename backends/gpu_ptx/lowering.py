"""From instructions to functions of the machine: rules by opcode, and how they read and write operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hlotool.backends.gpu_ptx.arena import UNSIGNED
from hlotool.backends.gpu_ptx.model import (
    Address,
    GlobalVariable,
    Immediate,
    Instruction,
    Kernel,
    Not,
    Operand,
    Place,
    Register,
    Sink,
    Special,
    Vector,
)
from hlotool.backends.gpu_ptx.types import Type, Values, is_type, type_of
from hlotool.errors import Unsupported

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

#: Executes an instruction for the threads that are active.
Step: TypeAlias = "Callable[[Machine], None]"
Reader: TypeAlias = "Callable[[Machine], Values]"
Writer: TypeAlias = "Callable[[Machine, Values], None]"
Rule: TypeAlias = "Callable[[Site], Step]"

_RULES: dict[tuple[str, str], Rule] = {}

#: Generic addresses of the state spaces that are not global memory (PTX ISA, "Generic Addressing").
WINDOWS = {"shared": 1 << 48, "local": 1 << 49, "param": 1 << 50}


def executes(*opcodes: str, family: str = "") -> Callable[[Rule], Rule]:
    """The decorated rule lowers these opcodes; `family`: `float` or `integer`, where their types decide."""

    def register(rule: Rule) -> Rule:
        for opcode in opcodes:
            assert (opcode, family) not in _RULES, opcode
            _RULES[opcode, family] = rule
        return rule

    return register


class Site:
    """An instruction where it stands, as a rule sees it.

    Attributes:
        types: the modifiers that name types.
        words: the modifiers that name none.
    """

    def __init__(self, kernel: Kernel, instruction: Instruction) -> None:
        self.kernel = kernel
        self.instruction = instruction
        self.types = [word for word in instruction.modifiers if is_type(word)]
        self.words = [word for word in instruction.modifiers if not is_type(word)]

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Its operands."""
        return self.instruction.operands

    def unsupported(self, reason: str) -> Unsupported:
        """The error that says why it is not executed."""
        return self.kernel.unsupported(self.instruction, reason)

    def accept(self, *known: str) -> list[str]:
        """Its words, all of which must be `known`: what a word means is never guessed."""
        for word in self.words:
            if word not in known:
                raise self.unsupported(f".{word} of {self.instruction.opcode} is not known")
        return self.words

    def type(self, place: int = -1) -> Type:
        """The type at `place` among its types."""
        try:
            return type_of(self.types[place])
        except (IndexError, KeyError):
            raise self.unsupported("this type is not known") from None

    def choice(self, *words: str) -> str | None:
        """The one of `words` that it has."""
        return self.instruction.one_of(*words)

    def read(self, place: int, kind: Type) -> Reader:
        """What reads operand `place` as `kind`."""
        if place >= len(self.operands):
            raise self.unsupported("an operand is missing")
        return self.reader(self.operands[place], kind)

    def reader(self, operand: Operand, kind: Type) -> Reader:
        """What reads the values of an operand for the active threads."""
        raw = self._raw(operand, kind)
        if kind.kind in "pbu" and kind.lanes == 1:
            return raw
        decode = kind.decode
        return lambda machine: decode(raw(machine))

    def _raw(self, operand: Operand, kind: Type) -> Reader:
        """What reads the bits of an operand, an unsigned integer of the type's width."""
        dtype = kind.unsigned
        if isinstance(operand, Not):
            inner = self._raw(operand.operand, kind)
            return lambda machine: ~inner(machine)
        if isinstance(operand, Register):
            index = operand.index
            if operand.bits == kind.bits:

                def read(machine: Machine) -> Values:
                    value = machine.registers[index]
                    if value is None:
                        value = machine.undefined(index)
                    return value if machine.active is None or value.ndim == 0 else value[machine.active]

                return read
            if 1 in (operand.bits, kind.bits):
                raise self.unsupported("a predicate has no other type")
            whole = self._raw(operand, type_of(f"b{operand.bits}"))
            return lambda machine: whole(machine).astype(dtype)
        if isinstance(operand, Immediate):
            constant = self._constant(operand, kind)
            return lambda machine: constant
        if isinstance(operand, Special):
            name = operand.name
            if name[1:].rstrip("xyz.") in ("clock", "clock64", "clock_hi", "globaltimer", "smid", "nsmid"):
                raise self.unsupported(f"{name} depends on the hardware")

            def special(machine: Machine) -> Values:
                value = machine.special(name)
                value = value if machine.active is None or value.ndim == 0 else value[machine.active]
                return value if value.dtype == dtype else value.astype(dtype)

            return special
        if isinstance(operand, Place):
            address = dtype(operand.offset)
            return lambda machine: address
        if isinstance(operand, GlobalVariable):
            return lambda machine: dtype(machine.memory.address_of(operand))
        if isinstance(operand, Address):
            base, offset = self._raw(operand.base, kind), dtype(operand.offset % (1 << kind.bits))
            return lambda machine: base(machine) + offset
        raise self.unsupported("this operand is not known here")

    def _constant(self, operand: Immediate, kind: Type) -> Values:
        if kind.kind == "p":
            return np.bool_(operand.value != 0)
        value = operand.value
        if operand.float_bits and kind.kind == "f" and operand.float_bits != kind.bits // kind.lanes:
            raise self.unsupported("a float literal of another type")
        return UNSIGNED[kind.bits](value % (1 << kind.bits))

    def write(self, place: int, kind: Type) -> Writer:
        """What writes values of `kind` to operand `place`."""
        return self.writer(self.operands[place], kind)

    def writer(self, operand: Operand, kind: Type) -> Writer:
        """What writes values to a register: wider ones are filled with the sign or with zeros."""
        if isinstance(operand, Sink):
            return lambda machine, values: None
        if not isinstance(operand, Register):
            raise self.unsupported("a destination has to be a register")
        index, bits, encode = operand.index, operand.bits, kind.encode
        if (bits == 1) != (kind.bits == 1) or bits < kind.bits:
            raise self.unsupported(f"a register of {bits} bits cannot hold .{kind.name}")
        if bits == kind.bits:
            if kind.kind in "pbu" and kind.lanes == 1:
                return lambda machine, values: machine.put(index, values)
            return lambda machine, values: machine.put(index, encode(values))
        wide = np.dtype(f"i{bits // 8}") if kind.kind == "s" else np.dtype(f"u{bits // 8}")
        unsigned = UNSIGNED[bits]
        if kind.kind == "s":
            return lambda machine, values: machine.put(index, values.astype(wide).view(unsigned))
        return lambda machine, values: machine.put(index, encode(values).astype(wide))

    def address(self, operand: Operand) -> Reader:
        """What computes the addresses of `[base + offset]`, 64-bit integers."""
        if not isinstance(operand, Address):
            raise self.unsupported("this address is not known")
        bits = operand.base.bits if isinstance(operand.base, Register) else 64
        base, offset = self._raw(operand.base, type_of(f"b{bits}")), np.int64(operand.offset)

        def addresses(machine: Machine) -> Values:
            found = base(machine)
            found = found.view(np.int64) if bits == 64 else found.astype(np.int64)
            return found + offset

        return addresses

    def elements(self, place: int) -> tuple[Operand, ...]:
        """The operands in braces at `place`, or the one that stands there."""
        operand = self.operands[place]
        return operand.elements if isinstance(operand, Vector) else (operand,)


def elementwise(site: Site, result: Type, sources: list[Type], function: Callable[..., Values]) -> Step:
    """Operand 0 becomes `function` of the operands behind it."""
    reads = [site.read(place + 1, kind) for place, kind in enumerate(sources)]
    write = site.write(0, result)
    return computed(reads, write, function)


def computed(reads: list[Reader], write: Writer, function: Callable[..., Values]) -> Step:
    """What reads, computes and writes.

    Scalars are given as arrays of one element where there are only scalars.
    """

    def step(machine: Machine) -> None:
        values = [read(machine) for read in reads]
        if all(value.ndim == 0 for value in values):
            found = function(*[value.reshape(1) for value in values])
            write(machine, found[0] if found.ndim == 1 else found)
            return
        found = function(*values)
        if found.base is not None or any(found is value for value in values):
            found = found.copy()  # registers never share their arrays: they are written in place
        write(machine, found)

    return step


def lower(kernel: Kernel, instruction: Instruction) -> Step:
    """The function that executes an instruction.

    Raises:
        Unsupported: no rule knows it.
    """
    site = Site(kernel, instruction)
    types = site.types
    family = "float" if types and _is_float(types[-1]) else "integer"
    rule: Any = _RULES.get((instruction.opcode, family)) or _RULES.get((instruction.opcode, ""))
    if rule is None:
        raise site.unsupported("this instruction is not known")
    step: Step = rule(site)
    return step


def _is_float(word: str) -> bool:
    return word[0] in "ft" or word.startswith("bf")
