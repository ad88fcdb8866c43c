"""What terms are where a mask holds, and where it does not.

`select(m, a, f(select(m, b, x)))` is `select(m, a, f(x))`: what `b` is does not matter, for where the outer
choice reads it, the inner one took `x`. So terms remember what they are in both cases of the masks on their
way, and a select takes of each side the case in which it reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import ml_dtypes
import numpy as np

from hlotool.analysis.machine_rules import range_of
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.search.mutation.hashing import Symbols, of_values, whole
from hlotool.search.mutation.terms import Term, equality

_FALSE, _TRUE = of_values(np.array(False)), of_values(np.array(True))
#: Masks that a term remembers: each costs two more symbols per element.
_MOST_MASKS: Final = 6


def is_elementwise(instruction: Instruction, operands: Sequence[Term]) -> bool:
    """Whether every element of the result is made of the same elements of the operands, or of scalars."""
    is_one = instruction.row.opcode_class is Class.ELEMENTWISE and not any(instruction.called)
    return is_one and all(o.symbols.shape in (instruction.dims, ()) for o in operands)


def assumed(instruction: Instruction, operands: Sequence[Term]) -> Sequence[Term]:
    """The operands as they are where they are read: of a select each side in its case of the mask."""
    if instruction.opcode != "select" or not is_elementwise(instruction, operands):
        return operands
    mask, chosen, otherwise = operands
    key = _key(mask)
    is_general = key not in chosen.cases and key not in otherwise.cases
    if not instruction.element_type.is_inexact and is_general:
        # Which of two equal numbers is taken does not matter.
        mask = _in_case(mask, equality(chosen.symbols, otherwise.symbols), 1)
    chosen = _without_nan(mask, chosen)
    return mask, _in_case(chosen, key, 0), _in_case(otherwise, key, 1)


def with_cases(
    term: Term,
    instruction: Instruction,
    operands: Sequence[Term],
    symbols_of: Callable[[Sequence[Symbols]], Symbols],
) -> Term:
    """The term of an operation on elements, with what it is in each case of the masks of its operands.

    Args:
        term: what it is in general.
        instruction: the operation.
        operands: of it.
        symbols_of: gives the symbols of the operation for others of its operands.
    """
    if not is_elementwise(instruction, operands):
        return term
    masks = list(dict.fromkeys(key for operand in operands for key in operand.cases))[:_MOST_MASKS]

    def case(key: int, number: int) -> Symbols:
        parts = [_in_case(operand, key, number).symbols for operand in operands]
        return _decided(instruction, parts, symbols_of(parts))

    cases = {key: (case(key, 0), case(key, 1)) for key in masks}
    if instruction.opcode == "select":
        chosen, otherwise = (np.broadcast_to(o.symbols, instruction.dims) for o in operands[1:])
        cases[_key(operands[0])] = chosen, otherwise
    if instruction.opcode == "is-finite":
        return replace(term, cases=cases, finite=operands[0].symbols)
    return replace(term, cases=cases)


def nan_source(instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
    """Symbols of the operand outside of whose NaNs and infinities no result is NaN; None without one."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
        return None
    if not is_elementwise(instruction, operands) or instruction.opcode in ("select", "constant"):
        return None
    suspects = [n for n, o in enumerate(operands) if o.bounds.nan or not o.bounds.is_finite]
    if len(suspects) != 1:
        return None
    [number] = suspects
    suspect, bounds = operands[number], [o.bounds for o in operands]
    if suspect.symbols.shape != instruction.dims or not instruction.operands[number].element_type.is_floating:
        return None
    bounds[number] = replace(bounds[number], nan=False)
    if not range_of(instruction, bounds).nan:
        return suspect.symbols if suspect.nan_of is None else suspect.nan_of
    info: Any = ml_dtypes.finfo(dtype_of(instruction.operands[number].element_type))  # type: ignore[no-untyped-call]
    low, high = max(bounds[number].low, float(info.min)), min(bounds[number].high, float(info.max))
    bounds[number] = replace(bounds[number], low=low, high=high)
    return None if range_of(instruction, bounds).nan else suspect.symbols


def _without_nan(mask: Term, chosen: Term) -> Term:
    """What is NaN only where something is not finite is not NaN where that is."""
    if mask.finite is None or chosen.nan_of is None or not np.array_equal(mask.finite, chosen.nan_of):
        return chosen
    return replace(chosen, bounds=replace(chosen.bounds, nan=False))


def _key(mask: Term) -> int:
    return int(whole(mask.symbols))


def _in_case(term: Term, key: int, case: int) -> Term:
    found = term.cases.get(key)
    # What else is known of the term is about its symbols in general.
    return term if found is None else Term(found[case], term.bounds)


def _decided(instruction: Instruction, parts: Sequence[Symbols], symbols: Symbols) -> Symbols:
    """The symbols of an operation some of whose operands are true or false in this case."""
    parts = [np.broadcast_to(part, instruction.dims) for part in parts]
    if instruction.opcode == "select":
        mask, chosen, otherwise = parts
        symbols = np.where(chosen == otherwise, chosen, symbols)
        return np.where(mask == _TRUE, chosen, np.where(mask == _FALSE, otherwise, symbols))
    if instruction.element_type is ElementType.PRED and instruction.opcode in ("and", "or"):
        decisive, neutral = (_FALSE, _TRUE) if instruction.opcode == "and" else (_TRUE, _FALSE)
        one, other = parts
        symbols = np.where(one == neutral, other, np.where(other == neutral, one, symbols))
        return np.where((one == decisive) | (other == decisive), decisive, symbols)
    return symbols
