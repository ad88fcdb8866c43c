"""Factors and solutions of complex systems, multiplied out again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hlotool.backends.field import complexes as m
from hlotool.backends.field import words as w
from hlotool.backends.field.complexes import Pair
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.trial import Trial
from hlotool.parser.reader import parse_module

EMPTY = parse_module("HloModule m\nENTRY e {\n  ROOT r = f32[] constant(0)\n}\n")


def whole(rng: np.random.Generator, *dims: int) -> Pair:
    """Whole numbers other than 0."""
    real, imaginary = (w.integers(rng.integers(1, 50, dims)) for _ in range(2))
    return real, imaginary


def same(one: Pair, other: Pair) -> bool:
    """Modulo P; modulo Q a root has either sign."""
    return all(np.array_equal(w.split(a)[0], w.split(b)[0]) for a, b in zip(one, other))


def test_the_factor_times_its_adjoint_is_the_matrix() -> None:
    rng = np.random.default_rng(1)
    triangle = np.tri(4, dtype=np.uint64)
    real, imaginary = whole(rng, 2, 4, 4)
    lower = real * triangle, imaginary * np.tri(4, k=-1, dtype=np.uint64)
    matrix = m.product(lower, m.adjoint(lower))
    found = m.factor(matrix, Trial(Constants(EMPTY, EMPTY)))
    assert same(m.product(found, m.adjoint(found)), matrix)
    assert same(found, (found[0] * triangle, found[1] * triangle))


@pytest.mark.parametrize(
    ("left", "lower", "unit", "transpose"),
    [*itertools.product(*[(True, False)] * 3, ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))],
)
def test_the_matrix_times_the_solution_is_the_right_side(
    left: bool, lower: bool, unit: bool, transpose: str
) -> None:
    rng = np.random.default_rng(2)
    given = whole(rng, 2, 3, 3)
    right = whole(rng, 2, 3, 3)
    x = m.solution(given, right, left, lower, transpose, unit)
    triangle = np.tri(3, k=-1, dtype=np.uint64) if lower else np.tri(3, k=-1, dtype=np.uint64).T
    diagonal = np.eye(3, dtype=np.uint64)
    real = given[0] * triangle + (diagonal * w.ONE if unit else given[0] * diagonal)
    matrix = real, given[1] * (triangle if unit else triangle + diagonal)
    turned = {"NO_TRANSPOSE": lambda x: x, "TRANSPOSE": m.transposed, "ADJOINT": m.adjoint}[transpose](matrix)
    assert same(m.product(turned, x) if left else m.product(x, turned), right)
