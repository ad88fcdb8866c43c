"""Arguments of a run, checked against the entry's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN, Token, Value
from hlotool.errors import InputDataError
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TokenShape, TupleShape


def check_arguments(module: Module, arguments: Sequence[Value]) -> list[Any]:
    """The arguments as read-only arrays of exactly the declared types.

    Raises:
        InputDataError: wrong count, dtype or dimensions.
    """
    parameters = module.entry.parameters
    if len(arguments) != len(parameters):
        raise InputDataError(f"{module.name} takes {len(parameters)} arguments, got {len(arguments)}")
    return [_check(p.shape, a, p.name) for p, a in zip(parameters, arguments)]


def _check(shape: Shape, value: Any, name: str) -> Any:
    if isinstance(shape, TupleShape):
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.elements):
            raise InputDataError(f"argument {name}: expected a tuple of {len(shape.elements)}")
        return tuple(_check(s, v, f"{name}.{i}") for i, (s, v) in enumerate(zip(shape.elements, value)))
    if isinstance(shape, TokenShape):
        return value if isinstance(value, Token) else TOKEN
    if not isinstance(shape, ArrayShape):
        raise InputDataError(f"argument {name}: a value of shape {shape} cannot be given")
    return _check_array(shape, value, name)


def _check_array(shape: ArrayShape, value: Any, name: str) -> Any:
    array = np.asarray(value)
    if array.dtype != dtype_of(shape.element_type):
        raise InputDataError(f"argument {name}: expected {shape.logical_text()}, got dtype {array.dtype}")
    if not shape.admits(array.shape):
        dims = ",".join(map(str, array.shape))
        raise InputDataError(f"argument {name}: expected {shape.logical_text()}, got dimensions [{dims}]")
    if array.ndim == 0:
        return array[()]
    view = array.view()
    view.flags.writeable = False
    return view
