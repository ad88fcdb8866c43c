"""How often computations run: estimated trip counts of the loops around them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from hlotool.ir.module import Computation, Instruction, Module

#: Trip count assumed for a loop that does not tell.
UNKNOWN_TRIPS = 64
#: Nested loops are not counted beyond this.
MOST_REPETITIONS = 1 << 40


def loop_repetitions(module: Module) -> dict[Computation, int]:
    """Iterations of all loops around each computation that the entry reaches; 1 outside of loops."""
    repetitions = {module.entry: 1}
    pending = [module.entry]
    while pending:
        caller = pending.pop()
        for instruction in caller.instructions:
            trips = trip_count(instruction) if instruction.opcode == "while" else 1
            times = min(repetitions[caller] * trips, MOST_REPETITIONS)
            for callee in instruction.called:
                if times > repetitions.get(callee, 0):
                    repetitions[callee] = times
                    pending.append(callee)
    return repetitions


def trip_count(loop: Instruction) -> int:
    """What XLA found out, else the largest integer constant of the condition, else UNKNOWN_TRIPS."""
    known = known_trip_count(loop)
    if known is not None:
        return known
    return max(_integer_constants(loop.computation("condition")), default=UNKNOWN_TRIPS)


def known_trip_count(loop: Instruction) -> int | None:
    """What XLA found out and wrote down: `backend_config={"known_trip_count":{"n":"5"}}`."""
    if "backend_config" not in loop.attributes:
        return None
    try:
        return max(1, int(json.loads(loop.config_text)["known_trip_count"]["n"]))
    except (ValueError, KeyError, TypeError):
        return None


def _integer_constants(condition: Computation) -> Iterator[int]:
    for instruction in condition.instructions:
        if instruction.opcode == "constant" and instruction.literal is not None:
            value = instruction.literal.value
            if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iu":
                yield max(1, int(value.item()))
