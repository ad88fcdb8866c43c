"""Predicates in a form that is the same for all that mean the same.

A predicate is a table over a few variables: how two arrays compare, or a mask of which nothing else is known.
`x <= 0 & x != 0`, `!(x >= 0)` of integers and `x < 0` are one table. What cannot occur, or does not matter
where the predicate is read, is left out of account.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.analysis.machine_range import MachineRange
from hlotool.analysis.machine_rules import possible_orders
from hlotool.search.mutation.hashing import Symbols, combined, key_of, of_values, whole

Table: TypeAlias = npt.NDArray[np.bool_]

#: More variables make tables large; what depends on more is a mask of which nothing else is known.
_MOST_VARIABLES: Final = 5

#: What kind of number something is: finite, infinite, NaN.
_FINITE: Final = (True, False, False)
_NAN: Final = (False, False, True)

#: How two numbers compare.
LESS, EQUAL, GREATER, UNORDERED = range(4)
_MIRRORED: Final = (GREATER, EQUAL, LESS, UNORDERED)
_HOLDS: Final[Mapping[str, tuple[int, ...]]] = {
    "EQ": (EQUAL,),
    "NE": (LESS, GREATER, UNORDERED),
    "LT": (LESS,),
    "LE": (LESS, EQUAL),
    "GT": (GREATER,),
    "GE": (GREATER, EQUAL),
}
#: The same of numbers, by direction.
COMPARED: Final[Mapping[str, Callable[..., Any]]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """An array that is compared.

    Attributes:
        symbols: of its elements.
        bounds: of them.
        at_most: symbols of an array that none of its elements exceeds, where one is known.
    """

    symbols: Symbols
    bounds: MachineRange
    at_most: Symbols | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """What a predicate depends on.

    Attributes:
        symbols: of its outcomes.
        key: the same for the same variable.
        possible: by outcome, whether it may occur: two of a mask (false, true), four of a comparison, three
            of what kind of number something is.
        sides: what is compared, or the one array whose kind it is; none of a mask.
        is_ordered: whether neither side is NaN, wherever they are compared: integers are not.
    """

    symbols: Symbols
    key: int
    possible: tuple[bool, ...]
    sides: tuple[Side, ...] = ()
    is_ordered: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A function of variables.

    Attributes:
        variables: in order of their keys.
        table: a dimension per variable, of its outcomes.
    """

    variables: tuple[Variable, ...]
    table: Table

    @property
    def constant(self) -> bool | None:
        """Its value where that is always the same."""
        return None if self.variables else bool(self.table)

    def symbols(self, dims: tuple[int, ...]) -> Symbols:
        """Its symbols as an array."""
        if not self.variables:
            return of_values(np.full(dims, bool(self.table)))
        first = self.variables[0]
        if len(self.variables) == 1 and self.table.tolist() == [False, True]:
            return np.broadcast_to(first.symbols, dims)
        key = key_of("predicate", self.table.shape, self.table.tobytes())
        return np.broadcast_to(combined(key, *(v.symbols for v in self.variables)), dims)


#: What holds everywhere, and nowhere.
ALWAYS: Final = Predicate((), np.array(True))
NEVER: Final = Predicate((), np.array(False))


def comparison(direction: str, one: Side, other: Side, is_ordered: bool = False) -> Predicate:
    """A comparison of numbers, of which NaN is unordered; `is_ordered` of integers."""
    if np.array_equal(one.symbols, other.symbols):
        holds = EQUAL in _HOLDS[direction]
        return simplified((_kind(one),), np.array([holds, holds, direction == "NE"]))
    variable, is_mirrored = order(one, other)
    table = np.zeros(4, bool)
    for outcome in _HOLDS[direction]:
        table[_MIRRORED[outcome] if is_mirrored else outcome] = True
    return simplified((replace(variable, is_ordered=is_ordered),), table)


def is_nan(side: Side, nan_of: Symbols | None) -> Predicate:
    """Where an array is NaN.

    Args:
        side: the array.
        nan_of: symbols of another one, outside of whose NaNs and infinities it is not, where one is known.
    """
    found = simplified((_kind(side),), np.array(_NAN))
    if nan_of is None or np.array_equal(nan_of, side.symbols):
        return found
    source = is_finite(Side(nan_of, MachineRange()))
    both = applied(lambda nan, finite: nan & ~finite, found, source)
    return found if both is None else both


def is_finite(side: Side) -> Predicate:
    """Where an array is neither NaN nor infinite."""
    return simplified((_kind(side),), np.array(_FINITE))


def _kind(side: Side) -> Variable:
    symbols = combined(key_of("kind"), side.symbols)
    possible = True, not side.bounds.is_finite, side.bounds.nan
    return Variable(symbols, int(whole(symbols)), possible, (side,))


