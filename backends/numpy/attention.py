"""Scaled dot-product attention and its gradients, in the type of the operands given.

Arrays are [batch, heads, length, features]. Keys and values may have fewer heads than queries: each serves
several neighbouring query heads. Scores that are not kept count as -inf, and a query without any key gives 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlotool.ir.dtypes import Array


@dataclass(frozen=True, slots=True)
class Mask:
    """Which keys a query attends to.

    Attributes:
        causal: none behind its own position, counted from the first query and the first key.
        window: not those so many positions before its own, or further away; 0 means no limit.
    """

    causal: bool
    window: int

    def kept(self, queries: int, keys: int, lengths: tuple[Array, Array] | None) -> Array:
        """bool[batch or 1, 1, queries, keys]; `lengths` are the numbers of queries and keys per batch."""
        row, column = np.arange(queries)[:, None], np.arange(keys)
        kept = np.ones((1, 1, queries, keys), np.bool_)
        if self.causal:
            kept &= column <= row
        if self.window > 0:
            kept &= column > row - self.window
        if lengths is None:
            return kept
        query_lengths, key_lengths = (each.reshape((-1, 1, 1, 1)) for each in lengths)
        return kept & (row < query_lengths) & (column < key_lengths)


@dataclass(frozen=True, slots=True)
class Attention:
    """The operands that the forward and the backward pass share.

    Attributes:
        query: [batch, heads, queries, features].
        key: [batch, key heads, keys, features].
        value: [batch, key heads, keys, value features].
        bias: added to the scores, broadcastable against them, or None.
        kept: mask, broadcastable against the scores.
        scale: factor of the products of queries and keys.
    """

    query: Array
    key: Array
    value: Array
    bias: Array | None
    kept: Array
    scale: float

    def forward(self) -> tuple[Array, Array]:
        """(output, logarithm of the sum of the exponentials of each query's scores)."""
        scores = self._scores()
        largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        shift = np.where(np.isneginf(largest), largest.dtype.type(0), largest)
        powers = np.exp(scores - shift)
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
        return np.matmul(weights, self._per_query_head(self.value)), (np.log(total) + shift)[..., 0]

    def backward(
        self, statistics: Array, output: Array, gradient: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Gradients of query, key, value and scores, the latter after scaling.

        Args:
            statistics: the second result of `forward`.
            output: its first one.
            gradient: of the output.
        """
        exponents = self._scores() - statistics[..., None]
        weights = np.where(self.kept, np.exp(exponents), exponents.dtype.type(0))
        drop = (gradient * output).sum(axis=-1, keepdims=True)
        pulled = np.matmul(gradient, self._per_query_head(self.value).swapaxes(-1, -2))
        score_gradient = weights * (pulled - drop)
        scaled = score_gradient * score_gradient.dtype.type(self.scale)
        query_gradient = np.matmul(scaled, self._per_query_head(self.key))
        key_gradient = self._per_key_head(np.matmul(scaled.swapaxes(-1, -2), self.query))
        value_gradient = self._per_key_head(np.matmul(weights.swapaxes(-1, -2), gradient))
        return query_gradient, key_gradient, value_gradient, score_gradient

    def _scores(self) -> Array:
        products = np.matmul(self.query, self._per_query_head(self.key).swapaxes(-1, -2))
        scores = products * products.dtype.type(self.scale)
        if self.bias is not None:
            scores = scores + self.bias
        result: Array = np.where(self.kept, scores, scores.dtype.type(-np.inf))
        return result

    def _per_query_head(self, value: Array) -> Array:
        sharing = self.query.shape[1] // value.shape[1]
        return value if sharing == 1 else np.repeat(value, sharing, axis=1)

    def _per_key_head(self, gradient: Array) -> Array:
        batch, _, *rest = gradient.shape
        grouped = gradient.reshape((batch, self.key.shape[1], -1, *rest))
        result: Array = grouped.sum(axis=2)
        return result


def summed_to(value: Array, dims: tuple[int, ...]) -> Array:
    """Sums over the dimensions along which an array of dimensions `dims` was broadcast."""
    axes = tuple(i for i, (size, own) in enumerate(zip(value.shape, dims)) if own == 1 and size != 1)
    result: Array = value.sum(axis=axes, keepdims=True)
    return result
