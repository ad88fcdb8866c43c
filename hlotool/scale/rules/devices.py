"""Values that go from device to device, and annotations that say where they lie."""

from __future__ import annotations

from typing import Final

from hlotool.ir.devices import expand_groups
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.scale.rules.base import Relations, place, relates
from hlotool.scale.rules.pointwise import largest

#: Custom calls that hand on their operand: annotations of a partitioner, and of host offload.
HANDS_ON = frozenset(
    {
        "Sharding", "xla.sdy.FuncResultSharding", "MoveToHost", "MoveToDevice",
        "annotate_device_placement", "LayoutConstraint", "X64Combine", "Pin", "Unpin",
    }
)  # fmt: skip

#: Where a region in which devices have their own parts begins, and where it ends.
_REGIONS: Final = (
    "SPMDFullToShardShape",
    "xla.sdy.GlobalToLocalShape",
    "SPMDShardToFullShape",
    "xla.sdy.LocalToGlobalShape",
)


@relates("all-reduce", "all-reduce-start", "collective-broadcast", "collective-permute")
def exchanged(known: Relations, instruction: Instruction) -> None:
    """Every result is like its operand."""
    if len(instruction.operands) != len(known.dims[instruction]) or "slice_sizes" in instruction.attributes:
        known.freeze_around(instruction, f"{place(instruction)}: operands that are not its results")
        return
    for operand, result in zip(instruction.operands, known.leaves(instruction)):
        known.sizes.unify_all(known.of(operand), result)


@relates("all-gather", "reduce-scatter")
def gathered(known: Relations, instruction: Instruction) -> None:
    """One dimension is that of a device times their number, or the other way round."""
    (along,) = instruction.integers("dimensions")
    for operand, result in zip(instruction.operands, known.leaves(instruction)):
        part, whole = known.of(operand), result
        if instruction.opcode == "reduce-scatter":
            part, whole = whole, part
        for number, (small, large) in enumerate(zip(part, whole)):
            if number != along:
                known.sizes.unify(small, large)
            else:
                known.divide(large, small, f"{place(instruction)}: shards")


@relates("all-to-all")
def spread(known: Relations, instruction: Instruction) -> None:
    """A tuple changes places; of one array a dimension is cut into as many parts as there are devices."""
    results = known.leaves(instruction)
    if not isinstance(instruction.shape, ArrayShape):
        first = known.of(instruction.operands[0])
        for operand, result in zip(instruction.operands, results):
            known.sizes.unify_all(known.of(operand), result)
            known.sizes.unify_all(first, result)
        return
    (operand,) = instruction.operands
    known.equal(instruction, operand)
    (along,) = instruction.integers("dimensions")
    groups = expand_groups(instruction.replica_groups)
    whole, count = known.of(operand)[along], len(groups[0]) if groups else 0
    if not count or whole.value % count:
        known.sizes.freeze(whole, f"{place(instruction)}: parts that cannot be told")
        return
    parts = [known.sizes.fixed(count, "devices"), known.sizes.new(whole.value // count)]
    known.sizes.same_product([whole], parts, f"{place(instruction)}: parts that cannot be told")


@relates("custom-call")
def custom_call(known: Relations, instruction: Instruction) -> None:
    """Annotations hand on their operand, XLA's TopK is `topk`; what others do with sizes nobody says."""
    target = instruction.custom_call_target
    if target in _REGIONS and len(instruction.operands) == len(known.leaves(instruction)):
        is_local = target in _REGIONS[:2]
        for operand, result in zip(instruction.operands, known.leaves(instruction)):
            one, other = known.of(operand), result
            for whole, part in zip(one, other) if is_local else zip(other, one):
                known.divide(whole, part, f"{place(instruction)}: shards of different lengths")
        return
    if target in HANDS_ON and len(instruction.operands) == 1:
        (operand,) = instruction.operands
        if [d.value for d in sum(known.leaves(operand), ())] == [
            d.value for d in sum(known.leaves(instruction), ())
        ]:
            known.equal(instruction, operand)
            return
    if target == "TopK" and len(instruction.operands) == 1:
        largest(known, instruction)
        return
    known.freeze_around(
        instruction, f"{place(instruction)}: sizes of {target or 'a custom call'} are not known"
    )
