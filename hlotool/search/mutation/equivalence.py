"""Proofs that a mutant is the program that it was made from: no inputs can show the fault."""

from __future__ import annotations

from typing import Final

import numpy as np

from hlotool.errors import Unsupported
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, leaves
from hlotool.replay.exact.arguments import Options
from hlotool.replay.exact.compare import compare
from hlotool.replay.exact.result import Relation
from hlotool.replay.program import Program
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.mutants import Mutant
from hlotool.search.mutation.symbols import result_symbols

#: Points at which the field compares: few would do for sums and products, branches are seen by chance.
_TRIALS: Final = 8
_SECONDS: Final = 10.0
#: What the field does not see: equality there proves nothing of these.
_UNSEEN: Final = frozenset({"tie decided the other way", "equal keys in the other order", "clamp dropped"})


def why_equivalent(reference: Program, mutant: Mutant, tested: Program) -> str:
    """The proof in words; empty where there is none.

    Args:
        reference: that judges.
        mutant: of it, or of a later stage.
        tested: the mutant, compiled.
    """
    if _has_same_terms(mutant):
        return "the same terms"
    if mutant.kind.name == "negative zero lost" and not any(
        map(_reads_zero_signs, mutant.module.instructions())
    ):
        return "the same up to signs of zeros, which nothing reads and XLA does not keep"
    if _is_of_floats(reference) and mutant.kind.name not in _UNSEEN and mutant.kind.poison is None:
        result = compare(reference, tested, Options(trials=_TRIALS, time_limit=_SECONDS))
        if result.relation is Relation.EQUAL:
            return "the same function of real numbers"
    return ""


def _has_same_terms(mutant: Mutant) -> bool:
    try:
        sides = [result_symbols(module, LAWS) for module in (mutant.right, mutant.module)]
    except Unsupported:
        return False
    return all(np.array_equal(one, other) for one, other in zip(*sides))


#: What tells -0 from 0. XLA drops the sign elsewhere: x + 0 is x to its simplifier.
_SIGNS_OF_ZEROS = frozenset(
    {"atan2", "bitcast-convert", "custom-call", "divide", "log", "power", "rsqrt", "sort", "topk"}
)


def _reads_zero_signs(instruction: Instruction) -> bool:
    """Whether a zero's sign decides about more than a zero's sign in the result."""
    is_total = instruction.opcode == "compare" and "type" in instruction.attributes
    shape = instruction.shape
    is_complex = isinstance(shape, ArrayShape) and shape.element_type.is_complex
    return is_total or is_complex or instruction.opcode in _SIGNS_OF_ZEROS


def _is_of_floats(program: Program) -> bool:
    """Whether the field draws all that the program depends on; integers and preds it takes as they come."""
    shapes = (part for shape in program.runner.parameters for _, part in leaves(shape))
    return all(not isinstance(s, ArrayShape) or s.element_type.is_floating for s in shapes)
