"""Maps of errors: cells cover every element once, and show the largest error of those that they cover."""

from __future__ import annotations

import numpy as np

from hlotool.ir.types import ElementType
from hlotool.judge.metrics import heat_map


def test_one_wrong_element_of_many_shows_in_its_cell() -> None:
    expected = np.zeros((3, 100, 1000), np.float32)
    actual = expected.copy()
    actual[1, 99, 500] = 2.5
    heat = heat_map(expected, actual, ElementType.F32)
    assert heat is not None
    cells = np.array(heat.cells, float)
    assert cells.shape == (12, 48)
    (row, column) = np.unravel_index(cells.argmax(), cells.shape)
    assert (row, column, cells[row, column], np.count_nonzero(cells)) == (11, 24, 2.5, 1)


def test_what_is_not_finite_on_one_side_only_is_no_number() -> None:
    expected = np.float64([[np.nan, np.inf, 1], [np.nan, 2, np.inf]])
    actual = np.float64([[np.nan, np.inf, np.nan], [1, 2, -np.inf]])
    heat = heat_map(expected, actual, ElementType.F64)
    assert heat is not None
    assert heat.cells == [[0, 0, None], [None, 0, None]]


def test_vectors_have_no_map() -> None:
    assert heat_map(np.zeros(5), np.ones(5), ElementType.F64) is None
    assert heat_map(np.zeros((0, 5)), np.ones((0, 5)), ElementType.F64) is None
    assert heat_map(np.zeros((5, 1)), np.ones((5, 1)), ElementType.F64) is None
