"""Simpler arguments, and arguments of simpler types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.literal import Literal
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.ir.verifier import verify_or_raise
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
    if not any(old in _types(i.shape) for i in case.module.instructions()):
        return None
    module = clone_module(case.module).module
    module.attributes = {n: v for n, v in module.attributes.items() if n != "entry_computation_layout"}
    for instruction in module.instructions():
        instruction.shape = _retyped_shape(instruction.shape, old, new)
        if instruction.literal is not None and isinstance(instruction.shape, ArrayShape):
            value = instruction.literal.array.astype(dtype_of(instruction.shape.element_type))
            instruction.literal = Literal(instruction.shape, value)
    try:
        verify_or_raise(module)
    except HlotoolError:
        return None
    return Case(module, tuple(_retyped_value(a, old, new) for a in case.arguments))


def _types(shape: Shape) -> Iterator[ElementType]:
    if isinstance(shape, ArrayShape):
        yield shape.element_type
    elif isinstance(shape, TupleShape):
        for element in shape.elements:
            yield from _types(element)


def _retyped_shape(shape: Shape, old: ElementType, new: ElementType) -> Shape:
    if isinstance(shape, ArrayShape):
        return replace(shape, element_type=new) if shape.element_type is old else shape
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_retyped_shape(element, old, new) for element in shape.elements))
    return shape


def _retyped_value(value: Any, old: ElementType, new: ElementType) -> Any:
    if isinstance(value, tuple):
        return tuple(_retyped_value(part, old, new) for part in value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype == dtype_of(old):
        return value.astype(dtype_of(new))
    return value


def simplify_values(case: Case, oracle: CaseOracle) -> Case:
    """Make arguments as simple as the failure allows: zeros, ones, counting, small integers, few digits."""
    for number in range(len(case.arguments)):
        found = oracle.first_failing(list(_candidates(case, number)), f"argument {number}")
        if found is not None:
            case = found[1]
    return case


def _candidates(case: Case, number: int) -> Iterator[Candidate]:
    value = case.arguments[number]
    if not isinstance(value, np.ndarray | np.generic):
        return
    array = np.asarray(value)
    for simpler in _SIMPLIFICATIONS:
        made = simpler(array)
        if made is None:
            continue
        if made.tobytes() == array.tobytes():
            return
        yield partial(_with_argument, case.module, case.arguments, number, made)


def _with_argument(module: Module, arguments: tuple[Any, ...], number: int, value: Any) -> Case:
    return Case(module, (*arguments[:number], value, *arguments[number + 1 :]))


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
