"""Recognition of sort comparators that compare keys, alone or one after the other.

A table says what a comparator makes of every combination of answers that comparing keys can give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hlotool.backends.numpy.ordering import DIRECTIONS, SIGN_MAGNITUDE, total_order_keys
from hlotool.backends.numpy.precision import native
from hlotool.facts.scalar_form import ScalarForm
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

# What a comparator makes of every combination of answers that comparing keys can give.
#
# A comparator that only asks how some keys of two elements compare is a function of a few answers: less,
# equal, or greater for each key. It sorts by those keys one after the other exactly if its truth table says
# so.

#: Signs of the comparison of two keys, the answers that there are.
_SIGNS = np.array([-1, 0, 1], np.int8)

#: The same of two truth values, and the values themselves.
_PRED_SIGNS = np.array([-1, 0, 0, 1], np.int8)
_PRED_VALUES = np.array([[False, False, True, True], [True, False, True, False]])

#: A key, by number, and whether larger ones come first.
Place = tuple[int, bool]


class AnswerTable:
    """All combinations of answers, one in each row.

    Args:
        predicates: for each key, whether it is a truth value: then it counts which,
            even where both are equal.
        refinements: pairs of keys of which the second tells apart what the first takes for equal, and else
            says the same (the two orders of floats).

    Attributes:
        signs: for each key, the sign of comparing that of the first element with that of the second [rows].
        size: number of rows.
    """

    def __init__(self, predicates: Sequence[bool], refinements: Sequence[Place | tuple[int, int]]) -> None:
        sizes = [len(_PRED_SIGNS if p else _SIGNS) for p in predicates]
        self._answers = np.indices(sizes).reshape((len(sizes), -1))
        self._predicates = predicates
        self._refinements = refinements
        self.signs = [(_PRED_SIGNS if p else _SIGNS)[a] for p, a in zip(predicates, self._answers)]
        self.size = self._answers.shape[1]

    def values(self, number: int, of_first: bool) -> Array:
        """The truth values that are compared as key `number`: of the first elements or the second."""
        values: Array = _PRED_VALUES[0 if of_first else 1][self._answers[number]]
        return values

    def lexicographic(self, before: Array) -> tuple[list[Place], bool] | None:
        """The order that a comparator asks for.

        Args:
            before: in every row, whether the first element comes before the second.

        Returns:
            The keys, most significant first, and whether this is certain. It is not where keys are not
            independent of each other and the order follows only then. None when it is no such order.
        """
        possible, same = (np.ones(self.size, np.bool_) for _ in range(2))
        for coarse, fine in self._refinements:
            same &= self.signs[coarse] == self.signs[fine]
            possible &= (self.signs[coarse] == 0) | (self.signs[coarse] == self.signs[fine])
        found = self._order(before, possible)
        if found is not None or not self._refinements:
            return found
        # Perhaps among numbers of which no two differ in the one order only.
        found = self._order(before, same)
        return None if found is None else (found[0], False)

    def _order(self, before: Array, rows: Array) -> tuple[list[Place], bool] | None:
        order: list[Place] = []
        certain = True
        while before[rows].any():
            place = self._most_significant(before, rows)
            if place is None:
                return None
            order.append(place)
            number = place[0]
            rows = rows & (self.signs[number] == 0)
            if self._predicates[number]:
                false, true = (rows & (self.values(number, True) == value) for value in (False, True))
                certain = certain and bool((before[false] == before[true]).all())
                # What follows is asked of those elements only that differ in it.
                rows = false if before[false].any() else true
        return order, certain

    def _most_significant(self, before: Array, rows: Array) -> Place | None:
        """The key that decides alone where it differs."""
        for number, signs in enumerate(self.signs):
            less, greater = before[rows & (signs < 0)], before[rows & (signs > 0)]
            if less.size and less.all() and not greater.any():
                return number, False
            if greater.size and greater.all() and not less.any():
                return number, True
        return None


#: Comparators of more keys have no table: it grows by a factor of three or four with each.
_MOST_KEYS = 8

#: Whether the first element of a pair comes first, in every row of a table.
Answer = Callable[[AnswerTable], Array]

#: What joins answers.
_CONNECTIVES: dict[str, Callable[..., Array]] = {
    "and": np.logical_and,
    "not": np.logical_not,
    "or": np.logical_or,
    "select": np.where,
    "xor": np.logical_xor,
}


@dataclass(frozen=True, slots=True, eq=False)
class SortKey:
    """One key of a comparator.

    Attributes:
        value: the expression compared, in terms of the a's.
        descending: larger values come first.
        total: floats compare in total order; otherwise -0 equals +0 and NaN counts as the largest.
    """

    value: Instruction
    descending: bool
    total: bool

    def ranks(self, values: Array) -> Array:
        """Integers in whose ascending order the elements belong."""
        return ranks(values, self.value.element_type, self.descending, self.total)


def ranks(values: Array, kind: ElementType, descending: bool, total: bool = True) -> Array:
    """Integers that sort ascending as `values` sort; see SortKey for the order of floats."""
    by_bits = total and kind in SIGN_MAGNITUDE
    numbers = total_order_keys(values) if by_bits else _ascending(native(values, kind), kind, total)
    return ~numbers if descending else numbers


def _ascending(values: Array, kind: ElementType, total: bool) -> Array:
    if kind is ElementType.PRED:
        return values.view(np.int8)
    if not kind.is_floating:
        return values
    return total_order_keys(values if total else _plain(values))


def _plain(floats: Array) -> Array:
    """Merge the zeros, and all NaN into the largest."""
    merged: Array = floats + floats.dtype.type(0)
    merged[np.isnan(merged)] = np.nan
    return merged


@dataclass(frozen=True, slots=True, eq=False)
class SortOrder:
    """The order that a comparator asks for.

    Attributes:
        keys: most significant first.
        certain: it is this one whatever the values. Otherwise one key may say something of another, as the
            test for NaN does of the number; then sorted values have to be shown to the comparator.
    """

    keys: tuple[SortKey, ...]
    certain: bool


def sort_order(form: ScalarForm) -> SortOrder | None:
    """The order by keys that a comparator asks for, or None when it is of another kind."""
    questions = _Questions(form)
    answer = questions.read(form.outputs[0])
    asked = questions.asked
    if answer is None or not 0 < len(asked) <= _MOST_KEYS:
        return None
    table = AnswerTable(
        [value.element_type is ElementType.PRED for value, _ in asked],
        [(asked.index((v, False)), fine) for fine, (v, t) in enumerate(asked) if t and (v, False) in asked],
    )
    found = table.lexicographic(answer(table))
    if found is None:
        return None
    order, certain = found
    return SortOrder(tuple(SortKey(asked[n][0], down, asked[n][1]) for n, down in order), certain)


class _Questions:
    """What a comparator asks about its elements.

    Attributes:
        asked: keys, and whether they are compared in total order, each once.
    """

    def __init__(self, form: ScalarForm) -> None:
        self.asked: list[tuple[Instruction, bool]] = []
        self._swap = _swapper(form)

    def read(self, node: Instruction) -> Answer | None:
        """How `node`, of type pred, follows from comparisons of keys; None when it asks something else."""
        if node.opcode == "constant":
            return _constant(node)
        if node.opcode == "compare":
            compared = self._comparison(node)
            if compared is not None:
                return compared
        sides = {number % 2 for number in _reads(node)}
        if len(sides) == 1 and (other := self._swap(node)) is not None:
            return self._predicate(other, False) if sides == {1} else self._predicate(node, True)
        function = _CONNECTIVES.get(node.opcode)
        if node.opcode == "compare" and node.operands[0].element_type is ElementType.PRED:
            function = DIRECTIONS.get(node.text("direction"))
        if function is None:
            return None
        parts = [self.read(operand) for operand in node.operands]
        known = [part for part in parts if part is not None]
        return _connected(function, known) if len(known) == len(parts) else None

    def _comparison(self, node: Instruction) -> Answer | None:
        """A comparison of the same function of both elements."""
        left, right = node.operands
        function = DIRECTIONS.get(node.text("direction"))
        sides = {number % 2 for number in _reads(left)}
        if (
            function is None
            or len(sides) != 1
            or self._swap(left) is not right
            or left.element_type.is_complex
        ):
            return None
        total = left.element_type.is_floating and node.attributes.get("type") == "TOTALORDER"
        if sides == {0}:
            number = self._number(left, total)
            return lambda table: function(table.signs[number], 0)
        number = self._number(right, total)
        return lambda table: function(0, table.signs[number])

    def _predicate(self, value: Instruction, of_first: bool) -> Answer:
        """A property of one element alone, which is compared, too: those that have it are larger."""
        number = self._number(value, False)
        return lambda table: table.values(number, of_first)

    def _number(self, value: Instruction, total: bool) -> int:
        if (value, total) not in self.asked:
            self.asked.append((value, total))
        return self.asked.index((value, total))


def _constant(node: Instruction) -> Answer | None:
    if node.literal is None or node.literal.value is None:
        return None
    value = node.literal.array
    return lambda table: np.full(table.size, value)


def _connected(function: Callable[..., Array], parts: Sequence[Answer]) -> Answer:
    return lambda table: function(*(part(table) for part in parts))


_Swap = Callable[[Instruction], "Instruction | None"]


def _reads(node: Instruction) -> set[int]:
    """Numbers of the parameters that an expression depends on."""
    seen: set[Instruction] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            stack.extend(current.operands)
    return {i.parameter_number or 0 for i in seen if i.opcode == "parameter"}


def _swapper(form: ScalarForm) -> _Swap:
    """Function from an expression to the same one with a's and b's exchanged, if that occurs in the form."""
    known: dict[tuple[object, ...], Instruction] = {
        _key(i, i.operands): i for i in form.operations if i.opcode != "constant"
    }
    swapped: dict[Instruction, Instruction | None] = {}

    def swap(node: Instruction) -> Instruction | None:
        if node.opcode == "parameter":
            return form.parameters[(node.parameter_number or 0) ^ 1]
        if node.opcode == "constant":
            return node
        if node not in swapped:
            operands = [swap(o) for o in node.operands]
            found = [o for o in operands if o is not None]
            swapped[node] = known.get(_key(node, found)) if len(found) == len(operands) else None
        return swapped[node]

    return swap


def _key(instruction: Instruction, operands: Sequence[Instruction]) -> tuple[object, ...]:
    attributes = tuple(sorted(instruction.attributes.items(), key=lambda item: item[0]))
    return instruction.opcode, instruction.shape, attributes, tuple(map(id, operands))
