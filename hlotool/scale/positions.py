"""Which elements of a dimension are left when it becomes smaller.

An array that is given in full, a constant or a captured argument, is cut. What is cut away must be the same
elements wherever the array is reshaped, cut in parts or put together: so the elements that stay follow
from how the size is made. Of an atom the first ones stay; of a product those that stay of each factor; of
a sum those that stay of each part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hlotool.ir.dtypes import Array
from hlotool.scale.sizes import Sizes
from hlotool.scale.terms import Form, Size


def kept(sizes: Sizes, size: Size, chosen: Mapping[Size, int]) -> Array:
    """The positions along a dimension that stay, in order: integers, as many as the new size."""
    one = sizes.root(size)
    if one.form is Form.ATOM:
        return np.arange(one.value if one.why else chosen.get(one, one.value))
    if one.form is Form.SUM:
        found, before = [], 0
        for part in one.parts:
            found.append(kept(sizes, part, chosen) + before)
            before += part.value
        return np.concatenate(found)
    positions = np.zeros(1, np.int64)
    for part in one.parts:
        positions = (positions[:, None] * part.value + kept(sizes, part, chosen)[None, :]).reshape(-1)
    return positions


def cut(sizes: Sizes, dims: Sequence[Size], chosen: Mapping[Size, int], array: Array) -> Array:
    """What stays of an array of these sizes: C-contiguous, of the same type."""
    for axis, size in enumerate(dims):
        if sizes.evaluate(size, chosen) != size.value:
            array = np.take(array, kept(sizes, size, chosen), axis=axis)
    return np.ascontiguousarray(array)
