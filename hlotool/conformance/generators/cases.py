"""Seeded single-instruction (and small composed) modules with inputs: what is compared with real XLA.

A case is reproduced by its number and seed: `case(1234, seed=0)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TypeAlias

import numpy as np

from hlotool.conformance.generators.operands import Rng, values
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.builder import Builder, array
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, Layout, Shape
from hlotool.parse.reader import parse_module

#: The cases that run everywhere: seed 0, numbers below this.
QUICK = 600


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A module with its arguments.

    Attributes:
        number: with the seed, names the case.
        opcode: what it is about.
        module: one entry computation and what it calls; all parameters are arrays.
        arguments: one per parameter.
    """

    number: int
    opcode: str
    module: Module
    arguments: list[Array]

    def __str__(self) -> str:
        shown = "\n".join(f"argument {i}: {a!r}" for i, a in enumerate(self.arguments))
        return f"case {self.number} ({self.opcode})\n{self.module.to_text()}{shown}"

    @property
    def instruction(self) -> Instruction:
        """The instruction that the case is about: the last one of its opcode."""
        found = [i for i in self.module.entry.instructions if i.opcode == self.opcode]
        return found[-1] if found else self.module.entry.root


class Draft:
    """A case in the making: instructions are added to its entry, the last one becomes the root.

    Attributes:
        rng: where all choices come from.
        builder: of the entry.
        arguments: so far.
    """

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.builder = Builder("entry")
        self.arguments: list[Array] = []

    def argument(self, kind: str, data: Array, layout: Layout | None = None) -> Instruction:
        """A parameter of element type `kind` with a given value."""
        shape = ArrayShape(array(kind).element_type, data.shape, layout=layout)
        parameter = self.builder.parameter(len(self.arguments), shape, f"p{len(self.arguments)}")
        self.arguments.append(data)
        return parameter

    def operand(self, kind: str, dims: tuple[int, ...], **choices: float) -> Instruction:
        """A parameter with random values; see `operands.values`."""
        return self.argument(kind, values(self.rng, kind, dims, **choices))

    def op(
        self,
        opcode: str,
        *operands: Instruction,
        shape: Shape | None = None,
        name: str | None = None,
        **attributes: AttributeValue,
    ) -> Instruction:
        """Any other instruction; its shape is inferred unless given."""
        return self.builder.op(opcode, *operands, shape=shape, name=name, **attributes)

    def choice(self, options: Iterable[str]) -> str:
        """One of several words."""
        return str(self.rng.choice(list(options)))

    def chance(self, probability: float = 0.5) -> bool:
        """Whether something happens."""
        return bool(self.rng.random() < probability)

    def size(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def dims(
        self, low_rank: int = 0, high_rank: int = 3, high: int = 5, empty: float = 0.05
    ) -> tuple[int, ...]:
        """Random dimensions; each is 0 with probability `empty`."""
        rank = self.size(low_rank, high_rank)
        return tuple(0 if self.chance(empty) else self.size(1, high) for _ in range(rank))


Generator: TypeAlias = Callable[[Draft, str], None]

_GENERATORS: dict[str, Generator] = {}


def generates(*opcodes: str) -> Callable[[Generator], Generator]:
    """Register a function that adds a random instruction of one of `opcodes` to a draft."""

    def register(generator: Generator) -> Generator:
        for opcode in opcodes:
            assert opcode not in _GENERATORS, opcode
            _GENERATORS[opcode] = generator
        return generator

    return register


@cache
def generators() -> dict[str, Generator]:
    """All generators by opcode, in alphabetical order."""
    for room in ("elementwise", "movement", "indexing", "reductions", "control", "libraries"):
        import_module(f"hlotool.conformance.generators.{room}")
    return dict(sorted(_GENERATORS.items()))


def case(number: int, seed: int = 0) -> Case:
    """The case of that number: opcodes take turns."""
    rng = np.random.default_rng([seed, number])
    names = list(generators())
    opcode = names[number % len(names)]
    draft = Draft(rng)
    generators()[opcode](draft, opcode)
    module = draft.builder.build_module()
    return Case(number, opcode, module, draft.arguments)


def scalar_computation(text: str) -> Computation:
    """The entry of a small module, as what another one applies."""
    return parse_module(text).entry


def binary(opcode: str, kind: str, suffix: str = "", result: str | None = None) -> Computation:
    """f(a, b) of one instruction."""
    return scalar_computation(
        f"{opcode} {{\n  a = {kind}[] parameter(0)\n  b = {kind}[] parameter(1)\n"
        f"  ROOT r = {result or kind}[] {opcode}(a, b){suffix}\n}}"
    )
