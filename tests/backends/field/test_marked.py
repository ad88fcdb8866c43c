"""Words that say what they are."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.field.values import (
    compared,
    held,
    is_marked,
    marked,
    marked_residues,
    numbered,
    pair,
    residues,
)
from hlotool.backends.field.words import P, Q, integers, join, split
from hlotool.inputs.recorded_values import Budget, Store
from hlotool.ir.types import ArrayShape, ElementType, TupleShape
from hlotool.judge.locate.likeness import distance

F32 = ArrayShape(ElementType.F32, (2, 3))
WORDS = integers(np.arange(6, dtype=np.int64).reshape(2, 3) - 2)


@pytest.mark.parametrize("half", [0, 1])
def test_the_residue_that_counts(half: int) -> None:
    found = marked(F32, WORDS, half)
    assert is_marked(found)
    assert (compared(found) == split(WORDS)[half]).all()
    assert compared(found)[0, 0] == (P, Q)[half] - 2
    assert (held(found) == WORDS).all()


def test_scalars_and_views_keep_their_dimensions() -> None:
    scalar = marked(ArrayShape(ElementType.BF16, ()), WORDS[0, 0])
    assert (scalar.shape, held(scalar)) == ((), WORDS[0, 0])
    assert (held(marked(ArrayShape(ElementType.F32, (3, 2)), WORDS.T)) == WORDS.T).all()


def test_complex_numbers_count_with_both_parts() -> None:
    shape = ArrayShape(ElementType.C64, (2, 3))
    one, other = (marked(shape, pair(WORDS, imaginary)) for imaginary in (WORDS, WORDS[::-1]))
    assert compared(one).shape == (2, 3, 2)
    assert held(one).tobytes() == pair(WORDS, WORDS).tobytes()
    assert distance(one, other) == np.inf


def test_integers_and_parts_of_tuples_are_themselves() -> None:
    numbers = np.arange(6, dtype=np.uint64).reshape(2, 3)
    shape = TupleShape((ArrayShape(ElementType.U64, (2, 3)), F32))
    first, second = marked(shape, (numbers, WORDS))
    assert first is numbers
    assert is_marked(second)
    assert not is_marked(held((first, second))[1])


def test_the_other_residue_tells_nothing_apart() -> None:
    """Modulo Q the root of a square has either sign."""
    p, q = split(WORDS)
    other = join(p, (Q - q) % np.uint64(Q))
    one, same = marked(F32, WORDS), marked(F32, other)
    assert distance(one, same) == 0
    assert distance(one, marked(F32, WORDS, 1)) == np.inf
    store = Store(Budget())
    assert store.sample(0, one).digest == store.sample(1, same).digest
    assert store.sample(2, one).digest != store.sample(3, marked(F32, WORDS + np.uint64(1 << 32))).digest


@pytest.mark.parametrize("half", [0, 1])
def test_residues_are_marked_as_the_words_are(half: int) -> None:
    shape = TupleShape((F32, ArrayShape(ElementType.C64, (2, 3))))
    words = WORDS, pair(WORDS, WORDS[::-1])
    ones, others = marked(shape, words, half), marked_residues(shape, residues(shape, words, half), half)
    for one, other in zip(ones, others):
        assert (one.dtype, distance(one, other)) == (other.dtype, 0)
        assert (compared(one) == compared(other)).all()


def test_equal_elements_have_one_number() -> None:
    shape = ArrayShape(ElementType.C64, (2, 3))
    assert (numbered(marked(F32, WORDS)) == split(WORDS)[0]).all()
    found = numbered(marked(shape, pair(WORDS, WORDS[::-1])))
    assert found.shape == (2, 3)
    assert len(np.unique(found)) == 6
    assert numbered(WORDS) is WORDS