def order(one: Side, other: Side) -> tuple[Variable, bool]:
    """How two arrays compare, and whether that is said of the second and the first."""
    keys = [int(whole(side.symbols)) for side in (one, other)]
    is_mirrored = keys[0] > keys[1]
    if is_mirrored:
        one, other = other, one
    orders = possible_orders(one.bounds, other.bounds)
    if keys[0] == keys[1]:
        orders = frozenset({"equal"})
    possible = (
        "less" in orders and not _is_bound(one.symbols, other),
        "equal" in orders,
        "greater" in orders and not _is_bound(other.symbols, one),
        one.bounds.nan or other.bounds.nan,
    )
    symbols = combined(key_of("order"), one.symbols, other.symbols)
    return Variable(symbols, int(whole(symbols)), possible, (one, other)), is_mirrored


def _is_bound(symbols: Symbols, side: Side) -> bool:
    """Whether a side never exceeds an array."""
    return side.at_most is not None and np.array_equal(side.at_most, symbols)


def mask(symbols: Symbols, bounds: MachineRange) -> Predicate:
    """A predicate of which nothing is known but its bounds."""
    variable = Variable(symbols, int(whole(symbols)), (bounds.low <= 0, bounds.high >= 1))
    return simplified((variable,), np.array([False, True]))


def applied(function: Callable[..., Table], *predicates: Predicate) -> Predicate | None:
    """A function of predicates; None where it depends on too much."""
    variables, tables = _aligned(predicates)
    if len(variables) > _MOST_VARIABLES:
        return None
    return simplified(variables, np.asarray(function(*tables), bool))


def inverse(predicate: Predicate) -> Predicate:
    """Where a predicate does not hold."""
    return simplified(predicate.variables, ~predicate.table)


def choice(mask: Predicate, one: Predicate, other: Predicate) -> Predicate | None:
    """One predicate where a mask holds, another one where it does not; None where that depends on too much.

    What either of them says to be impossible is so where it is read, which is in its own case only.
    """
    parts = [{v.key: v for v in part.variables} for part in (mask, one, other)]
    joined = tuple(_anywhere([part.get(key) for part in parts]) for key in sorted(set().union(*parts)))
    if len(joined) > _MOST_VARIABLES:
        return None
    holds, first, second = (_spread(part, joined) for part in (mask, one, other))
    cares = [_possible([part.get(variable.key, variable) for variable in joined]) for part in parts[1:]]
    return simplified(joined, np.where(holds, first, second), np.where(holds, *cares))


def of_both(one: Predicate, other: Predicate) -> Predicate | None:
    """A predicate that is known in one case and in the other one; None where it is not said alike."""
    keys = [[variable.key for variable in part.variables] for part in (one, other)]
    if keys[0] != keys[1] or not np.array_equal(one.table, other.table):
        return None
    pairs = zip(one.variables, other.variables)
    return Predicate(tuple(_anywhere([None, *pair]) for pair in pairs), one.table)


def _anywhere(known: Sequence[Variable | None]) -> Variable:
    """A variable where one of two predicates is read, or the other one.

    Args:
        known: the variable as it is known in any case, in the one case, and in the other one; None where it
            is not known.
    """
    always, one, other = known
    found = next(variable for variable in known if variable is not None)
    is_ordered = any(variable is not None and variable.is_ordered for variable in known)
    if one is not None and other is not None:
        either = tuple(a or b for a, b in zip(one.possible, other.possible))
        sides = tuple(_side_of_both(*pair) for pair in zip(one.sides, other.sides))
    else:
        # What rules an outcome out on one side does not rule it out on the other one.
        either = tuple(outcome != UNORDERED or not is_ordered for outcome in range(len(found.possible)))
        sides = tuple(
            side if _is_constant(side) else Side(side.symbols, MachineRange()) for side in found.sides
        )
    if always is None:
        return replace(found, possible=either, sides=sides, is_ordered=is_ordered)
    return replace(always, possible=tuple(a and b for a, b in zip(always.possible, either)))


def _side_of_both(one: Side, other: Side) -> Side:
    at_most = one.at_most
    if at_most is None or other.at_most is None or not np.array_equal(at_most, other.at_most):
        at_most = None
    return Side(one.symbols, one.bounds.union(other.bounds), at_most)


def _is_constant(side: Side) -> bool:
    """Whether it is one number wherever it is read, and not only where a mask says so."""
    number = side.bounds.low
    if not side.bounds.is_point or abs(number) >= 1 << 63:
        return False
    values = [np.asarray(number, np.float64)]
    if number == int(number):
        values.append(np.asarray(int(number), np.int64))
    return any(bool((side.symbols == of_values(value)).all()) for value in values)


def where(predicate: Predicate, given: Predicate, holds: bool) -> Predicate:
    """What a predicate is where another one holds, or where it does not."""
    if {v.key for v in predicate.variables}.isdisjoint(v.key for v in given.variables):
        return predicate
    variables, (table, condition) = _aligned((predicate, given))
    if len(variables) > _MOST_VARIABLES:
        return predicate
    return simplified(variables, table, condition == holds)


