"""Changing what the entry takes and returns, and everything in the header that speaks of it.

The header names parameters by number and results by shape index: `entry_computation_layout`,
`input_output_alias`, `buffer_donor`, `allow_spmd_sharding_propagation_to_…`; so does the root's sharding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from hlotool.ir.attributes import AttributeValue, BufferDonor, EntryLayout, ParameterAlias, Sharding
from hlotool.ir.edit import Editor, editing, with_attributes
from hlotool.ir.edit_dead import dead_parameters, drop_parameters
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import Shape, ShapeIndex, TupleShape, leaves, subshape

#: What becomes of an index into the result; None when that part is no longer returned.
ResultMap = Callable[[ShapeIndex], ShapeIndex | None]


def set_result(module: Module, result: Instruction) -> None:
    """Return another instruction of the entry, of any shape; aliases of the result end."""
    module.entry.root = result
    _restate_result(module, result.shape, lambda index: None, (True,))


def return_instructions(module: Module, results: Sequence[Instruction], edit: Editor | None = None) -> None:
    """Return `results` of the entry: one as it is, several (or none) as a tuple.

    What the root returned before at some index keeps its layout, alias and sharding where it stays a result.

    Args:
        module: its entry holds all results.
        results: in order.
        edit: of the entry, when it is being edited; the caller finishes it.
    """
    before = _returned(module.entry.root)
    sources = [next((n for n, old in enumerate(before) if old is r), None) for r in results]
    if edit is not None:
        _return(module, edit, results, sources)
        return
    with editing(module.entry) as own:
        _return(module, own, results, sources)


def keep_results(module: Module, positions: Sequence[int]) -> None:
    """Return only the elements of the root tuple at `positions`, in that order; one alone as an array.

    Raises:
        ValueError: the entry's root is no tuple instruction.
    """
    root = module.entry.root
    if root.opcode != "tuple":
        raise ValueError(f"the root {root.name} is no tuple")
    with editing(module.entry) as edit:
        _return(module, edit, [root.operands[p] for p in positions], list(positions))


def _returned(root: Instruction) -> tuple[Instruction, ...]:
    return root.operands if root.opcode == "tuple" else (root,)


def _return(
    module: Module, edit: Editor, results: Sequence[Instruction], sources: Sequence[int | None]
) -> None:
    """Make the entry return `results`; each comes from the position of the old root in `sources`, if any."""
    old, layout = module.entry.root, module.entry_layout
    was_tuple = old.opcode == "tuple"
    # A single result that is a tuple itself is returned as it is.
    single = len(results) == 1
    shapes = [
        _old_layout(layout.result, was_tuple, s) if s is not None else r.shape
        for r, s in zip(results, sources)
    ]
    if single:
        edit.computation.root = results[0]
    else:
        root = Instruction("tuple", "tuple", TupleShape(tuple(r.shape for r in results)), tuple(results))
        root.metadata = old.metadata
        sharding = _tuple_sharding(old, results, sources)
        root.attributes = {"sharding": sharding} if sharding is not None else {}
        edit.computation.root = edit.add(root)
    if old is not edit.computation.root and not edit.is_read(old) and old.opcode == "tuple":
        edit.remove(old)
    edit.changed = True
    stated = shapes[0] if single else TupleShape(tuple(shapes))
    follow = _result_map(was_tuple, single, sources)
    _restate_result(module, stated, follow, _propagation(module, was_tuple, sources))


def _old_layout(result: Shape, was_tuple: bool, position: int) -> Shape:
    return subshape(result, (position,)) if was_tuple else result


def _result_map(was_tuple: bool, single: bool, sources: Sequence[int | None]) -> ResultMap:
    places = {source: new for new, source in reversed(list(enumerate(sources))) if source is not None}

    def follow(index: ShapeIndex) -> ShapeIndex | None:
        position, rest = (index[0], index[1:]) if was_tuple and index else (0, index)
        if position not in places:
            return None
        return rest if single else (places[position], *rest)

    return follow


def _tuple_sharding(
    old: Instruction, results: Sequence[Instruction], sources: Sequence[int | None]
) -> Sharding | None:
    """The sharding of the new root, from the old root's or the results' own; None when a part is unknown."""
    parts: list[Sharding] = []
    for result, source in zip(results, sources):
        own = _part_sharding(old, source) if source is not None else None
        if own is None and result.sharding is not None:
            own = result.sharding.elements or (result.sharding,)
        if own is None or len(own) != len(list(leaves(result.shape))):
            return None
        parts += own
    return Sharding("tuple", elements=tuple(parts))


def _part_sharding(old: Instruction, position: int) -> tuple[Sharding, ...] | None:
    """What the old root's sharding says of one of its elements, leaf by leaf."""
    stated = old.sharding
    if stated is None:
        return None
    if old.opcode != "tuple" or stated.kind != "tuple":
        return stated.elements or (stated,)
    counts = [len(list(leaves(o.shape))) for o in old.operands]
    start = sum(counts[:position])
    return stated.elements[start : start + counts[position]]


def _propagation(module: Module, was_tuple: bool, sources: Sequence[int | None]) -> tuple[bool, ...]:
    """`allow_spmd_sharding_propagation_to_output`, one flag per result or one for all."""
    value = module.attributes.get("allow_spmd_sharding_propagation_to_output")
    flags = tuple(map(bool, value)) if isinstance(value, tuple) else (bool(value),)
    if len(flags) == 1 or not was_tuple:
        return flags[:1]
    return tuple(s is None or flags[s] for s in sources)


def _restate_result(module: Module, stated: Shape, follow: ResultMap, flags: tuple[bool, ...]) -> None:
    """Bring the header up to date after the result changed."""
    changes: dict[str, AttributeValue | None] = {}
    if "entry_computation_layout" in module.attributes:
        changes["entry_computation_layout"] = replace(module.entry_layout, result=stated)
    if "allow_spmd_sharding_propagation_to_output" in module.attributes:
        changes["allow_spmd_sharding_propagation_to_output"] = flags
    moved = [(a, follow(a.output_index)) for a in module.listed("input_output_alias", ParameterAlias, ())]
    kept = tuple(replace(a, output_index=index) for a, index in moved if index is not None)
    changes["input_output_alias"] = kept or None
    _change(module, changes)


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
