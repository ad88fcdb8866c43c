"""Copies of modules and computations that share nothing that an edit may change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Names, add_computation, computation_names
from hlotool.ir.module import Computation, Instruction, Module, computations_in
from hlotool.ir.walk import call_order

#: Whose callees belong to one caller alone: XLA gives each fusion and asynchronous call a body of its own.
OWNS_CALLEES = frozenset({"fusion", "async-start"})


@dataclass(frozen=True, slots=True)
class Clone:
    """A copy and what became of each part.

    Attributes:
        module: the copy.
        instructions: the copy of each instruction.
        computations: the copy of each computation.
    """

    module: Module
    instructions: Mapping[Instruction, Instruction]
    computations: Mapping[Computation, Computation]


def clone_module(module: Module) -> Clone:
    """A deep copy with the same names; shapes, attribute values and literals are immutable and shared.

    Raises:
        ValueError: a computation calls itself.
    """
    cloner = Cloner()
    for computation in call_order(module):
        cloner.computation(computation)
    copies = [cloner.computations[c] for c in module.computations]
    entry = cloner.computations[module.entry]
    copy = replace(module, computations=copies, entry=entry, attributes=dict(module.attributes))
    return Clone(copy, cloner.instructions, cloner.computations)


@dataclass(slots=True)
class Cloner:
    """Copies computations and instructions, remembering what became of each.

    Attributes:
        instructions: the copy of each instruction; operands that are not here stay as they are.
        computations: the copy of each computation; callees that are not here are called by the copies, too.
    """

    instructions: dict[Instruction, Instruction] = field(default_factory=dict)
    computations: dict[Computation, Computation] = field(default_factory=dict)

    def computation(self, original: Computation) -> Computation:
        """Copy a computation; its callees must have been copied before, or are shared."""
        copies = [self.instruction(i) for i in original.instructions]
        copy = replace(original, instructions=copies, root=self.instructions[original.root])
        self.computations[original] = copy
        return copy

    def instruction(self, original: Instruction) -> Instruction:
        """Copy an instruction whose operands were copied before."""
        copy = replace(
            original,
            operands=self.all_of(original.operands),
            control_predecessors=self.all_of(original.control_predecessors),
            attributes={name: self.attribute(value) for name, value in original.attributes.items()},
        )
        self.instructions[original] = copy
        return copy

    def all_of(self, originals: Iterable[Instruction]) -> tuple[Instruction, ...]:
        """The copies of several instructions."""
        return tuple(self.instructions.get(o, o) for o in originals)

    def attribute(self, value: AttributeValue) -> AttributeValue:
        """An attribute value that calls the copies."""
        if isinstance(value, Computation):
            return self.computations.get(value, value)
        callees = computations_in(value)
        return tuple(self.computations.get(c, c) for c in callees) if callees else value


def clone_computation(module: Module, original: Computation, names: Names | None = None) -> Computation:
    """A copy of one computation as part of the same module, under a new name.

    Fusions and asynchronous calls in it get bodies of their own; other callees are shared.
    """
    names = names or computation_names(module)
    cloner = Cloner()
    own_callees(module, original.instructions, cloner, names)
    return add_computation(module, cloner.computation(original), names)


def own_callees(
    module: Module, instructions: Iterable[Instruction], cloner: Cloner, names: Names | None = None
) -> None:
    """Give the copies of `instructions`, which are still to be made, bodies where these cannot be shared."""
    for instruction in instructions:
        if instruction.opcode in OWNS_CALLEES:
            for callee in instruction.called:
                cloner.computations[callee] = clone_computation(module, callee, names)
