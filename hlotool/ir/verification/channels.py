"""Host transfers that share a channel. XLA: hlo_verifier.cc VerifyChannels."""

from __future__ import annotations

from collections.abc import Mapping

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Instruction
from hlotool.ir.shapes.compatibility import compatible
from hlotool.ir.verification.findings import Findings

#: Attributes that say nothing about what is transferred.
_IGNORED = frozenset({"sharding", "backend_config", "origin", "statistics"})


def check_host_channels(findings: Findings) -> None:
    """All host sends and receives of one channel are alike but for their operands."""
    first: dict[object, Instruction] = {}
    for instruction in findings.module.instructions():
        attributes = instruction.attributes
        if instruction.opcode not in ("send", "recv") or attributes.get("is_host_transfer") is not True:
            continue
        channel = attributes.get("channel_id")
        if channel is None:
            continue
        reference = first.setdefault(channel, instruction)
        findings.check(
            _alike(reference, instruction),
            "channel",
            f"host transfers on channel {channel} must be alike, {reference.name} is another one",
            instruction,
        )


def _alike(a: Instruction, b: Instruction) -> bool:
    return (
        a.opcode == b.opcode
        and compatible(a.shape, b.shape)
        and len(a.operands) == len(b.operands)
        and all(compatible(x.shape, y.shape) for x, y in zip(a.operands, b.operands))
        and _significant(a.attributes) == _significant(b.attributes)
    )


def _significant(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if name not in _IGNORED}
