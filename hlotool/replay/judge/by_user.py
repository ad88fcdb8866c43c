"""What the user decides: tolerances of single outputs, and a comparison of his own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlotool.errors import InputDataError
from hlotool.findings.outputs import output_name
from hlotool.findings.verdict import Verdict
from hlotool.ir.types import ShapeIndex
from hlotool.numerics.compare import compare_values
from hlotool.numerics.tolerance import ChosenTolerance
from hlotool.numerics.verdict import LeafComparison
from hlotool.replay.judge.judgement import Judgement, Leaf


def settled(judgement: Judgement, leaves: Sequence[Leaf]) -> dict[int, LeafComparison]:
    """What is said of leaves that the user decides about, by their numbers.

    Raises:
        InputDataError: the user's comparison raises, or answers something else than it may.
    """
    said: dict[int, LeafComparison] = {}
    for leaf in leaves:
        answer = _by_comparison(judgement, leaf) or _by_tolerance(judgement, leaf)
        if answer is not None:
            said[leaf.number] = answer
    return said


def _by_tolerance(judgement: Judgement, leaf: Leaf) -> LeafComparison | None:
    """By the tolerance of the output itself; that of all outputs is where values are compared."""
    chosen = _chosen_for(judgement, leaf.compared.index)
    if chosen is None or leaf.compared.verdict in (Verdict.IDENTICAL, Verdict.NOT_COMPARABLE):
        return None
    compared = compare_values(leaf.shape, leaf.expected, leaf.actual, facts=[leaf.facts], tolerance=chosen)
    return replace(compared.leaves[0], index=leaf.compared.index)


def _chosen_for(judgement: Judgement, index: ShapeIndex) -> ChosenTolerance | None:
    """Of an output, or of the innermost tuple around it that has one."""
    for length in range(len(index), -1, -1):
        if (chosen := judgement.tolerances.get(index[:length])) is not None:
            return chosen
    return None


def _by_comparison(judgement: Judgement, leaf: Leaf) -> LeafComparison | None:
    """By the user's function, which gets copies: it may do with them what it likes."""
    if judgement.compare_with is None:
        return None
    name = output_name(leaf.compared.index)
    try:
        answer: Any = judgement.compare_with(name, leaf.expected.copy(), leaf.actual.copy())
    except Exception as error:
        raise InputDataError(f"--compare-with: of {name}: {type(error).__name__}: {error}") from error
    if answer is None:
        return None
    if isinstance(answer, str):
        return replace(leaf.compared, verdict=Verdict.WRONG, reason=f"{answer}, says --compare-with")
    if not isinstance(answer, bool | np.bool_):
        kind = type(answer).__name__
        raise InputDataError(f"--compare-with: of {name}: it returned {kind}, not a bool, a str or None")
    if answer and leaf.compared.verdict is Verdict.IDENTICAL:
        return None
    if answer:
        return replace(leaf.compared, verdict=Verdict.AGREE, reason="agrees, says --compare-with")
    return replace(leaf.compared, verdict=Verdict.WRONG, reason="differs, says --compare-with")
