"""Predicates against brute force: what has the same symbols is the same for all numbers."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers
from hlotool.search.mutation import predicates
from hlotool.search.mutation.hashing import key_of
from hlotool.search.mutation.predicates import EQUAL, Predicate, Side

DIRECTIONS: dict[str, Callable[[float, float], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}
CONNECTIVES = (np.logical_and, np.logical_or, np.logical_xor)
#: Numbers that three variables take in all combinations, an infinity and NaN among them.
NUMBERS = (-1.0, 0.0, math.inf, math.nan)
ASSIGNMENTS = list(itertools.product(NUMBERS, repeat=3))


def side(number: int, bounds: MachineRange) -> Side:
    return Side(np.asarray(key_of("variable", number), np.uint64), bounds)


def drawn(rng: np.random.Generator, depth: int, sides: list[Side]) -> tuple[Predicate | None, list[bool]]:
    """A random predicate, and its truth for every assignment."""
    if depth == 0 and rng.random() < 0.2:
        asked = int(rng.integers(len(sides)))
        if rng.random() < 0.5:
            return predicates.is_nan(sides[asked], None), [math.isnan(v[asked]) for v in ASSIGNMENTS]
        return predicates.is_finite(sides[asked]), [math.isfinite(v[asked]) for v in ASSIGNMENTS]
    if depth == 0:
        one, other = (int(n) for n in rng.integers(len(sides), size=2))
        direction = str(rng.choice(list(DIRECTIONS)))
        truth = [bool(DIRECTIONS[direction](values[one], values[other])) for values in ASSIGNMENTS]
        return predicates.comparison(direction, sides[one], sides[other]), truth
    left, right = (drawn(rng, depth - 1, sides) for _ in range(2))
    connective = CONNECTIVES[int(rng.integers(len(CONNECTIVES)))]
    truth = [bool(connective(a, b)) for a, b in zip(left[1], right[1])]
    assert left[0] is not None
    assert right[0] is not None
    return predicates.applied(connective, left[0], right[0]), truth


def pool(seed: int, bounds: MachineRange) -> list[tuple[Predicate, list[bool]]]:
    rng = np.random.default_rng(seed)
    sides = [side(n, bounds) for n in range(3)]
    found = [drawn(rng, int(rng.integers(3)), sides) for _ in range(150)]
    return [(predicate, truth) for predicate, truth in found if predicate is not None]


def symbol(predicate: Predicate) -> int:
    return int(predicate.symbols(()))


def test_equal_symbols_are_equal_truth() -> None:
    by_symbol: dict[int, list[bool]] = {}
    for predicate, truth in pool(0, MachineRange()):
        assert by_symbol.setdefault(symbol(predicate), truth) == truth
    assert len(by_symbol) > 20


def test_two_ways_to_say_it_have_the_same_symbols() -> None:
    """Of integers: x <= y & x != y is x < y, !(x >= y) is, and so is y > x; with NaN the second is not."""
    for bounds, is_same in ((of_integers(-9, 9), True), (MachineRange(), False)):
        x, y = side(0, bounds), side(1, bounds)
        less = predicates.comparison("LT", x, y)
        both = [predicates.comparison(direction, x, y) for direction in ("LE", "NE")]
        assert symbol(less) == symbol(predicates.applied(np.logical_and, *both) or less)
        assert symbol(less) == symbol(predicates.comparison("GT", y, x))
        negated = predicates.applied(np.logical_not, predicates.comparison("GE", x, y))
        assert negated is not None
        assert (symbol(less) == symbol(negated)) is is_same


def test_in_a_case_only_that_case_counts() -> None:
    """`where` agrees with brute force wherever the given predicate holds, and so does what is implied."""
    found = pool(1, MachineRange())[:20]
    for (one, truth), (given, condition) in itertools.product(found, found):
        for holds in (True, False):
            places = [n for n, c in enumerate(condition) if c is holds]
            values = {truth[n] for n in places}
            decided = predicates.implied(given, holds, one)
            if decided is not None and places:
                assert values == {decided}
            restricted = predicates.where(one, given, holds)
            for n in places:
                assert at(restricted, ASSIGNMENTS[n]) == truth[n]


def test_equality_that_does_not_matter() -> None:
    x, y = side(0, of_integers(-9, 9)), side(1, of_integers(-9, 9))
    pair, _ = predicates.order(x, y)
    strict, loose = (predicates.without(predicates.comparison(d, x, y), pair, EQUAL) for d in ("LT", "LE"))
    assert symbol(strict) == symbol(loose)
    assert symbol(strict) != symbol(predicates.without(predicates.comparison("GT", x, y), pair, EQUAL))


def test_what_bounds_and_order_rule_out() -> None:
    low, high = side(0, of_integers(0, 3)), side(1, of_integers(3, 5))
    assert predicates.comparison("LE", low, high).constant is True
    assert predicates.comparison("LT", low, high).constant is None
    other = side(1, of_integers(-9, 9))
    bounded = Side(low.symbols, of_integers(-9, 9), at_most=other.symbols)
    assert predicates.comparison("GT", bounded, other).constant is False
    assert predicates.comparison("LT", other, bounded).constant is False
    assert predicates.comparison("GE", bounded, other).constant is None


def at(predicate: Predicate, values: tuple[float, ...]) -> bool:
    """The table read for numbers: the variables say which sides they compare."""
    numbers = {int(side(n, MachineRange()).symbols): value for n, value in enumerate(values)}
    place = []
    for variable in predicate.variables:
        one, *others = (numbers[int(s.symbols)] for s in variable.sides)
        if not others:
            place.append(0 if math.isfinite(one) else 1 if math.isinf(one) else 2)
            continue
        [other] = others
        place.append(0 if one < other else 1 if one == other else 2 if one > other else 3)
    return bool(predicate.table[tuple(place)])
