"""Custom calls by target: which of them this backend can execute.

A target's lowering is like an opcode's (see `registry`). Importing `kernels` registers all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, Rule, lowers
from hlotool.backends.numpy.shapes import attribute
from hlotool.ir.module import Instruction

CUSTOM_CALLS: dict[str, Rule] = {}


def custom_call(*targets: str) -> Callable[[Rule], Rule]:
    """Register a function as the lowering of `targets`; a second one for the same target is an error."""

    def register(rule: Rule) -> Rule:
        for target in targets:
            if target in CUSTOM_CALLS:
                raise ValueError(f"custom call {target!r} is lowered twice")
            CUSTOM_CALLS[target] = rule
        return rule

    return register


@lowers("custom-call")
def lower_custom_call(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of the target. XLA: operation_semantics.md#customcall.

    Raises:
        Unsupported: nothing is known of the target, or it calls back into the user's Python process.
    """
    target = attribute(instruction, "custom_call_target", str, lowering)
    if target in CUSTOM_CALLS:
        return CUSTOM_CALLS[target](instruction, lowering)
    if "callback" in target:
        reason = f"custom call {target!r} calls the user's Python function, which is not in the dump"
        raise lowering.unsupported(instruction, reason)
    raise lowering.unsupported(instruction, f"custom call target {target!r} has no model here")
