"""Proofs that a mutant is the program that it was made from: no inputs can show the fault."""

from __future__ import annotations

from typing import Final

import numpy as np

from hlotool.errors import Unsupported
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


def same_to_the_bit(mutant: Mutant) -> str:
    """The proof in words that a mutant returns what the program returns that it was made from; empty without.

    Signs of zeros that nothing reads do not count: XLA does not keep them either.
    """
    return "the same terms, but for signs of zeros that nothing reads" if _has_same_terms(mutant) else ""


def same_of_reals(reference: Program, mutant: Mutant, tested: Program) -> str:
    """The proof in words that a mutant is the reference's function of real numbers; empty without one.

    Args:
        reference: that judges.
        mutant: of it, or of a later stage.
        tested: the mutant, compiled.
    """
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


def _is_of_floats(program: Program) -> bool:
    """Whether the field draws all that the program depends on; integers and preds it takes as they come."""
    shapes = (part for shape in program.runner.parameters for _, part in leaves(shape))
    return all(not isinstance(s, ArrayShape) or s.element_type.is_floating for s in shapes)
