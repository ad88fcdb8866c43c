"""Values as flat lists and back."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.ir.arrays import Literal, flatten, from_literal, unflatten
from hlotool.ir.types import TOKEN, ArrayShape, ElementType, TupleShape

F32 = ArrayShape(ElementType.F32, (2,))
NESTED = TupleShape((F32, TupleShape((F32, TOKEN)), TupleShape(())))


def test_round_trip() -> None:
    a, b = np.ones(2, np.float32), np.zeros(2, np.float32)
    value = (a, (b, None), ())
    leaves = list(flatten(NESTED, value))
    assert [index for index, _, _ in leaves] == [(0,), (1, 0), (1, 1)]
    assert [leaf is expected for (_, _, leaf), expected in zip(leaves, (a, b, None))] == [True] * 3
    rebuilt = unflatten(NESTED, [leaf for _, _, leaf in leaves])
    assert rebuilt == value


def test_wrong_structures() -> None:
    with pytest.raises(TypeError, match="expected a tuple of 3"):
        list(flatten(NESTED, (1, 2)))
    with pytest.raises(ValueError, match="is missing"):
        unflatten(NESTED, [1, 2])
    with pytest.raises(ValueError, match="more than"):
        unflatten(NESTED, [1, 2, 3, 4])


def test_literals() -> None:
    array = np.ones(2, np.float32)
    part = Literal(F32, array)
    assert from_literal(part) is array
    whole = Literal(TupleShape((F32, TOKEN)), (part, Literal(TOKEN, None)))
    assert from_literal(whole) == (array, None)
    with pytest.raises(ValueError, match="elided"):
        from_literal(Literal(F32, None, elided=True))
