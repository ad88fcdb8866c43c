"""Reductions that choose among rows by comparing them: the largest number and where it is, say.

What such a reducer returns depends on nothing but how the numbers of two rows compare. So a few numbers tell
all about it: two that differ and a NaN are all cases of two rows, and with a third one all laws of three rows
can be tried. Where it finds the same whatever the order of rows and however often each is there, the result
depends on which rows there are, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.analysis.monoids import is_choice
from hlotool.analysis.scalar_form import ScalarForm, scalar_form
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType
from hlotool.search.mutation.hashing import Symbols, combined, key_of, set_along
from hlotool.search.mutation.predicates import COMPARED
from hlotool.search.mutation.terms import Term

#: Rows that are tried: three of them in all combinations.
_MOST_ROWS: Final = 48
#: Opcodes that depend on nothing but the order of numbers.
_BY_ORDER: Final[Mapping[str, Callable[..., Any]]] = {
    "and": np.logical_and,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "not": np.logical_not,
    "or": np.logical_or,
    "select": np.where,
    "xor": np.logical_xor,
}

_LOGIC: Final = opcodes_with(Trait.BITWISE)

#: Numbers in columns, row by row.
_Rows: TypeAlias = npt.NDArray[np.float64]


def chosen_rows(reduce: Instruction, terms: Sequence[Term], rising: Sequence[int]) -> Symbols | None:
    """Symbols of a reduction of several arrays, as they follow from the rows that there are.

    Args:
        reduce: the instruction; signs of zeros do not count.
        terms: arrays, then their initial values.
        rising: which arrays reach the reducer in ascending order.

    Returns:
        for each element of the result one symbol for all arrays; None where the order of rows may matter, or
        how often one is there.
    """
    count, axes = len(terms) // 2, reduce.integers("dimensions")
    numbers = [n for n, term in enumerate(terms[:count]) if _is_known_integer(term)]
    place = numbers[0] if numbers else None
    table = _table(reduce.computation("to_apply"), place, place in rising)
    if table is None or any(init.symbols.shape for init in terms[count:]):
        return None
    rows = combined(key_of("row"), *(term.symbols for term in terms[:count]))
    key = key_of("chosen row", place, table)
    return combined(key, set_along(rows, tuple(axes)), *(init.symbols for init in terms[count:]))


def _is_known_integer(term: Term) -> bool:
    return term.known is not None and term.known.dtype.kind in "iu"


@lru_cache(maxsize=256)
def _table(reducer: Computation, place: int | None, is_rising: bool) -> str | None:
    """What a reducer returns for two rows, as text; None where that may depend on more than which they are.

    Args:
        reducer: of accumulators and elements.
        place: of the column in whose order the rows are given, if there is one …
        is_rising: … and whether no rows come in another order. Otherwise they come in any order.
    """
    form = scalar_form(reducer)
    if form is None or not _goes_by_order(form):
        return None
    rows = _rows([parameter.element_type for parameter in form.parameters[: len(form.outputs)]])
    if len(rows) > _MOST_ROWS:
        return None

    def in_order(one: _Rows, other: _Rows) -> _Rows:
        """As the reducer finds it, given that row first which is first in the column."""
        found = _applied(form, one, other)
        if place is None:
            return found
        turned = _applied(form, other, one)
        return np.where((one[:, place] <= other[:, place])[:, None], found, turned)

    one, other = (np.repeat(rows, len(rows), 0), np.tile(rows, (len(rows), 1)))
    pairs = in_order(one, other)
    if not _same(pairs, in_order(other, one)) or not _same(in_order(rows, rows), rows):
        return None
    if not is_rising and not _same(pairs, _applied(form, one, other)):
        return None
    a, b, c = (rows[axis.reshape(-1)] for axis in np.indices((len(rows),) * 3))
    if not _same(in_order(in_order(a, b), c), in_order(a, in_order(b, c))):
        return None
    kinds = [parameter.element_type.value for parameter in form.parameters]
    return f"{kinds} {(pairs + 0.0).tobytes().hex()}"


def _goes_by_order(form: ScalarForm) -> bool:
    """Whether it hands on one row or the other in each column, by comparisons within columns alone."""
    if not is_choice(form) or any(parameter.element_type.is_complex for parameter in form.parameters):
        return False
    columns: dict[Instruction, set[int]] = {
        parameter: {(parameter.parameter_number or 0) % len(form.outputs)} for parameter in form.parameters
    }
    for operation in form.operations:
        is_of_words = operation.opcode in _LOGIC and operation.element_type is not ElementType.PRED
        parts = operation.operands[1:] if operation.opcode == "select" else operation.operands
        read = set().union(*(columns[part] for part in parts))
        if operation.opcode == "compare":
            if len(read) > 1 or "type" in operation.attributes:
                return False
        elif operation.opcode not in _BY_ORDER or is_of_words:
            return False
        columns[operation] = read if operation.opcode != "compare" else set()
    return True


def _rows(kinds: Sequence[ElementType]) -> _Rows:
    """All rows of three different numbers, of both of a pred, and of NaN where there is one."""
    columns = [
        [0.0, 1.0] if kind is ElementType.PRED else [1.0, 2.0, 3.0, *([np.nan] if kind.is_floating else [])]
        for kind in kinds
    ]
    if prod(map(len, columns)) > _MOST_ROWS:
        return np.zeros((_MOST_ROWS + 1, len(columns)))
    grid = np.meshgrid(*columns, indexing="ij")
    return np.stack([axis.reshape(-1) for axis in grid], -1)


def _applied(form: ScalarForm, accumulators: _Rows, elements: _Rows) -> _Rows:
    """What a reducer returns, row by row."""
    both = np.concatenate([accumulators, elements], -1)
    values: dict[Instruction, Any] = {}
    for parameter in form.parameters:
        column = both[:, parameter.parameter_number or 0]
        is_pred = parameter.element_type is ElementType.PRED
        values[parameter] = column.astype(bool) if is_pred else column
    for operation in form.operations:
        opcode, operands = operation.opcode, [values[o] for o in operation.operands]
        function = COMPARED[operation.text("direction")] if opcode == "compare" else _BY_ORDER[opcode]
        values[operation] = function(*operands)
    return np.stack([np.asarray(values[o], np.float64) for o in form.outputs], -1)


def _same(one: _Rows, other: _Rows) -> bool:
    return np.array_equal(one, other, equal_nan=True)
