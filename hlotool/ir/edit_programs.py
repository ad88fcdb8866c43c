"""Edits of whole programs: copies, one caller for each computation, dead code, the entry's signature.

Copies share nothing that an edit may change. In a flattened copy every computation that runs step by step
has one caller: then an instruction stands for one place of the program, and what a probe sees of it in one
iteration of the loops around it is one value. Dead are instructions, computations and parameters of fusions
that are not used. A change of the entry's parameters changes the header too, which names parameters by
number: `entry_computation_layout`, `input_output_alias`, `buffer_donor`,
`allow_spmd_sharding_propagation_to_parameters`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from msgspec import Struct, field, structs

from hlotool.errors import Unsupported
from hlotool.ir.attributes import AttributeValue, BufferDonor, EntryLayout, ParameterAlias
from hlotool.ir.edit import (
    Editor,
    Names,
    add_computation,
    computation_names,
    editing,
    with_attributes,
)
from hlotool.ir.module import Computation, Instruction, Module, computations_in
from hlotool.ir.types import Shape
from hlotool.ir.walk import Context, call_order, call_sites, context_of_callees, reachable

#: Whose callees belong to one caller alone: XLA gives each fusion and asynchronous call a body of its own.
OWNS_CALLEES = frozenset({"fusion", "async-start"})


class Clone(Struct, frozen=True):
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


class Cloner(Struct):
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


#: Instructions of a flattened program: beyond it, functions call functions too often.
MOST_INSTRUCTIONS = 400_000


class Flattened(Struct, frozen=True):
    """The copy.

    Attributes:
        module: the copy; scalar computations (`to_apply` of a reduction) are those of the original.
        originals: what each of its instructions is a copy of.
    """

    module: Module
    originals: dict[Instruction, Instruction]


def flatten_calls(module: Module) -> Flattened:
    """Give every call a computation of its own.

    Raises:
        ValueError: a computation calls itself, or there would be more than MOST_INSTRUCTIONS.
    """
    reachable(module.entry)  # raises where a computation calls itself
    flattener = _Flattener()
    entry = flattener.copy(module.entry)
    copy = replace(module, computations=reachable(entry), entry=entry)
    return Flattened(copy, flattener.originals)


def flattened(module: Module) -> Flattened:
    """The same of a program that is to be executed.

    Raises:
        Unsupported: functions call functions so often that they cannot be distinguished.
    """
    try:
        return flatten_calls(module)
    except ValueError as error:
        raise Unsupported(str(error)) from error


def _runs(instruction: Instruction) -> bool:
    """Whether what it calls runs step by step."""
    return context_of_callees(instruction) is not Context.EMBEDDED


class _Flattener:
    def __init__(self) -> None:
        self.originals: dict[Instruction, Instruction] = {}
        self._names = Names(())

    def copy(self, original: Computation) -> Computation:
        """A copy with copies of what it calls."""
        cloner = Cloner()
        if len(self.originals) > MOST_INSTRUCTIONS:
            raise ValueError(f"more than {MOST_INSTRUCTIONS} instructions when every call is counted")
        for instruction in original.instructions:
            if _runs(instruction):
                cloner.computations.update((c, self.copy(c)) for c in dict.fromkeys(instruction.called))
            self.originals[cloner.instruction(instruction)] = instruction
        return replace(
            original,
            name=self._names.fresh(original.name),
            instructions=[cloner.instructions[i] for i in original.instructions],
            root=cloner.instructions[original.root],
        )


#: Asked before each removal.
May: TypeAlias = Callable[[str], bool]


def _always(_: str) -> bool:
    return True


def remove_dead_instructions(edit: Editor, may: May = _always) -> int:
    """Remove all that neither the root nor an acting instruction needs; returns how many.

    What waited for a removed instruction waits for what that one had to wait for.
    """
    removed = 0
    for instruction in reversed(list(edit)):
        if edit.is_removable(instruction) and may("instruction"):
            edit.remove(instruction)
            removed += 1
    return removed


def remove_dead_computations(module: Module, may: May = _always) -> int:
    """Remove the computations that the entry does not reach; returns how many."""
    alive = set(reachable(module.entry))
    dead = {c for c in reversed(module.computations) if c not in alive and may("computation")}
    if dead:
        # Where not all may go, callees of those that stay must stay, too.
        kept = [c for c in module.computations if c not in dead]
        needed = {c for one in kept for c in reachable(one)}
        module.computations = [c for c in module.computations if c in needed]
    return len(dead)


def remove_dead_code(module: Module, may: May = _always) -> int:
    """Remove dead instructions everywhere, dead parameters of fusions, then dead computations.

    Args:
        module: changed in place.
        may: asked before each removal of an "instruction", "parameter" or "computation".

    Returns:
        how many are gone.
    """
    removed = remove_dead_computations(module, may)
    # Callers first: what only a removed call needed is dead, too.
    for computation in reversed(list(module.computations)):
        with editing(computation) as edit:
            removed += remove_dead_instructions(edit, may)
    removed += remove_dead_computations(module, may)
    return removed + remove_dead_fusion_parameters(module, may)


def remove_dead_fusion_parameters(module: Module, may: May = _always) -> int:
    """Remove parameters that a fused computation does not read, for XLA allows none, and then dead code."""
    removed = 0
    for computation, fusions in fusions_of(module).items():
        dead = dead_parameters(computation)
        aliased = any("output_to_operand_aliasing" in f.attributes for f in fusions)
        if dead and not aliased and may("parameter"):
            drop_parameters(computation, dead)
            for fusion in fusions:
                fusion.operands = without(fusion.operands, dead)
            removed += len(dead)
    return removed + remove_dead_code(module, may) if removed else 0


def fusions_of(module: Module) -> dict[Computation, list[Instruction]]:
    """The computations that only fusions call, each with its fusions."""
    found: dict[Computation, list[Instruction]] = {}
    for computation, sites in call_sites(module).items():
        fusions = [site.instruction for site in sites if site.instruction.opcode == "fusion"]
        if fusions and len(fusions) == len(sites):
            found[computation] = fusions
    return found


def dead_parameters(computation: Computation) -> set[int]:
    """Numbers of the parameters that are neither read nor returned."""
    read = {operand for i in computation.instructions for operand in i.operands} | {computation.root}
    return {n for n, parameter in enumerate(computation.parameters) if parameter not in read}


def drop_parameters(computation: Computation, numbers: set[int]) -> None:
    """Remove parameters without readers and number the others again; callers must drop the operands."""
    with editing(computation) as edit:
        kept = 0
        for number, parameter in enumerate(computation.parameters):
            if number in numbers:
                edit.discard(parameter)
            else:
                parameter.parameter_number = kept
                kept += 1


def without(operands: tuple[Instruction, ...], numbers: set[int]) -> tuple[Instruction, ...]:
    """The operands but for those at `numbers`."""
    return tuple(o for n, o in enumerate(operands) if n not in numbers)


# Changing what the entry takes, and everything in the header that speaks of it.
#
# The header names parameters by number: `entry_computation_layout`, `input_output_alias`, `buffer_donor`,
# `allow_spmd_sharding_propagation_to_parameters`.


def drop_entry_parameters(module: Module, numbers: Collection[int]) -> None:
    """Remove parameters of the entry without readers, and number the others again.

    Raises:
        ValueError: one of them is read or returned.
    """
    dropped, parameters = set(numbers), module.entry.parameters
    used = dropped - dead_parameters(module.entry)
    if used:
        raise ValueError(f"{parameters[min(used)].name} is still used")
    kept = [n for n in range(len(parameters)) if n not in dropped]
    _restate_parameters(module, {old: new for new, old in enumerate(kept)})
    drop_parameters(module.entry, dropped)


def _restate_parameters(module: Module, numbers: Mapping[int, int]) -> None:
    """Bring the header up to date before parameters get new numbers."""
    changes: dict[str, AttributeValue | None] = {}
    if "entry_computation_layout" in module.attributes:
        layout = module.entry_layout
        stated = tuple(shape for n, shape in enumerate(layout.parameters) if n in numbers)
        changes["entry_computation_layout"] = EntryLayout(stated, layout.result)
    flags = module.attributes.get("allow_spmd_sharding_propagation_to_parameters")
    if isinstance(flags, tuple) and len(flags) > 1:
        kept = tuple(bool(flag) for n, flag in enumerate(flags) if n in numbers)
        changes["allow_spmd_sharding_propagation_to_parameters"] = kept or None
    aliases = [a for a in module.listed("input_output_alias", ParameterAlias, ()) if a.parameter in numbers]
    moved = tuple(structs.replace(a, parameter=numbers[a.parameter]) for a in aliases)
    donors = [d for d in module.listed("buffer_donor", BufferDonor, ()) if d.parameter in numbers]
    changes["input_output_alias"] = moved or None
    changes["buffer_donor"] = (
        tuple(structs.replace(d, parameter=numbers[d.parameter]) for d in donors) or None
    )
    _change(module, changes)


def add_entry_parameter(module: Module, edit: Editor, shape: Shape, name: str = "parameter") -> Instruction:
    """A new last parameter of the entry, which `edit` edits."""
    number = sum(1 for i in edit if i.opcode == "parameter")
    first = next(iter(edit), None)
    added = edit.add(Instruction(name, "parameter", shape, parameter_number=number), before=first)
    changes: dict[str, AttributeValue | None] = {}
    layout = module.attribute("entry_computation_layout", EntryLayout, None)
    if layout is not None:
        changes["entry_computation_layout"] = structs.replace(layout, parameters=(*layout.parameters, shape))
    flags = module.attributes.get("allow_spmd_sharding_propagation_to_parameters")
    if isinstance(flags, tuple) and len(flags) == number > 1:
        changes["allow_spmd_sharding_propagation_to_parameters"] = (*map(bool, flags), True)
    _change(module, changes)
    return added


def _change(module: Module, changes: Mapping[str, AttributeValue | None]) -> None:
    module.attributes = with_attributes(module.attributes, **changes)
