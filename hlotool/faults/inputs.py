"""Arguments that hold the values which some kinds of fault need in order to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.ir.dtypes import Array, element_type_of

#: Share of the elements of a float array that are replaced; the first always is.
_SHARE = 0.1


def poisoned(arguments: Sequence[Any], poison: float | None, seed: int = 7) -> list[Any]:
    """The arguments with some values replaced by `poison`, as `FaultKind.poison` says."""
    if poison is None:
        return list(arguments)
    rng = np.random.default_rng(seed)
    return [_poisoned(value, poison, rng) for value in arguments]


def _poisoned(value: Any, poison: float, rng: np.random.Generator) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_poisoned(part, poison, rng) for part in value)
    element_type = element_type_of(value.dtype) if isinstance(value, np.ndarray | np.generic) else None
    if element_type is None:
        return value
    array: Array = np.array(value)
    if isinstance(poison, int):
        is_index = element_type.is_integer and element_type.bits >= 8 and array.ndim == 0
        return np.asarray(poison, array.dtype) if is_index else value
    if not element_type.is_floating:
        return value
    mask = rng.random(array.shape) < _SHARE
    mask.reshape(-1)[:1] = True
    array[mask] = np.asarray(poison).astype(array.dtype)
    return array
