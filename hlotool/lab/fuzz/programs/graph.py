"""A program under construction: values to choose from, operands found or made, and operations by opcode.

Shapes are solved for in both directions. Forwards: an operation takes a value that is there, and infers what
it gives. Backwards: it asks for an operand of a type and of dimensions (`array`), which is a value that is
there, or one that is converted, sliced, padded, reshaped and broadcast until it fits, or a new parameter or
constant. What is built is therefore always a valid program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import prod
from typing import TypeAlias, TypeVar

from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES, Class, by_opcode
from hlotool.ir.types import ArrayShape, ElementType, TypeClass
from hlotool.lab.fuzz.programs.draft import Dims, Draft, limit_of


class Graph(Draft):
    """A draft that makes operands of any shape, and computations to call."""

    # Operands that are asked for.

    def array(self, kind: ElementType, dims: Dims) -> Instruction:
        """An array of this type and these dimensions: one that is there, one that is made to fit, a new one.

        Raises:
            Declined: there is no room for it.
        """
        x = self.pick(lambda s: s.element_type is kind and s.dims == dims)
        if x is not None and self.chance(0.7):
            return x
        if self.chance(0.55):
            made = self._made(kind, dims)
            if made is not None:
                return made
        return self.fresh(kind, dims)

    def fresh(self, kind: ElementType, dims: Dims) -> Instruction:
        """A new array: a parameter of the entry, a constant, an iota."""
        if self.preferences.large and kind.is_inexact and (self.is_entry or ArrayShape(kind, dims).size > 64):
            return self._whole(kind, dims)
        if self.is_entry and self._parameters < 8 and self.chance(0.7):
            return self.parameter(ArrayShape(kind, dims))
        if dims and kind is not ElementType.PRED and 0 not in dims and self.chance(0.25):
            dimension = self.rng.randrange(len(dims))
            if dims[dimension] <= limit_of(kind) and kind is not ElementType.F8E8M0FNU:
                return self.iota(kind, dims, dimension)
        if ArrayShape(kind, dims).size <= 64 and self.chance(0.6):
            return self.constant(self.numbers(kind, dims), kind, dims)
        return self.filled(self.number(kind), ArrayShape(kind, dims))

    def _whole(self, kind: ElementType, dims: Dims) -> Instruction:
        """Floats that are whole numbers up to 7: sums of thousands of their products are exact.

        Nothing else is made of the bytes that they are read from, which would crowd out the floats.
        """
        shape, known = ArrayShape(ElementType.S8, dims), len(self.values)
        held = self.parameter(shape) if self.is_entry and self._parameters < 8 else self.filled(3, shape)
        floats = self.convert(self.op("and", held, self.filled(7, shape), reach=7.0), kind)
        self.values[known:] = [floats]
        return floats

    def like(self, x: Instruction) -> Instruction:
        """An array of the type and dimensions of `x`."""
        shape = x.array_shape
        return self.array(shape.element_type, shape.dims)

    def scalar(self, kind: ElementType) -> Instruction:
        """A scalar that is there, or a constant."""
        x = self.pick(lambda s: s.element_type is kind and not s.dims)
        return x if x is not None and self.chance(0.4) else self.constant(self.number(kind), kind)

    def _made(self, kind: ElementType, dims: Dims) -> Instruction | None:
        """Some array made into this type and these dimensions."""
        is_whole = self.preferences.large and kind.is_inexact  # see `_whole`
        x = self.pick(
            lambda s: (
                (s.size > 0 or not prod(dims)) and (s.element_type is kind if is_whole else castable(s, kind))
            )
        )
        if x is None:
            return None
        return self.fit(self.convert(x, kind), dims)

    def fit(self, x: Instruction, dims: Dims) -> Instruction:
        """The elements of `x`, which has some unless `dims` have none, in an array of these dimensions."""
        old = x.array_shape.dims
        if old == dims:
            return x
        if prod(old) == prod(dims):
            return self.reshape(x, dims)
        embedded = _embedding(old, dims)
        if embedded is not None and self.chance(0.8):
            return self.broadcast(x, dims, embedded)
        if len(old) < len(dims):
            x = self.reshape(x, (*[1] * (len(dims) - len(old)), *old))
        while x.array_shape.rank > len(dims):
            cut = x.array_shape.dims
            x = self.reshape(self.sliced(x, (1, *cut[1:])), cut[1:])
        return self._resized(x, dims)

    def sliced(self, x: Instruction, dims: Dims) -> Instruction:
        """The first elements of each dimension, or others."""
        parts = []
        for size, wanted in zip(x.array_shape.dims, dims):
            start = self.rng.randint(0, size - wanted)
            parts.append(SliceDim(start, start + wanted))
        return self.op("slice", x, slice=tuple(parts))

    def _resized(self, x: Instruction, dims: Dims) -> Instruction:
        """Sliced where it is larger, padded where it is smaller."""
        old = x.array_shape.dims
        least = tuple(min(a, b) for a, b in zip(old, dims))
        if least != old:
            x = self.sliced(x, least)
        if least == dims:
            return x
        padding = []
        for size, wanted in zip(least, dims):
            low = self.rng.randint(0, wanted - size)
            padding.append(PaddingDim(low, wanted - size - low))
        value = self.scalar(x.array_shape.element_type)
        return self.op("pad", x, value, padding=tuple(padding))

    # Computations that it calls.

    def helper(self, key: Hashable, make: Callable[[Graph], Instruction], name: str) -> Computation:
        """The computation that `make` builds, once for each `key`.

        Raises:
            Declined: there is no room for it.
        """
        known = self.shared.helpers.get(key)
        if known is None:
            inner = self.inner(name)
            root = make(inner)
            known = self.shared.helpers[key] = inner.built(root)
        return known

    def inner(self, name: str) -> Graph:
        """A computation that this one is going to call."""
        self.shared.callees += 1
        return Graph(f"{name}.{self.shared.callees}", self.shared, self.depth + 1)

    def built(self, root: Instruction) -> Computation:
        """The computation that returns `root`, without what that does not need; parameters stay."""
        self.drop_dead(root)
        return self.builder.build(root)

    def drop_dead(self, root: Instruction) -> None:
        """Remove what `root` does not need, but for parameters; there is room again for as many."""
        needed = {root}
        for instruction in reversed(self.builder.instructions):
            if instruction in needed:
                needed.update(instruction.operands)
        kept = [i for i in self.builder.instructions if i in needed or i.opcode == "parameter"]
        self.shared.room += len(self.builder.instructions) - len(kept)
        self.builder.instructions = kept

    def combiner(self, opcode: str, kind: ElementType) -> Computation:
        """`opcode(a, b)` of two scalars."""

        def make(inner: Graph) -> Instruction:
            a, b = (inner.parameter(ArrayShape(kind, ())) for _ in range(2))
            return inner.op(opcode, a, b)

        return self.helper((opcode, kind), make, opcode)


def castable(shape: ArrayShape, kind: ElementType) -> bool:
    """Whether compilers convert arrays of this shape to `kind`, and it says something."""
    source = shape.element_type
    return source is kind or (
        ElementType.F8E8M0FNU not in (source, kind)
        # XLA's compiler dies of complex to pred.
        and not (source.family is TypeClass.COMPLEX and kind is ElementType.PRED)
    )


def _embedding(old: Dims, dims: Dims) -> Dims | None:
    """Dimensions of `dims` that those of `old` become, in order; None where they do not fit."""
    places, start = [], 0
    for size in old:
        found = next((d for d in range(start, len(dims)) if dims[d] == size), None)
        if found is None:
            return None
        places.append(found)
        start = found + 1
    return tuple(places)


#: Adds one operation of the opcode, on a value that is there, or raises Declined.
Step: TypeAlias = Callable[[Graph, str, Instruction], object]

_Step = TypeVar("_Step", bound=Step)

STEPS: dict[str, Step] = {}

#: How often operations of a class are drawn: what rewrites most have rules for comes first.
_CLASSES = {
    Class.ELEMENTWISE: 30.0, Class.DATA_MOVEMENT: 26.0, Class.INDEXING: 12.0, Class.REDUCTION: 12.0,
    Class.CONTRACTION: 8.0, Class.CONTROL: 6.0, Class.LIBRARY: 3.0, Class.DYNAMIC: 2.0, Class.TUPLE: 1.0,
    Class.SOURCE: 3.0, Class.RANDOM: 1.0, Class.ANNOTATION: 1.0, Class.COLLECTIVE: 2.0,
}  # fmt: skip
#: The same where several devices take part.
_COLLECTIVE_SHARE = 20.0


def step(*opcodes: str) -> Callable[[_Step], _Step]:
    """Register what adds operations of these opcodes."""
    enter = by_opcode(STEPS, opcodes)

    def register(function: _Step) -> _Step:
        enter(function)
        return function

    return register


def draw_opcode(graph: Graph) -> str:
    """A class of operations, then one of the class; the same whatever file registers which first."""
    classes: dict[str, float] = {}
    members: dict[str, list[str]] = {}
    for opcode in sorted(STEPS):
        kind = OPCODES[opcode].opcode_class
        members.setdefault(kind.value, []).append(opcode)
        share = _CLASSES[kind]
        if kind is Class.COLLECTIVE and graph.preferences.devices > 1:
            share = _COLLECTIVE_SHARE if graph.preferences.exchanges else 0.0
        classes[kind.value] = share
    return graph.word(members[graph.preferences.one_of(graph.rng, classes)])
