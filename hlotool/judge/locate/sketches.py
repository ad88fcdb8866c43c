"""Which of many values can be near another one, by a few of their elements.

Whether two values agree takes a look at all elements of both. Most pairs are apart everywhere, and a few
elements show that of all candidates at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.field.values import is_marked
from hlotool.inputs.frames import Node
from hlotool.ir.arrays import Array
from hlotool.judge.locate.likeness import is_float

#: Elements that are looked at, spread over an array.
_ELEMENTS = 16
#: The bound is compared in f64, which rounds.
_SLACK = 1 + 1e-9


class Sketches:
    """Some elements of values of one type and of the same dimensions.

    Args:
        nodes: whose values they are.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        found = [_sketch(node.value) for node in nodes]
        wholes = [None if one is None else _magnitude(node.value) for node, one in zip(nodes, found)]
        width = max((one.size for one in found if one is not None), default=0)
        self._is_known = np.array([whole is not None for whole in wholes], bool)
        self._magnitudes = np.array([whole or 0.0 for whole in wholes])
        self._elements = np.zeros((len(nodes), width), np.complex128)
        for row, one in zip(self._elements, found):
            if one is not None:
                row[:] = one

    def near(self, node: Node, limit: float) -> Sequence[Node]:
        """The nodes whose values are not known to be further apart from that of `node` than `limit`.

        Args:
            node: of the same dimensions.
            limit: as `likeness.distance` measures.
        """
        own = _sketch(node.value)
        if own is None or math.isinf(limit) or own.size != self._elements.shape[1]:
            return self._nodes
        with np.errstate(all="ignore"):
            apart = np.abs(self._elements - own).max(axis=1, initial=0.0)
            # What is not finite here is infinitely far from what is finite everywhere.
            may_be = ~self._is_known | (apart <= limit * self._magnitudes * _SLACK)
        return [node for node, is_chosen in zip(self._nodes, may_be) if is_chosen]


def _sketch(value: Any) -> Array | None:
    """Some elements of an array of floats; None of anything else."""
    if not isinstance(value, np.ndarray) or is_marked(value) or not is_float(value) or not value.size:
        return None
    flat = value.reshape(-1)
    chosen = np.linspace(0, flat.size - 1, min(_ELEMENTS, flat.size)).astype(np.intp)
    return flat[chosen].astype(np.complex128)


def _magnitude(value: Any) -> float | None:
    """The largest magnitude of an array of floats; None where one is not finite."""
    wide = value if value.dtype.kind == "c" else value.astype(np.float64)
    largest = float(np.abs(wide).max(initial=0.0))
    return largest if math.isfinite(largest) else None
