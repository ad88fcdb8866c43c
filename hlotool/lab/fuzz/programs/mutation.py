"""Real programs, changed: parts of them, with other constants, types, orders, and parts of other programs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hlotool.facts.trip_counts import trip_count
from hlotool.ir.attributes import AttributeValue, PaddingDim, SliceDim
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_calls import cone
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.ir.verifier import verify
from hlotool.lab.fuzz.programs.draft import GIVEN, Declined, Shared, typed
from hlotool.lab.fuzz.programs.drawn import finished
from hlotool.lab.fuzz.programs.graph import STEPS, Graph, castable, draw_opcode
from hlotool.lab.fuzz.programs.idioms import IDIOMS
from hlotool.lab.fuzz.programs.limits import MOST_ELEMENTS, Preferences
from hlotool.lab.fuzz.programs.transplant import Transplant

#: A loop that runs longer, or for an unknown time, is not run: a changed constant may have made it endless.
_MOST_TRIPS = 64

#: Attributes that name the dimensions that operand and indices share.
_BATCHES = {
    "gather": ("operand_batching_dims", "start_indices_batching_dims"),
    "scatter": ("input_batching_dims", "scatter_indices_batching_dims"),
}

#: What a type is narrowed to; and widened, where arithmetic then does not wrap or round as it did.
_NARROWER: Mapping[str, tuple[str, ...]] = {
    "f64": ("f32", "f16"), "f32": ("bf16", "f16", "f64"), "f16": ("bf16", "f8e5m2"),
    "bf16": ("f8e4m3fn", "f16"),
    "s64": ("s32", "u64", "s8"), "s32": ("s16", "s8", "u32", "s64"), "s16": ("s8", "u8"), "s8": ("s4", "u8"),
    "u64": ("u32", "s64"), "u32": ("u16", "u8", "s32"), "u16": ("u8", "s8"), "u8": ("u4", "s8"),
    "c128": ("c64",), "c64": ("c128",), "s4": ("s8",), "u4": ("u8",),
}  # fmt: skip


def mutated(
    rng: random.Random, preferences: Preferences, most: int, seed: Module, donors: Sequence[Module]
) -> tuple[Module, frozenset[str]] | None:
    """A part of `seed` with a few changes; None where nothing valid came of it.

    Args:
        rng: source of all choices.
        preferences: what is chosen more often.
        most: instructions.
        seed: the program.
        donors: programs whose parts may be spliced in.
    """
    shared = Shared(rng, preferences, most - 1)
    graph = Graph("main", shared)
    instructions = _part(rng, seed, most * 2 // 3)
    mutator = Mutator(graph, donors, changes=rng.choice([1, 1, 2, 3]), among=len(instructions))
    if any(i.opcode == "while" for i in instructions):
        mutator.keeps_numbers = True
    transplant = Transplant(graph, _sizes(rng, instructions), mutator.change)
    transplant.carry_all(instructions)
    if not any(v.opcode not in GIVEN for v in graph.values):
        return None
    module = finished(graph)
    if verify(module) or not all(_ends(i) and batches_fit(i) for i in module.instructions()):
        return None
    if preferences.integers_only and holds_floats(module):
        return None
    return module, frozenset(shared.idioms)


def holds_floats(module: Module) -> bool:
    """Whether some value of the program is a float."""
    shapes = (shape for i in module.instructions() for shape in array_shapes(i.shape))
    return any(shape.element_type.is_inexact for shape in shapes)


def _part(rng: random.Random, seed: Module, most: int) -> list[Instruction]:
    """The entry, or what one of its instructions needs within a few steps."""
    instructions = seed.entry.instructions
    if len(instructions) <= most:
        return instructions
    for height in (6, 4, 3, 2, 1):
        found = cone([rng.choice(instructions)], height=height)
        if 2 <= len(found) <= most:
            return found
    return found[-most:]


def _sizes(rng: random.Random, instructions: Sequence[Instruction]) -> dict[int, int]:
    """Smaller sizes for all that are large, where some array is too large; equal ones stay equal."""
    shapes = [shape for i in instructions for shape in array_shapes(i.shape)]
    if all(shape.size <= MOST_ELEMENTS for shape in shapes):
        return {}
    large = sorted({n for shape in shapes for n in shape.dims if n > 6})
    return {n: rng.choice([2, 3, 4, 5, 6, 7, 8]) for n in large}


def _ends(instruction: Instruction) -> bool:
    """Whether it is no loop, or one that is known to end soon."""
    if instruction.opcode != "while":
        return True
    trips = trip_count(instruction)
    return trips is not None and trips <= _MOST_TRIPS


def batches_fit(instruction: Instruction) -> bool:
    """Whether the dimensions that a gather or scatter shares with its indices have the sizes of these.

    XLA's verifier does not ask that of a scatter, whose meaning is then undefined.
    """
    dims = _BATCHES.get(instruction.opcode)
    if dims is None:
        return True
    mine, theirs = (instruction.integers(name, ()) for name in dims)
    x, indices = instruction.operands[0], instruction.operands[len(instruction.operands) // 2]
    return [x.dims[d] for d in mine] == [indices.dims[d] for d in theirs]


class Mutator:
    """Changes some of the instructions that a transplant carries.

    Args:
        graph: that takes them.
        donors: programs whose parts may be spliced in.
        changes: how many are wanted.
        among: how many instructions there are.
    """

    #: Loops count with these numbers: they stay what they are.
    keeps_numbers = False

    def __init__(self, graph: Graph, donors: Sequence[Module], changes: int, among: int) -> None:
        self._graph = graph
        self._donors = donors
        self._share = min(1.0, changes / max(1, among))

    def change(self, original: Instruction, carried: Instruction) -> Instruction:
        """`carried`, or something computed of it."""
        graph = self._graph
        if carried.opcode == "parameter" or not graph.chance(self._share):
            return carried
        if self.keeps_numbers and carried.array_shape.element_type.is_integer and not carried.dims:
            return carried
        how = graph.word("boundary narrowed repeated permuted idiom step donor attribute")
        changed = graph.attempt(lambda: getattr(self, f"_{how}")(carried))
        return carried if changed is None else self._kept(carried, changed)

    def _kept(self, carried: Instruction, changed: Instruction) -> Instruction:
        """Others read the new shape, if they can; else it is made into the old one."""
        graph, old = self._graph, carried.array_shape
        if changed.shape == old or graph.chance(0.4):
            return changed
        new = changed.array_shape
        if not castable(new, old.element_type) or (not new.size and old.size):
            return carried
        made = graph.attempt(lambda: graph.fit(graph.convert(changed, old.element_type), old.dims))
        return carried if made is None else made

    def _boundary(self, x: Instruction) -> Instruction:
        """A constant at the end of its type, or one element of it; else an operation with such a constant."""
        graph, shape = self._graph, x.array_shape
        kind = shape.element_type
        if x.opcode == "constant" and x.literal is not None:
            value: Any = x.literal.array.copy()
            if not value.size:
                raise Declined("nothing to change")
            value[tuple(graph.rng.randrange(n) for n in shape.dims)] = graph.number(kind)
            return graph.constant(value, kind, shape.dims)
        opcode = "or" if kind is ElementType.PRED else graph.word("add multiply")
        reach = graph.reach_of(x) * 4 + 4
        return graph.op(opcode, x, graph.filled(graph.number(kind), shape), reach=reach)

    def _narrowed(self, x: Instruction) -> Instruction:
        """Another type of the same family."""
        options = _NARROWER.get(x.array_shape.element_type.value)
        if options is None:
            raise Declined("nothing is narrower")
        return self._graph.convert(x, self._graph.choose(typed(*options)))

    def _repeated(self, x: Instruction) -> Instruction:
        """The same operation on its own result."""
        if not x.operands or x.operands[0].shape != x.shape or x.opcode in opcodes_with(Trait.CONTROL_FLOW):
            raise Declined("takes something else than it gives")
        operands = (x, *x.operands[1:])
        return self._graph.with_attributes(x.opcode, operands, x.attributes, x.shape)

    def _permuted(self, x: Instruction) -> Instruction:
        """Dimensions in another order."""
        rank = x.array_shape.rank
        if rank < 2:
            raise Declined("nothing to permute")
        order = tuple(self._graph.rng.sample(range(rank), rank))
        y = self._graph.op("transpose", x, dimensions=order)
        if self._graph.chance():
            return y
        y = self._graph.op("reverse", y, dimensions=(self._graph.rng.randrange(rank),))
        return self._graph.op("transpose", y, dimensions=tuple(order.index(d) for d in range(rank)))

    def _idiom(self, x: Instruction) -> Instruction:
        """A pattern on the value."""
        graph = self._graph
        fitting = [i for i in IDIOMS.values() if i.fits(x.array_shape) and not i.several]
        if not fitting:
            raise Declined("no pattern is for such an array")
        chosen = fitting[graph.rng.randrange(len(fitting))]
        chosen.emit(graph, x)
        graph.shared.idioms.add(chosen.name)
        return graph.values[-1]

    def _step(self, x: Instruction) -> Instruction:
        """Any operation on the value."""
        opcode = draw_opcode(self._graph)
        STEPS[opcode](self._graph, opcode, x)
        return self._graph.values[-1]

    def _donor(self, x: Instruction) -> Instruction:
        """A part of another program, one of whose inputs is the value."""
        graph = self._graph
        if not self._donors:
            raise Declined("there is no other program")
        donor = graph.choose(self._donors)
        roots = [i for i in donor.entry.instructions if isinstance(i.shape, ArrayShape) and i.operands]
        if not roots:
            raise Declined("nothing to take")
        root = graph.choose(roots)
        part = cone([root], height=graph.choose([1, 2, 3]))[-8:]
        inputs = [o for i in part for o in i.operands if o not in part and isinstance(o.shape, ArrayShape)]
        transplant = Transplant(graph, _sizes(graph.rng, [*part, *inputs]))
        if inputs:
            transplant.replace(graph.choose(inputs), x)
        transplant.carry_all(part)
        end = transplant.became(root)
        if end is None:
            raise Declined("it could not be carried")
        return end

    def _attribute(self, x: Instruction) -> Instruction:
        """One number or word of an attribute is another one."""
        graph = self._graph
        found = {name: _other(graph, name, value) for name, value in x.attributes.items()}
        changed = {name: value for name, value in found.items() if value is not None}
        if not changed:
            raise Declined("nothing to change")
        name = graph.choose(sorted(changed))
        attributes = with_attributes(x.attributes, **{name: changed[name]})
        return graph.with_attributes(x.opcode, x.operands, attributes)


def _other(graph: Graph, name: str, value: AttributeValue) -> AttributeValue | None:
    """Another value of an attribute; None of what is left as it is. Not each one fits its operands."""
    rng = graph.rng
    if name == "direction" and isinstance(value, str) and value in ("LT", "LE", "GT", "GE", "EQ", "NE"):
        return rng.choice(["LT", "LE", "GT", "GE", "EQ", "NE"])
    if name == "iota_dimension" and isinstance(value, int):
        return max(0, value - 1)
    if not isinstance(value, tuple) or not value:
        return None
    at = rng.randrange(len(value))
    part: object = value[at]
    if isinstance(part, SliceDim):
        shifted = replace(
            part, start=max(0, part.start + rng.choice([-1, 1])), stride=rng.choice([1, part.stride, 2])
        )
        return (*value[:at], shifted, *value[at + 1 :])
    if isinstance(part, PaddingDim):
        low, interior = part.low + rng.choice([-1, 1]), rng.choice([part.interior, 0, 1])
        return (*value[:at], PaddingDim(low, part.high, interior), *value[at + 1 :])
    if name == "dimensions":
        numbers = [n for n in value if isinstance(n, int)]
        return tuple(rng.sample(numbers, len(numbers)))
    return None
