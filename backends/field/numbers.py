"""Arrays of words that calculate like NumPy's arrays of floats.

The numpy backend models library calls by expressions on arrays: `np.exp(x - x.max(axis=-1, keepdims=True))`.
Here the same expressions are evaluated in the field. What has no meaning on words raises NoMeaning: an array
of words never becomes an array of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from hlotool.backends.field import words as w
from hlotool.backends.field.products import bilinear, matmul, sum_of
from hlotool.backends.field.trial import Trial, embedded
from hlotool.backends.field.words import Words
from hlotool.ir.arrays import Array, element_type_of


class NoMeaning(TypeError):
    """Something that is done to floats, but cannot be done to words."""


class Numbers(NDArrayOperatorsMixin):
    """An array of words.

    Attributes:
        words: of any dimensions.
        dtype: of the floats that they stand for; it decides about nothing but the types of constants.
        trial: whose functions are meant.
    """

    __slots__ = ("dtype", "trial", "words")

    def __init__(self, words: Words, dtype: np.dtype[Any], trial: Trial) -> None:
        self.words = words
        self.dtype = dtype
        self.trial = trial

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise NoMeaning("an operation on floats that are words here")

    # -- shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self.words.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.words.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.words.size

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours; 0 where elements are repeated."""
        return self.words.strides

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: Any) -> Numbers:
        return self._like(self.words[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.words[index] = self._words(value)

    def copy(self) -> Numbers:
        """See NumPy."""
        return self._like(self.words.copy())

    def reshape(self, *sizes: Any) -> Numbers:
        """See NumPy."""
        return self._like(self.words.reshape(*sizes))

    def transpose(self, *order: Any) -> Numbers:
        """See NumPy."""
        return self._like(self.words.transpose(*order))

    def swapaxes(self, one: int, other: int) -> Numbers:
        """See NumPy."""
        return self._like(self.words.swapaxes(one, other))

    def repeat(self, count: int, axis: int) -> Numbers:
        """See NumPy."""
        return self._like(self.words.repeat(count, axis=axis))

    def take(self, index: Any, axis: int) -> Numbers:
        """See NumPy."""
        return self._like(self.words.take(index, axis=axis))

    def astype(self, dtype: Any, copy: bool = True) -> Numbers:
        """The same numbers: nothing is rounded."""
        kind = element_type_of(dtype)
        if kind is None or not kind.is_floating:
            raise NoMeaning(f"words as {np.dtype(dtype)}")
        return Numbers(self.words, np.dtype(dtype), self.trial)

    # -- reductions

    def sum(self, axis: Any = None, keepdims: bool = False) -> Numbers:
        """See NumPy."""
        axes = self._axes(axis)
        return self._kept(sum_of(self.words, axes), axes, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Numbers:
        """See NumPy."""
        count = int(np.prod([self.shape[a] for a in self._axes(axis)]))
        mean: Numbers = self.sum(axis, keepdims) / count
        return mean

    def max(self, axis: Any = None, keepdims: bool = False, initial: Any = -np.inf) -> Numbers:
        """See NumPy; the largest of nothing is `initial`."""
        axes = self._axes(axis)
        start = self._words(initial)
        ranks, words = self.trial.kappa.ranks(np.append(self.words.reshape(-1), start))
        found = ranks[:-1].reshape(self.shape).max(axis=axes, initial=int(ranks[-1]))
        return self._kept(words[found], axes, keepdims)

    def _axes(self, axis: Any) -> tuple[int, ...]:
        if axis is None:
            return tuple(range(self.ndim))
        given = axis if isinstance(axis, tuple) else (axis,)
        return tuple(sorted(a % self.ndim for a in given))

    def _kept(self, words: Words, axes: Sequence[int], keepdims: bool) -> Numbers:
        return self._like(np.expand_dims(words, tuple(axes)) if keepdims else words)

    # -- what the numpy backend asks arrays of other kinds for

    def multiply_matrices(self, other: Numbers) -> Numbers:
        """The product of matrices; see `contraction.multiply_matrices`."""
        return self._like(matmul(self.words, self._words(other)))

    def convolved(self, other: Numbers, convolve: Callable[[Array, Array], Array]) -> Numbers:
        """What `convolve`, which is linear in both arguments, gives; see `CanonicalConvolution`."""
        weights = self._words(other)
        return self._like(bilinear(convolve, self.words, weights, terms=min(self.size, weights.size)))

    def erf(self) -> Numbers:
        """The error function."""
        return self._like(self.trial.odd("erf", self.words))

    # -- NumPy's functions

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out, where = options.pop("out", None), options.pop("where", True)
        function = _FUNCTIONS.get(ufunc.__name__)
        if method != "__call__" or function is None or options:
            raise NoMeaning(f"{ufunc.__name__}.{method} of words")
        operands = [self._words(value) for value in inputs]
        result = function(self.trial, *operands)
        if result.dtype == np.bool_:
            return result
        if where is not True:
            if out is None:
                raise NoMeaning(f"{ufunc.__name__} of some elements")
            result = np.where(where, result, self._words(out[0]))
        return self._like(result)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        own = _ARRAY_FUNCTIONS.get(function.__name__)
        if own is None:
            raise NoMeaning(f"{function.__name__} of words")
        return own(self, *arguments, **options)

    def _words(self, value: Any) -> Words:
        """The words of another array, or of numbers of any type."""
        if isinstance(value, Numbers):
            return value.words
        array = np.asarray(value)
        return embedded(array) if array.dtype.kind in "biu" else self.trial.constants.words(array)

    def _like(self, words: Words) -> Numbers:
        return Numbers(np.asarray(words), self.dtype, self.trial)


def _compared(direction: str) -> Callable[[Trial, Words, Words], Array]:
    return lambda trial, a, b: trial.compare(direction, a, b)


#: NumPy's elementwise functions by name.
_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "absolute": lambda t, a: t.kappa.absolute(a),
    "add": lambda t, a, b: w.add(a, b),
    "divide": lambda t, a, b: w.divide(a, b),
    "equal": _compared("EQ"),
    "exp": lambda t, a: t.exp(a),
    "expm1": lambda t, a: t.expm1(a),
    "greater": _compared("GT"),
    "greater_equal": _compared("GE"),
    "isnan": lambda t, a: np.isnan(t.kappa(a)),
    "less": _compared("LT"),
    "less_equal": _compared("LE"),
    "log": lambda t, a: t.log(a),
    "matmul": lambda t, a, b: matmul(a, b),
    "maximum": lambda t, a, b: t.kappa.maximum(a, b),
    "minimum": lambda t, a, b: t.kappa.minimum(a, b),
    "multiply": lambda t, a, b: w.multiply(a, b),
    "negative": lambda t, a: w.negate(a),
    "not_equal": _compared("NE"),
    "reciprocal": lambda t, a: w.inverse(a),
    "sqrt": lambda t, a: t.sqrt(a),
    "square": lambda t, a: w.multiply(a, a),
    "subtract": lambda t, a, b: w.subtract(a, b),
    "tanh": lambda t, a: t.tanh(a),
}


def _moving(function: Callable[..., Any]) -> Callable[..., Numbers]:
    """A function of one array that moves its elements."""
    return lambda x, array, *rest, **options: x._like(function(array.words, *rest, **options))


def _where(x: Numbers, condition: Array, yes: Any, no: Any) -> Numbers:
    return x._like(np.where(condition, x._words(yes), x._words(no)))


def _clip(x: Numbers, value: Any, low: Any, high: Any) -> Numbers:
    limited = x.trial.kappa.maximum(x._words(low), x._words(value))
    return x._like(x.trial.kappa.minimum(limited, x._words(high)))


def _is_negative_infinity(x: Numbers, value: Numbers) -> Array:
    return np.asarray(value.words == w.NEG_INF)


#: NumPy's other functions by name, the array that was asked first.
_ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "broadcast_to": _moving(np.broadcast_to),
    "clip": _clip,
    "expand_dims": _moving(np.expand_dims),
    "flip": _moving(np.flip),
    "isneginf": _is_negative_infinity,
    "moveaxis": _moving(np.moveaxis),
    "repeat": _moving(np.repeat),
    "where": _where,
    "zeros_like": _moving(np.zeros_like),
}
