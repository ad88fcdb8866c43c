"""Programs that talk to the host: on their own they crash XLA or wait for ever."""

from __future__ import annotations

from hlotool.backends.xla.failures import unsupported
from hlotool.ir.module import Instruction, Module

_EXCHANGE = frozenset({"infeed", "outfeed"})


def refuse_the_outside(module: Module) -> None:
    """Raises Unsupported, naming the first instruction that needs somebody outside of the program."""
    for instruction in module.instructions():
        if reason := _reason(instruction):
            raise unsupported(module, instruction, reason)


def _reason(instruction: Instruction) -> str:
    target = instruction.custom_call_target
    if "callback" in target:
        return f"calls back into the Python process that made it: {target!r}"
    if instruction.opcode in _EXCHANGE or instruction.flag("is_host_transfer"):
        return "exchanges data with the host, which takes no part in a replay"
    return ""
