"""The comparison as a judge asks for it: within limits, and without an error of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.trip_counts import loop_repetitions
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, Shape, leaves
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.points import Options, Side
from hlotool.runs.exact.result import ExactResult
from hlotool.runs.exact.sampled import with_distance

#: They compute nothing of their own.
_FREE = opcodes_with(Trait.STRUCTURE, Trait.CONTROL_FLOW, Trait.INLINED) | {"bitcast"}


def comparing(
    reference: Side,
    tested: Side,
    *,
    seed: int = 0,
    arguments: Sequence[Any] | None = None,
    is_limited: bool = True,
) -> Callable[[float, int], ExactResult]:
    """What compares two programs within so many seconds, at so many points.

    Args:
        reference: the program as it should be.
        tested: the program in question.
        seed: of the first point.
        arguments: whose integers and preds are taken at the first point.
        is_limited: programs that compute more than EXACT_ELEMENTS at the points of a first question are
            refused, and decisions of few elements get no more points than that allows unless more are asked
            for: seconds depend on the machine and on what else it does, and a verdict should not.

    Its function raises BackendFailed where this process is of no more use.
    """

    def compared(seconds: float, trials: int) -> ExactResult:
        options = Options(trials, seed, seconds, () if arguments is None else (arguments,))
        if is_limited:
            count = sum(computed_elements(side.module) for side in (reference, tested))
            points = int(thresholds.EXACT_ELEMENTS.value / max(1, count))
            asked_first = min(trials, int(thresholds.EXACT_TRIALS.value))
            if points < asked_first:
                refused = f"{count:.2g} elements are computed, too many for {asked_first} points"
                return ExactResult(refused=refused)
            options = replace(options, most_points=max(points, trials))
        try:
            return with_distance(reference, tested, compare(reference, tested, options), options)
        except HlotoolError:
            raise
        except MemoryError:
            return ExactResult(refused="it needs more memory than there is")
        except Exception as error:
            # The verdict stands without it; a bug of exact arithmetic must not cost it.
            return ExactResult(refused=f"internal error, please report: {type(error).__name__}: {error}")

    return compared


def computed_elements(module: Module) -> int:
    """Elements that the instructions of a program read and write, loops included."""
    repetitions = loop_repetitions(module)
    return sum(
        times * sum(_touched(i) for i in computation.instructions if i.opcode not in _FREE)
        for computation, times in repetitions.items()
    )


def _touched(instruction: Instruction) -> int:
    return sum(_size(shape) for shape in (instruction.shape, *(o.shape for o in instruction.operands)))


def _size(shape: Shape) -> int:
    return sum(prod(part.dims) for _, part in leaves(shape) if isinstance(part, ArrayShape))
