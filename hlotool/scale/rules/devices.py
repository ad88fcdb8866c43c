"""Values that go from device to device, and annotations that say where they lie."""

from __future__ import annotations

from hlotool.ir.devices import expand_groups
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.scale.rules.base import Relations, place, relates

#: Custom calls that hand on their operand: annotations of a partitioner, and of host offload.
HANDS_ON = frozenset(
    {
        "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape", "MoveToHost", "MoveToDevice",
        "annotate_device_placement", "LayoutConstraint", "X64Combine", "Pin", "Unpin",
    }
)  # fmt: skip


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
            elif small.value and large.value % small.value == 0:
                devices = known.sizes.fixed(large.value // small.value, "devices")
                known.sizes.same_product([large], [devices, small], f"{place(instruction)}: shards")
            else:
                known.sizes.freeze_all((small, large), f"{place(instruction)}: shards")


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
    """Annotations hand on their operand; what others do with sizes nobody says."""
    target = instruction.custom_call_target
    if target in HANDS_ON and len(instruction.operands) == 1:
        (operand,) = instruction.operands
        if [d.value for d in sum(known.leaves(operand), ())] == [
            d.value for d in sum(known.leaves(instruction), ())
        ]:
            known.equal(instruction, operand)
            return
    known.freeze_around(
        instruction, f"{place(instruction)}: sizes of {target or 'a custom call'} are not known"
    )
