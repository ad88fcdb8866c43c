"""Index expressions mean what they meant before they were simplified, and round trips vanish."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product
from math import prod

import pytest

from hlotool.backends.cuda.codegen.indices import Digit, Expr, constant, linear, split, variable


def _value(part: Expr, values: Mapping[str, int]) -> int:
    total = part.offset
    for atom, factor in part.terms:
        if isinstance(atom, Digit):
            quotient = _value(atom.of, values) // atom.step
            total += factor * (quotient if atom.size is None else quotient % atom.size)
        else:
            total += factor * values[atom.name]
    return total


def _split(position: int, dims: tuple[int, ...]) -> list[int]:
    parts = []
    for size in reversed(dims):
        parts.append(position % size)
        position //= size
    return parts[::-1]


def _factored(rng: random.Random, size: int) -> tuple[int, ...]:
    """Dimensions of that many elements."""
    dims = []
    while size > 1 and len(dims) < 4:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        dims.append(rng.choice(divisors))
        size //= dims[-1]
    return (*dims, size)


@pytest.mark.parametrize("seed", range(60))
def test_reshapes_of_transposed_slices(seed: int) -> None:
    """A chain of index maps, at every position."""
    rng = random.Random(seed)
    rows, columns = rng.choice([(1, 24), (4, 6), (6, 8), (3, 16)])
    size = rows * columns
    place = variable("row", rows) * columns + variable("column", columns)
    dims = _factored(rng, size)
    index = list(split(place, dims))
    order = rng.sample(range(len(dims)), len(dims))
    shape = tuple(dims[d] for d in order)
    source = [index[d] for d in order]
    shift = [rng.randint(0, 2) for _ in shape]
    moved = linear([part + s for part, s in zip(source, shift)], [d + 2 for d in shape])
    last = _factored(rng, prod(d + 2 for d in shape))
    again = split(moved, last)
    for row, column in product(range(rows), range(columns)):
        values = {"row": row, "column": column}
        parts = _split(row * columns + column, dims)
        parts = [parts[d] + s for d, s in zip(order, shift)]
        position = 0
        for part, d in zip(parts, shape):
            position = position * (d + 2) + part
        assert _value(moved, values) == position
        assert moved.low <= position <= moved.high
        assert [_value(p, values) for p in again] == _split(position, last)


@pytest.mark.parametrize("dims", [(4, 6), (2, 3, 4), (24,), (1, 24, 1), (3, 1, 8)])
def test_what_is_split_and_joined_is_the_position(dims: tuple[int, ...]) -> None:
    position = variable("p", 24)
    assert linear(split(position, dims), dims) == position
    rows = variable("row", 4) * 24 + position
    assert linear(split(rows, (4, *dims)), (4, *dims)) == rows


def test_rows_and_columns_need_no_division() -> None:
    place = variable("row", 10) * 64 + variable("column", 64)
    assert split(place, (10, 64)) == (variable("row", 10), variable("column", 64))
    assert split(place, (5, 2, 64))[2] == variable("column", 64)
    assert split(place, (10, 8, 8))[0] == variable("row", 10)


def test_a_dimension_of_one_element_has_one_index() -> None:
    assert variable("x", 1) == constant(0)
    assert split(variable("p", 6), (1, 6)) == (constant(0), variable("p", 6))


def test_text_is_of_64_bits() -> None:
    part = variable("a", 5) * 3000000000 + 7
    assert str(part) == "((i64)a * 3000000000ll + 7ll)"
