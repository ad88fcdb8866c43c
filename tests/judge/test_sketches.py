"""A few elements exclude no value that is near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from hlotool.inputs.frames import Node
from hlotool.judge.locate.likeness import distance
from hlotool.judge.locate.sketches import Sketches


@dataclass(frozen=True, eq=False)
class _Valued:
    value: npt.NDArray[Any]


def _nodes(values: list[npt.NDArray[Any]]) -> list[Node]:
    return [cast(Node, _Valued(value)) for value in values]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("size", [1, 5, 16, 1000])
def test_what_is_near_is_among_them(dtype: Any, size: int) -> None:
    rng = np.random.default_rng([size, np.dtype(dtype).itemsize])
    with np.errstate(all="ignore"):
        values = [
            (rng.normal(size=size) * scale).astype(dtype)
            for scale in (0, 1e-30, 1, 1, 1e30)
            for _ in range(4)
        ]
        values += [v * np.asarray(1 + 1e-3, dtype) for v in values]
        for number, special in enumerate((np.nan, np.inf, -np.inf)):
            values.append(values[10 + number].copy())
            values[-1][rng.integers(size)] = special
            values.append(values[-1] + np.asarray(1, dtype))
    nodes = _nodes(values)
    sketches = Sketches(nodes)
    for limit in (0.0, 1e-6, 1e-2, 1.0):
        left = 0
        for node in nodes:
            found = sketches.near(node, limit)
            left += len(found)
            wanted = [other for other in nodes if distance(other.value, node.value) <= limit]
            assert set(map(id, wanted)) <= set(map(id, found))
        if limit < 1:
            assert left < len(nodes) ** 2 / 2


def test_of_integers_all_are() -> None:
    nodes = _nodes([np.arange(4) + n for n in range(3)])
    assert list(Sketches(nodes).near(nodes[0], 0.0)) == nodes
