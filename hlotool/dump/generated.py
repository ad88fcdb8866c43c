"""Elided constants with generated values, where the user asks for them: the same on both sides.

The values are made for the program as the frontend gave it. A later stage gets them by name and shape, where
names survive the passes; what its passes made of elided constants is not to be had.
"""

from __future__ import annotations

from collections.abc import Callable

from hlotool.dump.elided import elided_constants, from_namesakes, names_survive, stage_before
from hlotool.dump.records import DumpModule, Stage
from hlotool.ir.module import Module
from hlotool.values.generate import generate_constants


def fill_generated(module: Module, owner: DumpModule, stage: Stage, load: Callable[[Stage], Module]) -> None:
    """Fill in what is elided in `module`, and note that in `Module.generated`.

    Args:
        module: of `stage`, in which no other source fills in what is still elided.
        owner: has the seed.
        stage: of `owner`.
        load: of another stage, its elided constants generated, too.

    Raises:
        Unsupported: constants that passes made, which generated ones cannot stand for.
    """
    missing = elided_constants(module)
    first = stage_before(owner) or (owner.stages[0] if owner.stages else stage)
    if first != stage:
        original = load(first)
        if names_survive(original, module):
            platform = next((s.platform for s in (*owner.stages, *owner.companions) if s.platform), "")
            list(from_namesakes(module, original, platform))
    left = elided_constants(module)
    if left and first != stage and len(owner.stages) > 1:
        reason = f"elided, and not a constant of {first.title}: no generated value can stand for it"
        raise module.unsupported(left[0], reason)
    if embedded := [constant for constant in left if constant.opcode != "constant"]:
        raise module.unsupported(embedded[0], "a literal among its attributes is elided")
    generate_constants(module, left, owner.generates_elided or 0)
    module.generated = tuple(constant.name for constant in missing)
