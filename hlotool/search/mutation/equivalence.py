"""Proofs that a mutant is the program that it was made from: no inputs can show the fault."""

from __future__ import annotations

from typing import Final

import numpy as np

from hlotool.errors import Unsupported
from hlotool.faults.kind import find
from hlotool.ir.types import ArrayShape, leaves
from hlotool.replay.exact.arguments import Options
from hlotool.replay.exact.compare import compare
from hlotool.replay.exact.result import Relation
from hlotool.replay.program import Program
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.mutants import Mutant
from hlotool.search.mutation.split import Split, splits
from hlotool.search.mutation.symbols import compared_at, result_symbols

#: Points at which the field compares: few would do for sums and products, branches are seen by chance.
_TRIALS: Final = 8
_SECONDS: Final = 10.0
#: Faults of comparisons that show where both sides are equal.
_AT_TIES: Final = frozenset({"tie decided the other way", "loop bound off by one"})
#: What the field does not see: equality there proves nothing of these.
_UNSEEN: Final = frozenset({"tie decided the other way", "equal keys in the other order", "clamp dropped"})


def same_to_the_bit(mutant: Mutant) -> str:
    """The proof in words that a mutant returns what the program returns that it was made from; empty without.

    Signs of zeros that nothing reads do not count: XLA does not keep them either.
    """
    try:
        if _has_same_terms(mutant):
            return "the same terms, but for signs of zeros that nothing reads"
        if mutant.kind.name in _AT_TIES and any(_has_same_terms(mutant, split) for split in _splits(mutant)):
            return "the same terms where two numbers are equal, and where they are not"
    except Unsupported:
        return ""
    return ""


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


def _splits(mutant: Mutant) -> list[Split]:
    _, comparison = find(mutant.right, mutant.site)
    return splits(compared_at(mutant.right, LAWS, comparison))


def _has_same_terms(mutant: Mutant, split: Split | None = None) -> bool:
    sides = [result_symbols(module, LAWS, split) for module in (mutant.right, mutant.module)]
    return all(np.array_equal(one, other) for one, other in zip(*sides))


def _is_of_floats(program: Program) -> bool:
    """Whether the field draws all that the program depends on; integers and preds it takes as they come."""
    shapes = (part for shape in program.runner.parameters for _, part in leaves(shape))
    return all(not isinstance(s, ArrayShape) or s.element_type.is_floating for s in shapes)
