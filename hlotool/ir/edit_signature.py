"""Changing what the entry takes, and everything in the header that speaks of it.

The header names parameters by number: `entry_computation_layout`, `input_output_alias`, `buffer_donor`,
`allow_spmd_sharding_propagation_to_parameters`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hlotool.ir.attributes import AttributeValue, BufferDonor, EntryLayout, ParameterAlias
from hlotool.ir.edit import Editor, with_attributes
from hlotool.ir.edit_dead import dead_parameters, drop_parameters
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import Shape


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
