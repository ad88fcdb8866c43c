"""Recognition of sort comparators that compare keys, alone or one after the other.

A comparator receives (a0, b0, a1, b1, …). When it compares the same function of the a's and of the b's,
that function is evaluated once for every element, and NumPy sorts by its values. JAX writes keys of floats
with NaN and -0 made canonical, several keys as `lt0 or (eq0 and lt1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hlotool.backends.numpy.accumulation import native
from hlotool.backends.numpy.ordering import SIGN_MAGNITUDE, total_order_keys
from hlotool.backends.numpy.scalar_form import ScalarForm
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType


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


def sort_keys(form: ScalarForm) -> list[SortKey] | None:
    """The keys of a comparator, most significant first, or None when it is of another kind."""
    swap = _swapper(form)
    keys = []
    rest: Instruction | None = form.outputs[0]
    while rest is not None:
        strict, ties, rest = _split(rest)
        key = _strict(strict, swap)
        if key is None or (ties is not None and not _is_tie(ties, key, swap)):
            return None
        keys.append(key)
    return keys


def _split(node: Instruction) -> tuple[Instruction, Instruction | None, Instruction | None]:
    """(strict comparison, equality, comparison of the remaining keys) of `lt or (eq and rest)`.

    Also of the same written as `select(eq, rest, lt)`.
    """
    if node.opcode == "select":
        equal, rest, strict = node.operands
        return strict, equal, rest
    if node.opcode == "or":
        for strict, both in (node.operands, node.operands[::-1]):
            if both.opcode == "and" and strict.opcode == "compare":
                first, second = both.operands
                is_equality = first.attributes.get("direction") == "EQ"
                return (strict, first, second) if is_equality else (strict, second, first)
    return node, None, None


_Swap = Callable[[Instruction], "Instruction | None"]


def _strict(node: Instruction, swap: _Swap) -> SortKey | None:
    """The key of a comparison LT or GT of the same function of both sides."""
    direction = node.attributes.get("direction")
    if node.opcode != "compare" or direction not in ("LT", "GT"):
        return None
    left, right = node.operands
    if swap(left) is not right or left.element_type.is_complex:
        return None
    descending = direction == "GT"
    if _reads_b(left):
        left, descending = right, not descending
    if _reads_b(left) or not _reads(left):
        return None
    return SortKey(left, descending, _is_total(node))


def _is_tie(node: Instruction, key: SortKey, swap: _Swap) -> bool:
    """Whether `node` is the equality that belongs to `key`."""
    sides = {key.value, swap(key.value)}
    return (
        node.opcode == "compare"
        and node.attributes.get("direction") == "EQ"
        and set(node.operands) == sides
        and (_is_total(node) == key.total or not key.value.element_type.is_floating)
    )


def _is_total(compare: Instruction) -> bool:
    return compare.attributes.get("type") == "TOTALORDER"


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


def _reads_b(node: Instruction) -> bool:
    return any(number % 2 for number in _reads(node))


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
