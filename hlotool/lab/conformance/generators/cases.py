"""Random values of every element type, and seeded modules of one instruction or a few, with their inputs.

A case is reproduced by its number and seed: `case(1234, seed=0)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TypeAlias

import numpy as np

from hlotool.ir.arrays import DTYPES, Array, integer_limits
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, Layout, Shape
from hlotool.parser.reader import parse_module

Rng: TypeAlias = np.random.Generator

SIGNED = ("s2", "s4", "s8", "s16", "s32", "s64")
UNSIGNED = ("u2", "u4", "u8", "u16", "u32", "u64")
INTEGERS = (*SIGNED, *UNSIGNED)
F8 = ("f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2", "f8e5m2fnuz")
NARROW = ("f4e2m1fn", *F8, "f8e8m0fnu")
#: The floats that programs compute with.
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
ALL = ("pred", *INTEGERS, *NARROW, *FLOATS, *COMPLEX)


@np.errstate(all="ignore")
def values(
    rng: Rng, kind: str, dims: tuple[int, ...], *, corners: float = 0.3, limit: float = 0, spread: float = 3
) -> Array:
    """An array of element type `kind`.

    Args:
        rng: source of randomness.
        kind: element type.
        dims: sizes.
        corners: share of elements that are corner values (NaN, infinities, limits, zeros).
        limit: integers below this magnitude only; 0 for their whole range.
        spread: floats are normally distributed times 10 to the power of up to this.
    """
    if ELEMENT_TYPES[kind].is_inexact:
        scale = 10.0 ** rng.uniform(-spread, spread, dims)
        wide = random_array(rng, "c128" if ELEMENT_TYPES[kind].is_complex else "f64", dims) * scale
        drawn = rounded(np.asarray(wide), kind)
    else:
        drawn = np.asarray(random_array(rng, kind, dims, int(limit)))
    special = corner_values(kind)
    if not corners or not drawn.size or limit:
        return drawn
    chosen = special[rng.integers(0, len(special), drawn.shape)]
    return np.asarray(np.where(rng.random(drawn.shape) < corners, chosen, drawn))


def rounded(wide: Array, kind: str) -> Array:
    """f64 values in another type, by way of f32 for the narrow ones."""
    dtype = DTYPES[ELEMENT_TYPES[kind]]
    return (
        wide.astype(np.float32).astype(dtype) if ELEMENT_TYPES[kind].is_narrow_float else wide.astype(dtype)
    )


_INTEGERS = (0, 1, -1, 2, -2, 3, 5, 7, -7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, -127, 128, -128, 255)
_LIMITS = tuple(
    sign * (2**bits) + step for bits in (15, 16, 31, 32, 63) for sign in (1, -1) for step in (-1, 0)
)
_REALS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 3.7, -3.7, 1e-3, 1e3, 100.0, -100.0),
    *(np.inf, -np.inf, np.nan, 1e30, -1e30, 300.0, 65520.0, 2.0**31, -(2.0**31), 2.0**32, 9.3e18, -9.3e18),
    *(1.9e19, 0.1, 88.0, -88.0, 89.0, 7.0, 8.0, 9.0, 15.0, 2.0**23 + 1, -(2.0**23) - 1),
)
_PARTS = (0.0, -0.0, 1.0, -2.5, 0.75, np.inf, -np.inf, np.nan, 1e30)


def corner_values(name: str) -> Array:
    """Values of a type where mistakes show: zeros, limits, ties, NaN; all values of types up to 8 bits."""
    kind, dtype = ELEMENT_TYPES[name], DTYPES[ELEMENT_TYPES[name]]
    if kind is ElementType.PRED:
        return np.array([False, True])
    if kind.is_complex:
        return np.array([complex(a, b) for a in _PARTS for b in _PARTS], dtype)
    if kind.is_floating:
        if kind.bits <= 8:
            return np.arange(1 << kind.value_bits, dtype=np.uint8).view(dtype)
        with np.errstate(all="ignore"):
            return np.array(_REALS).astype(dtype if name == "f64" else np.float32).astype(dtype)
    low, high = integer_limits(kind)
    inside = sorted({v for v in (*_INTEGERS, *_LIMITS) if low <= v <= high} | {low, high})
    return np.array(inside, np.int64 if low < 0 else np.uint64).astype(dtype)


def random_array(rng: np.random.Generator, name: str, shape: tuple[int, ...], limit: int = 0) -> Array:
    """Values of every magnitude that suits the type; integers over their range, or below `limit`."""
    kind = ELEMENT_TYPES[name]
    if kind is ElementType.PRED:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if kind.is_integer:
        low, high = integer_limits(kind)
        if limit:
            low, high = max(low, -limit), min(high, limit)
        return rng.integers(low, high, shape, np.int64 if low < 0 else np.uint64, endpoint=True).astype(
            DTYPES[kind]
        )
    if kind.is_complex:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(DTYPES[kind])
    return rng.standard_normal(shape).astype(np.float32).astype(DTYPES[kind])


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
    for room in ("elementwise", "structure", "arrays", "windows"):
        import_module(f"hlotool.lab.conformance.generators.{room}")
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
