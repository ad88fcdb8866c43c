"""Simpler arguments, and arguments of simpler types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.ir.verifier import verify_or_raise
from hlotool.ir.walk import call_order
from hlotool.numerics.retyping import retyped_shape
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.oracle import Candidate, CaseOracle

#: Types that may give way to a simpler one.
_SIMPLER = (
    (ElementType.C128, ElementType.C64),
    (ElementType.F64, ElementType.F32),
    (ElementType.BF16, ElementType.F32),
    (ElementType.F16, ElementType.F32),
    (ElementType.S64, ElementType.S32),
    (ElementType.U64, ElementType.U32),
    (ElementType.S16, ElementType.S32),
    (ElementType.S8, ElementType.S32),
    (ElementType.U8, ElementType.U32),
)

#: Magnitude of "small" integers.
_SMALL = 8


def simplify_types(case: Case, oracle: CaseOracle) -> Case:
    """Replace an element type by a more common one everywhere, where the failure stays."""
    for old, new in _SIMPLER:
        found = oracle.first_failing([partial(retyped, case, old, new)], f"{old} as {new}")
        if found is not None:
            case = found[1]
    return case


def retyped(case: Case, old: ElementType, new: ElementType) -> Case | None:
    """The program in another type; None where it has none of the old one, or does not allow the new one."""
    shapes = (shape for i in case.module.instructions() for shape in array_shapes(i.shape))
    if not any(shape.element_type is old for shape in shapes):
        return None

    def retype(instruction: Instruction) -> None:
        instruction.shape = retyped_shape(instruction.shape, lambda kind: new if kind is old else kind)
        if instruction.literal is not None and isinstance(instruction.shape, ArrayShape):
            value = instruction.literal.array.astype(dtype_of(instruction.shape.element_type))
            instruction.literal = Literal(instruction.shape, value)

    return rewritten(case, retype, lambda a: a.astype(dtype_of(new)) if a.dtype == dtype_of(old) else a)


def simplify_values(case: Case, oracle: CaseOracle) -> Case:
    """Make arguments as simple as the failure allows: zeros, ones, counting, small integers, few digits."""
    for number in range(len(case.module.entry.parameters)):
        found = oracle.first_failing(list(_candidates(case, number)), f"argument {number}")
        if found is not None:
            case = found[1]
    return case


def _candidates(case: Case, number: int) -> Iterator[Candidate]:
    values = [row[number] for row in case.rows]
    if not isinstance(values[0], np.ndarray | np.generic):
        return
    arrays = [np.asarray(value) for value in values]
    for simpler in _SIMPLIFICATIONS:
        made = [simpler(array) for array in arrays]
        if any(one is None for one in made):
            continue
        if all(one.tobytes() == array.tobytes() for one, array in zip(made, arrays)):
            return
        yield partial(_with_argument, case, number, made)


def _with_argument(case: Case, number: int, values: Sequence[Any]) -> Case:
    """The program with another argument on each device."""
    rows = [(*row[:number], value, *row[number + 1 :]) for row, value in zip(case.rows, values)]
    return case.with_rows(case.module, rows)


def _counting(array: Any) -> Any:
    if array.dtype == np.bool_:
        return None
    return (np.arange(array.size) % _SMALL + 1).reshape(array.shape).astype(array.dtype)


def _small_integers(array: Any) -> Any:
    if array.dtype == np.bool_ or array.dtype.kind == "c":
        return None
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        return None
    return np.clip(np.round(wide), -_SMALL, _SMALL).astype(array.dtype)


def _few_digits(array: Any) -> Any:
    if array.dtype.kind in "biuc":
        return None
    wide = array.astype(np.float64)
    return np.round(wide, 1).astype(array.dtype) if np.isfinite(wide).all() else None


#: The simplest first.
_SIMPLIFICATIONS: tuple[Callable[[Any], Any], ...] = (
    np.zeros_like,
    np.ones_like,
    _counting,
    _small_integers,
    _few_digits,
)


# A program whose instructions and arguments all change in the same way: to other sizes, to another type.


def rewritten(
    case: Case, change: Callable[[Instruction], None], change_array: Callable[[Any], Any]
) -> Case | None:
    """A changed copy of a program; None where it is no valid one.

    Args:
        case: the program.
        change: is given every instruction of the copy, callees before callers; raises where it cannot be.
        change_array: what becomes of each array in the arguments.
    """
    module = clone_module(case.module).module
    # What the header says of shapes is no longer so.
    module.attributes = {n: v for n, v in module.attributes.items() if n != "entry_computation_layout"}
    try:
        for computation in call_order(module):
            for instruction in computation.instructions:
                change(instruction)
        verify_or_raise(module)
    except HlotoolError:
        return None
    return case.changed(module, lambda row: [_each_array(argument, change_array) for argument in row])


def _each_array(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_each_array(part, change) for part in value)
    return change(value) if isinstance(value, np.ndarray | np.generic) else value
