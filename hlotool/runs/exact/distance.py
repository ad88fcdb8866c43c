"""How far apart two programs are that are other functions, on the arguments at hand.

What exact arithmetic calls another function may rest on a law that it does not know. But a law of real
numbers holds in f64, too, up to its roundings: where both programs are far apart there, whatever roundings
their constants may have, no law explains it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from hlotool.backends.field.tables import Tables
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.facts import thresholds
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ShapeIndex, array_shapes
from hlotool.runs.exact.points import Options, Side
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.rounded import MOST_CONSTANTS, Samples, constants_of
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

#: How many times as far off as any is known to be each constant may be: this accuses.
_MARGIN: Final = 4
#: Leaves that are apart after which no more are asked about.
_FEW: Final = 4
_STEPPING: Final = opcodes_with(Trait.TO_INTEGER) | {"remainder", "stochastic-convert"}
#: Work that it may be.
_WORK: Final = 2.0 * UNITS_PER_SECOND


def with_distance(reference: Side, tested: Side, result: ExactResult, options: Options) -> ExactResult:
    """`result`, of which some unequal leaves say how far they are apart in f64 on the first arguments.

    A program with tables of its own says nothing: a compiler may have computed and rounded each element. Nor
    do programs with steps: 10 · 0.7 is 7 in f32, and less in f64, where the constant is that of f32.

    Args:
        reference: as it should be.
        tested: the other one.
        result: of their comparison.
        options: of it.
    """
    accused = {leaf.index for leaf in result.leaves if leaf.relation is Relation.UNEQUAL and leaf.witness}
    constants = [
        replace(one, most=_MARGIN * one.most) for one in constants_of(reference.module, tested.module)
    ]
    modules = reference.module, tested.module
    if not accused or len(constants) > MOST_CONSTANTS or Tables(*modules).sizes or any(map(_steps, modules)):
        return result
    deadline = time.monotonic() + options.time_limit
    unit, least = thresholds.SAME_FIT.value, thresholds.APART_IN_F64.value
    apart: dict[ShapeIndex, float] = {}
    try:
        with work_limit(_WORK):
            samples = Samples(reference, tested, constants, options, deadline, is_smooth=False)
            for index in sorted(accused, key=samples.distance, reverse=True):
                if unit * samples.distance(index) <= least or sum(o > least for o in apart.values()) >= _FEW:
                    break
                apart[index] = unit * samples.unexplained(index)
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
    except TooMuchWork:
        spend(0)  # raises again where somebody else's limit is reached
    leaves = [replace(leaf, apart=apart.get(leaf.index, 0.0)) for leaf in result.leaves]
    return replace(result, leaves=leaves)


def _steps(module: Module) -> bool:
    """Whether something makes integers of floats, in whatever type."""
    return any(
        i.opcode in _STEPPING or (i.opcode == "convert" and _is_float(i.operands[0]) and not _is_float(i))
        for i in module.instructions()
    )


def _is_float(instruction: Instruction) -> bool:
    return any(part.element_type.is_inexact for part in array_shapes(instruction.shape))