def implied(given: Predicate, holds: bool, predicate: Predicate) -> bool | None:
    """What a predicate always is where another one holds, or where it does not; None where it depends."""
    return where(predicate, given, holds).constant


def without(predicate: Predicate, variable: Variable, outcome: int) -> Predicate:
    """The predicate where it does not matter what it is at an outcome of one of its variables."""
    keys = [v.key for v in predicate.variables]
    if variable.key not in keys:
        return predicate
    care = np.ones(predicate.table.shape, bool)
    np.moveaxis(care, keys.index(variable.key), 0)[outcome] = False
    return simplified(predicate.variables, predicate.table, care)


def outcomes(given: Predicate, holds: bool, variable: Variable) -> tuple[bool, ...]:
    """Which outcomes one of its variables may have where a predicate holds, or where it does not."""
    axis = next(n for n, v in enumerate(given.variables) if v.key == variable.key)
    cared = _possible(given.variables) & (given.table == holds)
    others = tuple(n for n in range(cared.ndim) if n != axis)
    return tuple(bool(x) for x in cared.any(axis=others))


def simplified(variables: tuple[Variable, ...], table: Table, care: Table | None = None) -> Predicate:
    """The same predicate of the fewest variables that decide it, wherever it matters.

    Args:
        variables: in order of their keys.
        table: of all of them.
        care: where the table matters, besides that the outcomes are possible; everywhere when None.
    """
    cared = _possible(variables) if care is None else _possible(variables) & care
    holds, fails = table & cared, ~table & cared
    axes = range(len(variables))
    for size in range(len(variables) + 1):
        for kept in combinations(axes, size):
            others = tuple(axis for axis in axes if axis not in kept)
            some, none = holds.any(axis=others), fails.any(axis=others)
            if not (some & none).any():
                return Predicate(tuple(variables[axis] for axis in kept), np.asarray(some, bool))
    raise AssertionError("all variables together decide")


def _possible(variables: Sequence[Variable]) -> Table:
    tables = [np.array(v.possible, bool) for v in variables]
    return reduce(np.logical_and.outer, tables, np.array(True))


def _aligned(predicates: Sequence[Predicate]) -> tuple[tuple[Variable, ...], list[Table]]:
    """All variables, and the tables over all of them; what either says to be impossible is so."""
    found: dict[int, Variable] = {}
    for variable in (v for predicate in predicates for v in predicate.variables):
        known = found.setdefault(variable.key, variable)
        both = tuple(a and b for a, b in zip(known.possible, variable.possible))
        found[variable.key] = replace(known, possible=both)
    variables = tuple(found[key] for key in sorted(found))
    if len(variables) > _MOST_VARIABLES:
        return variables, [predicate.table for predicate in predicates]
    return variables, [_spread(predicate, variables) for predicate in predicates]


def _spread(predicate: Predicate, variables: Sequence[Variable]) -> Table:
    """The table of a predicate over more variables than its own."""
    own = {v.key for v in predicate.variables}
    dims = [len(v.possible) if v.key in own else 1 for v in variables]
    return np.broadcast_to(predicate.table.reshape(dims), [len(v.possible) for v in variables])


def moved(predicate: Predicate, move: Callable[[Symbols], Symbols]) -> Predicate:
    """The predicate of elements at other places.

    Args:
        predicate: of an array.
        move: what becomes of the symbols of an array of its dimensions.
    """
    variables, table = list(predicate.variables), predicate.table
    for axis, variable in enumerate(variables):
        dims = variable.symbols.shape
        if not variable.sides:
            symbols = move(variable.symbols)
            variables[axis] = replace(variable, symbols=symbols, key=int(whole(symbols)))
            continue
        sides = [Side(move(np.broadcast_to(s.symbols, dims)), s.bounds) for s in variable.sides]
        if len(sides) == 1:
            variables[axis] = replace(_kind(sides[0]), possible=variable.possible)
            continue
        found, is_mirrored = order(*sides)
        # The same numbers are equal wherever they stand; what is known otherwise stays known, too.
        if is_mirrored:
            table = np.take(table, _MIRRORED, axis=axis)
        known = [variable.possible[_MIRRORED[n] if is_mirrored else n] for n in range(4)]
        possible = tuple(a and b for a, b in zip(found.possible, known))
        variables[axis] = replace(found, possible=possible, is_ordered=variable.is_ordered)
    if len({v.key for v in variables}) < len(variables):
        return mask(move(predicate.symbols(variables[0].symbols.shape)), MachineRange(0, 1, False, False))
    by_key = sorted(range(len(variables)), key=lambda axis: variables[axis].key)
    return simplified(tuple(variables[axis] for axis in by_key), table.transpose(by_key))
