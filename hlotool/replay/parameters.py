"""Do two programs take the same arguments?"""

from __future__ import annotations

from hlotool.ir.types import ArrayShape, Shape, leaves, strip_layouts
from hlotool.replay.devices.runners import Runner


def parameter_difference(expected: Runner, actual: Runner) -> str:
    """How the parameters of two programs differ, layouts and dynamic sizes apart; empty when they do not."""
    left, right = expected.parameters, actual.parameters
    if len(left) != len(right):
        return f"{len(left)} parameters are expected, the program has {len(right)}"
    for number, (one, other) in enumerate(zip(left, right)):
        if _at_bounds(one) != _at_bounds(other):
            return f"parameter {number}: expected {strip_layouts(one)}, got {strip_layouts(other)}"
    return ""


def _at_bounds(shape: Shape) -> list[object]:
    """What must be equal for one value to suit two shapes."""
    parts = ((index, strip_layouts(part)) for index, part in leaves(shape))
    return [
        (index, part.element_type, part.dims) if isinstance(part, ArrayShape) else (index, part)
        for index, part in parts
    ]
