"""Which instructions must run although nobody reads their result. XLA: HloInstruction::HasSideEffect."""

from __future__ import annotations

from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with

#: Opcodes that act on something outside the computation, or draw from a hidden state.
_SIDE_EFFECTS = opcodes_with(Trait.SIDE_EFFECT)


def has_own_side_effect(instruction: Instruction) -> bool:
    """Whether the operation itself has a side effect, whatever the computations it calls do."""
    attributes = instruction.attributes
    return (
        instruction.opcode in _SIDE_EFFECTS
        or attributes.get("custom_call_has_side_effect") is True
        or attributes.get("constrain_layout") is True
        or "channel_id" in attributes
    )


def has_side_effect(instruction: Instruction) -> bool:
    """Whether it or something it calls, directly or not, has a side effect."""
    return has_own_side_effect(instruction) or any(map(_acts, set(instruction.called)))


def _acts(computation: Computation) -> bool:
    return any(map(has_side_effect, computation.instructions))
