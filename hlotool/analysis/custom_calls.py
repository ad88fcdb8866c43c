"""Custom calls of XLA and of frontends that compute nothing."""

from __future__ import annotations

from typing import Final

from hlotool.ir.partitioning import ENTERS_REGION, LEAVES_REGION

#: They return their operand: they annotate it, or say where it lies.
ANNOTATIONS: Final = frozenset(
    {
        "AssumeGatherIndicesInBound", "AwsNeuronTransferWithStaticRing", "GatherScatterIndicesBitpacked",
        "LayoutConstraint",
        "MoveToDevice", "MoveToHost", "Pin", "PinToDevice", "SetBound", "ShardBarrierFrom",
        "ShardBarrierTo", "Sharding", "Unpin",
        "annotate_device_placement", "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier",
    }
)  # fmt: skip
#: They return their operands, or a device's part of them.
TRANSPARENT: Final = ANNOTATIONS | ENTERS_REGION | LEAVES_REGION
#: They do no arithmetic.
EXACT: Final = TRANSPARENT | {
    "AllocateBuffer",
    "AwsNeuronArgMax",
    "AwsNeuronArgMin",
    "AwsNeuronTopK",
    "CreateBuffer",
    "PadToStatic",
    "SliceToDynamic",
    "TopK",
    "X64Combine",
    "X64SplitHigh",
    "X64SplitLow",
}
