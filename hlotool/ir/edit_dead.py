"""Removing what nobody needs: instructions, computations, parameters of fusions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from hlotool.ir.attributes import AttributeValue, BufferDonor, EntryLayout, ParameterAlias
from hlotool.ir.edit import Editor, editing, with_attributes
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import Shape
from hlotool.ir.walk import call_sites, reachable

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
    """Remove parameters that nobody reads and number the others again; callers must drop the operands."""
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
    """Remove parameters of the entry that nobody reads, and number the others again.

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
    moved = tuple(replace(a, parameter=numbers[a.parameter]) for a in aliases)
    donors = [d for d in module.listed("buffer_donor", BufferDonor, ()) if d.parameter in numbers]
    changes["input_output_alias"] = moved or None
    changes["buffer_donor"] = tuple(replace(d, parameter=numbers[d.parameter]) for d in donors) or None
    _change(module, changes)


def add_entry_parameter(module: Module, edit: Editor, shape: Shape, name: str = "parameter") -> Instruction:
    """A new last parameter of the entry, which `edit` edits."""
    number = sum(1 for i in edit if i.opcode == "parameter")
    first = next(iter(edit), None)
    added = edit.add(Instruction(name, "parameter", shape, parameter_number=number), before=first)
    changes: dict[str, AttributeValue | None] = {}
    layout = module.attribute("entry_computation_layout", EntryLayout, None)
    if layout is not None:
        changes["entry_computation_layout"] = replace(layout, parameters=(*layout.parameters, shape))
    flags = module.attributes.get("allow_spmd_sharding_propagation_to_parameters")
    if isinstance(flags, tuple) and len(flags) == number > 1:
        changes["allow_spmd_sharding_propagation_to_parameters"] = (*map(bool, flags), True)
    _change(module, changes)
    return added


def _change(module: Module, changes: Mapping[str, AttributeValue | None]) -> None:
    module.attributes = with_attributes(module.attributes, **changes)
