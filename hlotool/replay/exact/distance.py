"""How far apart two programs are that are other functions, on the arguments at hand.

What exact arithmetic calls another function may rest on a law that it does not know. But a law of real numbers
holds in f64, too, up to its roundings: where both programs are far apart there, whatever roundings their
constants may have, no law explains it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from hlotool.backends.field.tables import Tables
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.ir.types import ShapeIndex
from hlotool.numerics import thresholds
from hlotool.replay.exact.arguments import Options, Side
from hlotool.replay.exact.result import ExactResult, Relation
from hlotool.replay.exact.rounded import MOST_CONSTANTS, Samples, constants_of
from hlotool.workers.work_limit import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

#: How many times as far off as any is known to be each constant may be: this accuses.
_MARGIN: Final = 4
#: Work that it may be.
_WORK: Final = 2.0 * UNITS_PER_SECOND


def with_distance(reference: Side, tested: Side, result: ExactResult, options: Options) -> ExactResult:
    """`result`, where one unequal leaf says how far it is apart in f64 on the first arguments, if any is.

    A program with tables of its own says nothing: a compiler may have computed and rounded each element.

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
    if not accused or len(constants) > MOST_CONSTANTS or Tables(reference.module, tested.module).sizes:
        return result
    deadline = time.monotonic() + options.time_limit
    least = thresholds.APART_IN_F64.value / thresholds.SAME_FIT.value
    try:
        with work_limit(_WORK):
            samples = Samples(reference, tested, constants, options, deadline, is_smooth=False)
            for index in sorted(accused, key=samples.distance, reverse=True):
                if samples.distance(index) <= least:
                    return result
                if (off := samples.unexplained(index)) > least:
                    return _noted(result, index, off * thresholds.SAME_FIT.value)
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
    except TooMuchWork:
        spend(0)  # raises again where somebody else's limit is reached
    return result


def _noted(result: ExactResult, index: ShapeIndex, apart: float) -> ExactResult:
    leaves = [replace(leaf, apart=apart) if leaf.index == index else leaf for leaf in result.leaves]
    return replace(result, leaves=leaves)
