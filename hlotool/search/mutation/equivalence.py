"""Proofs that a mutant is the program that it was made from: no inputs can show the fault."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from hlotool.directed.sets import InputSet
from hlotool.errors import BackendFailed, HlotoolError, Unsupported
from hlotool.faults.families import family_of
from hlotool.faults.kind import find
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, leaves
from hlotool.replay.exact.arguments import Options
from hlotool.replay.exact.compare import compare
from hlotool.replay.exact.result import Relation
from hlotool.replay.program import Program, compile_program
from hlotool.search.mutation.at_ties import alike_but_for_rounding, at_ties
from hlotool.search.mutation.both_ways import both_ways, is_decision
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.mutants import Mutant
from hlotool.search.mutation.reading import Reading, compared_at, read
from hlotool.search.mutation.split import Split, splits
from hlotool.search.mutation.zero_signs import sign_of_zero_is_read

#: Points at which the field compares: few would do for sums and products, branches are seen by chance.
_TRIALS: Final = 8
_SECONDS: Final = 10.0
#: Sets on which programs are executed as if numbers were equal: some have infinities and NaN.
_EXECUTED: Final = 60
#: Faults of comparisons that show where both sides are equal.
_AT_TIES: Final = frozenset({"tie decided the other way", "loop bound off by one"})
#: What the field does not see: equality there proves nothing of these.
_UNSEEN: Final = frozenset({"equal keys in the other order", "clamp dropped"})

#: Families of faults that compute the same real numbers, and show all the same: by rounding, by wrapping.
_NOT_OF_REALS: Final = frozenset({"precision", "integers"})


def same_to_the_bit(mutant: Mutant) -> str:
    """The proof in words that a mutant returns what the program returns that it was made from; empty without.

    Signs of zeros that nothing reads do not count: XLA does not keep them either.
    """
    if mutant.kind.name == "negative zero lost" and not _is_read(mutant):
        return "the same up to signs of zeros, which nothing reads and XLA does not keep"
    try:
        if _has_same_terms(mutant):
            return "the same terms, but for signs of zeros that nothing reads"
        if mutant.kind.name in _AT_TIES and any(_has_same_terms(mutant, split) for split in _splits(mutant)):
            return "the same terms where two numbers are equal, and where they are not"
        if _has_loop(mutant.right) and _has_same_terms(mutant, unrolled=True):
            return "the same terms, iteration by iteration, but for signs of zeros that nothing reads"
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
    if family_of(mutant.kind) in _NOT_OF_REALS or mutant.kind.poison is not None:
        return ""
    if not _is_of_numbers(reference):
        return ""
    if is_decision(mutant):
        modules = both_ways(mutant)
        ways = [compile_program("way", "", module, "numpy", reference) for module in modules]
        is_same = bool(ways) and all(_is_equal(reference, way) for way in ways)
        return "the same function of real numbers, whichever way it decides" if is_same else ""
    if mutant.kind.name in _UNSEEN or not _is_seen(mutant):
        return ""
    if _is_equal(reference, tested):
        return "the same function of real numbers"
    return ""


def same_at_ties(reference: Program, mutant: Mutant, sets: Sequence[InputSet]) -> str:
    """The proof in words that a mutant is the same function of real numbers at ties; empty without one.

    Args:
        reference: that judges.
        mutant: of it, or of a later stage.
        sets: on some of which the two are executed with numbers made equal: no result may be NaN, infinite or
            another integer in one of them alone, as where there is a division by 0 at ties.
    """
    pairs = ties_of_reals(reference, mutant)
    some = sets[:: max(1, len(sets) // _EXECUTED)]
    is_same = bool(pairs and some) and all(_is_rounding(*pair, one) for pair in pairs for one in some)
    return "the same function of real numbers where two numbers are equal" if is_same else ""


def _is_rounding(right: Program, other: Program, one: InputSet) -> bool:
    """Whether two programs, the same function of real numbers, differ by rounding at most on a set."""
    try:
        expected = right.runner.run(one.values).value
        actual = other.runner.run(one.values, expected).value
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return False
    return alike_but_for_rounding(right.runner.result, expected, actual)


def ties_of_reals(reference: Program, mutant: Mutant) -> list[tuple[Program, Program]]:
    """The program and the mutant where numbers are equal, elements of one array or more of them, if these are
    the same functions of real numbers, pair by pair; none where they are not, or where it is not known.

    Real numbers know no infinity. Ties are where programs divide by 0 or take its logarithm: what these
    programs return has to be compared, too.
    """
    if mutant.kind.name not in _AT_TIES or not is_decision(mutant) or not _is_of_numbers(reference):
        return []
    found: list[tuple[Program, Program]] = []
    try:
        for modules in at_ties(mutant):
            right, other = (compile_program("tie", "", module, "numpy", reference) for module in modules)
            if not _is_equal(right, other):
                return []
            found.append((right, other))
    except Unsupported:
        return []
    return found


def _is_seen(mutant: Mutant) -> bool:
    """Whether real numbers tell what the program does at the place of the fault.

    No number is NaN: what a program asks of it, and does with it, has only one outcome among real numbers. Of
    integers and preds, which here are made of constants and of such questions, they may see one value.
    """
    _, target = find(mutant.right, mutant.site)
    arrays = [shape for _, shape in leaves(target.shape) if isinstance(shape, ArrayShape)]
    is_of_numbers = all(shape.element_type.is_inexact for shape in arrays)
    return is_of_numbers and not any(map(_is_about_nan, mutant.right.instructions()))


def _is_about_nan(instruction: Instruction) -> bool:
    if instruction.opcode == "compare":
        return instruction.operands[0] is instruction.operands[1]
    literal, shape = instruction.literal, instruction.shape
    if literal is None or not isinstance(shape, ArrayShape) or not shape.element_type.is_inexact:
        return instruction.opcode == "is-finite"
    return literal.has_elided or bool(np.isnan(literal.array.astype(complex)).any())


def _is_equal(reference: Program, tested: Program) -> bool:
    result = compare(reference, tested, Options(trials=_TRIALS, time_limit=_SECONDS))
    return result.relation is Relation.EQUAL


def _is_read(mutant: Mutant) -> bool:
    """Whether the sign that is lost decides about more than a sign of a zero."""
    _, place = find(mutant.right, mutant.site)
    return sign_of_zero_is_read(mutant.right, lambda instruction: instruction is place)


def _splits(mutant: Mutant) -> list[Split]:
    _, comparison = find(mutant.right, mutant.site)
    return splits(compared_at(mutant.right, LAWS, comparison))


def _has_loop(module: Module) -> bool:
    return any(instruction.opcode == "while" for instruction in module.instructions())


def _has_same_terms(mutant: Mutant, split: Split | None = None, unrolled: bool = False) -> bool:
    right = _read(mutant.right, unrolled) if split is None else read(mutant.right, LAWS, split)
    return right.covers(read(mutant.module, LAWS, split, unrolled))


@lru_cache(maxsize=4)
def _read(module: Module, unrolled: bool) -> Reading:
    """Of a program with many mutants."""
    return read(module, LAWS, unrolled=unrolled)


def _is_of_numbers(program: Program) -> bool:
    """Whether the field draws all that the program depends on; integers and preds it takes as they come."""
    shapes = (part for shape in program.runner.parameters for _, part in leaves(shape))
    return all(not isinstance(s, ArrayShape) or s.element_type.is_inexact for s in shapes)
