"""Convolutions by what each element adds, against the sum over window positions as HLO defines it."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from hlotool.backends.numpy.windows import output_sizes, spread_products
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import WindowDim

GROUPS, BATCH, FEATURES, OUTPUTS = 2, 2, 3, 4


def random_window(rng: np.random.Generator) -> WindowDim:
    size, stride, low, high, dilation, base = (
        int(rng.integers(*bounds)) for bounds in ((1, 7), (1, 4), (-2, 7), (-2, 7), (1, 4), (1, 5))
    )
    return WindowDim(size, stride, low, high, window_dilation=dilation, base_dilation=base)


def summed(image: Array, kernel: Array, dims: list[WindowDim], results: tuple[int, ...]) -> Array:
    """Every result by itself. Source: operation_semantics.md#convwithgeneralpadding."""
    windows = kernel.reshape((GROUPS, *(d.size for d in dims), FEATURES, OUTPUTS))
    total = np.zeros((GROUPS, BATCH, *results, OUTPUTS))
    for result in np.ndindex(*results):
        for position in product(*(range(d.size) for d in dims)):
            places = [
                divmod(r * d.stride + p * d.window_dilation - d.pad_low, d.base_dilation)
                for r, p, d in zip(result, position, dims)
            ]
            if all(not hole and 0 <= at < size for (at, hole), size in zip(places, image.shape[3:])):
                seen = image[(..., *(at for at, _ in places))]
                weights = windows[(slice(None), *position)]
                total[(slice(None), slice(None), *result)] += np.einsum("gbf,gfo->gbo", seen, weights)
    return total


@pytest.mark.parametrize("seed", range(40))
def test_random_windows(seed: int) -> None:
    """Windows larger than the image among them, of which the image slides over the window."""
    rng = np.random.default_rng(seed)
    rank = 1 + seed % 2
    dims = [random_window(rng) for _ in range(rank)]
    sizes = [int(n) for n in rng.integers(1, 6, rank)]
    results = output_sizes(dims, sizes)
    image = rng.integers(-9, 9, (GROUPS, BATCH, FEATURES, *sizes)).astype(np.float64)
    kernel = rng.integers(-9, 9, (GROUPS, prod(d.size for d in dims), FEATURES, OUTPUTS)).astype(np.float64)
    found = np.zeros((GROUPS, BATCH, *results, OUTPUTS))
    spread_products(image, kernel, dims, found, 64)
    np.testing.assert_array_equal(found, summed(image, kernel, dims, results))
