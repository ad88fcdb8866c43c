"""Two programs that take the same arrays and return some of the same ones, brought to one interface.

The forward pass of a trainer and the prefill of a server compute the same numbers, return others beside them,
and may take their arguments in another order. Arguments and results are matched by their shapes, those of one
shape in their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from hlotool.errors import UsageError
from hlotool.ir.edit import editing
from hlotool.ir.edit_programs import remove_dead_code
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, TupleShape, leaves, subshape
from hlotool.judge.records import output_name

#: Of an array what both programs must have in common: its layout is not.
_Key: TypeAlias = Hashable
#: What the header says of arguments and results by their numbers.
_NUMBERED = (
    *("entry_computation_layout", "input_output_alias", "buffer_donor"),
    *("allow_spmd_sharding_propagation_to_parameters", "allow_spmd_sharding_propagation_to_output"),
)


def to_one_interface(left: Module, right: Module) -> list[str]:
    """Give both programs the arguments of `left`, and the results that both have, in the order of `left`.

    Args:
        left: changed in place.
        right: likewise; its arguments are renumbered.

    Returns:
        what either program returns beside these, and whether arguments are in another order, in words.

    Raises:
        UsageError: they do not take the same arrays, or return none of one shape.
    """
    order = _matched([p.shape for p in left.entry.parameters], [p.shape for p in right.entry.parameters])
    if len(order) != len(left.entry.parameters) or len(order) != len(right.entry.parameters):
        taken = " and ".join(str(len(m.entry.parameters)) for m in (left, right))
        raise UsageError(
            f"they do not take the same arrays: of {taken}, {len(order)} have a partner of one shape"
        )
    returned = [dict(leaves(module.entry.root.shape)) for module in (left, right)]
    indices = [list(found) for found in returned]
    both = _matched(list(returned[0].values()), list(returned[1].values()))
    if not both:
        raise UsageError("they return no array of one shape")
    notes = []
    if any(number != other for number, other in order):
        notes.append(
            "the second takes its arguments in another order: those of one shape are taken in theirs"
        )
    for module, found, chosen, whose in zip(
        (left, right), indices, zip(*both, strict=True), ("first", "second"), strict=True
    ):
        _return_only(module, [found[number] for number in chosen])
        if beside := [output_name(index) for n, index in enumerate(found) if n not in chosen]:
            notes.append(f"only the {whose} returns {', '.join(beside)}")
    renumbered = {other: number for number, other in order}
    for parameter in right.entry.parameters:
        parameter.parameter_number = renumbered[parameter.parameter_number or 0]
    for module in (left, right):
        module.attributes = {k: v for k, v in module.attributes.items() if k not in _NUMBERED}
    return notes


def _matched(left: Sequence[Shape], right: Sequence[Shape]) -> list[tuple[int, int]]:
    """Numbers of arrays of one shape on both sides, in the order of `left`."""
    waiting: dict[_Key, list[int]] = {}
    for number, shape in enumerate(right):
        waiting.setdefault(_key(shape), []).append(number)
    found = []
    for number, shape in enumerate(left):
        if same := waiting.get(_key(shape)):
            found.append((number, same.pop(0)))
    return found


def _key(shape: Shape) -> _Key:
    if isinstance(shape, ArrayShape):
        return shape.element_type, shape.dims
    return str(shape)


def _return_only(module: Module, indices: Sequence[ShapeIndex]) -> None:
    """Make a program return these arrays of its result, a single one as it is."""
    entry = module.entry
    root = entry.root
    with editing(entry) as edit:
        kept = []
        for index in indices:
            part = root
            for depth, number in enumerate(index, 1):
                if part.opcode == "tuple":
                    part = part.operands[number]
                else:
                    shape = subshape(root.shape, index[:depth])
                    part = edit.add(
                        Instruction("part", "get-tuple-element", shape, (part,), {"index": number})
                    )
            kept.append(part)
        if len(kept) > 1:
            common = TupleShape(tuple(part.shape for part in kept))
            kept = [edit.add(Instruction("common", "tuple", common, tuple(kept)))]
        entry.root = kept[0]
    remove_dead_code(module)
