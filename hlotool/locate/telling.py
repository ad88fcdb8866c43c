"""How much a value tells: others equal the particular ones hardly by chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.locate.frames import Parts


def is_uniform(value: Any) -> bool:
    """Whether it is not known, is empty, or is the same everywhere: nothing tells it from others."""
    if value is None:
        return True
    first = value[0] if isinstance(value, Parts) else value
    return not first.size or bool((first == first.flat[0]).all())


def significant_bits(value: Any) -> int:
    """How many bits the different elements of an array need, without zeros at their ends."""
    first = np.asarray(value[0] if isinstance(value, Parts) else value)
    parts = (first.real, first.imag) if first.dtype.kind == "c" else (first,)
    elements = np.unique(np.abs(np.stack(parts).astype(np.float64)))
    mantissas = np.frexp(elements[np.isfinite(elements)])[0]
    whole = (mantissas * 2.0**53).astype(np.uint64)
    return int(sum(53 - _zeros_at_the_end(int(each)) for each in whole if each))


def _zeros_at_the_end(number: int) -> int:
    return (number & -number).bit_length() - 1
