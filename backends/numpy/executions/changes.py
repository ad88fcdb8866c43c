"""What a policy does to one array that a kernel returns or reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hlotool.backends.numpy.executions.noise import Noise
from hlotool.backends.numpy.executions.rounding_errors import Error
from hlotool.backends.numpy.precision import narrow, widen
from hlotool.ir.types import ElementType

#: Zero bits that both products of a part have besides, where they are exact.
_MORE_ZEROS = 8


class Change(Protocol):
    """Makes a value from a value."""

    def __call__(self, value: Any) -> Any:
        """The changed value; the given one is not modified."""


@dataclass(frozen=True, slots=True)
class Perturb:
    """Random errors, and denormal numbers flushed to zero where the execution does so.

    Attributes:
        noise: which execution it is.
        error: how large.
        tiny: magnitudes below are denormal; 0 for none.
        whole: the parts of a complex number are off by what the whole of it makes them. The real part of a
            product is a difference, in which one product may not be rounded at all (FMA): where it cancels,
            what is left is off by an ulp of what cancelled, as large as the number's absolute value is.
    """

    noise: Noise
    error: Error
    tiny: float = 0.0
    whole: bool = False

    def __call__(self, value: Any) -> Any:
        if self.whole and self.noise.member.seed is not None and value.size:
            changed = self._as_a_whole(value)
        else:
            changed = self.noise.perturbed(value, self.error.relative, self.error.zeros)
        if self.tiny and self.noise.member.flushes:
            changed = flushed(changed, self.tiny)
        return with_sign_of_nan(changed, self.noise.member.signs)

    def _as_a_whole(self, value: Any) -> Any:
        """Both parts off by the error of the absolute value; those that look exact beside it stay."""
        plain = np.array(value, order="C", ndmin=1)
        kind = plain.real.dtype
        parts = plain.view(kind)
        with np.errstate(all="ignore"):
            size = np.repeat(np.abs(plain), 2, axis=-1)
            is_exact = (parts == 0) | _ends_in_zeros(parts, size, self.error.zeros)
            off = self.noise.perturbed(np.ones(parts.shape), self.error.relative, 0) - 1
            result = np.where(is_exact | ~np.isfinite(size), parts, parts + size * off).astype(kind)
        return result.view(plain.dtype).reshape(np.shape(value))[()]


@dataclass(frozen=True, slots=True)
class PerturbSaturating:
    """Random errors of a function that comes as close to ±1 as its type can tell, and never gets there.

    A result of ±1 looks exact, yet it was rounded, and other code returns the number before it; none returns
    one beyond it.

    Attributes:
        perturb: the errors of all other results.
    """

    perturb: Perturb

    def __call__(self, value: Any) -> Any:
        changed = self.perturb(value)
        limit = np.abs(value) == 1
        if self.perturb.noise.member.seed is None or not np.any(limit):
            return changed
        off = self.perturb.noise.perturbed(value, self.perturb.error.relative, 0)
        return np.where(limit, np.clip(off, -1, 1), changed).astype(value.dtype)[()]


def flushed(value: Any, tiny: float) -> Any:
    """Zeros of the same sign in place of magnitudes below `tiny`, part by part for complex numbers."""
    if value.dtype.kind == "c":
        parts = np.array(value, order="C", ndmin=1).view(value.real.dtype)
        return flushed(parts, tiny).view(value.dtype).reshape(value.shape)[()]
    return np.where(np.abs(value) < tiny, np.copysign(value.dtype.type(0), value), value)[()]


def with_sign_of_nan(value: Any, sign: int) -> Any:
    """All NaN of a real array with the sign of `sign`; as they are where it is 0.

    Which sign the NaN of an operation has IEEE 754 leaves open: x86 sets it, constant folding does not. A
    total order puts the ones before all numbers, and the others behind them.
    """
    if not sign or value.dtype.kind != "f":
        return value
    nan = np.isnan(value)
    return np.where(nan, np.copysign(value, sign), value)[()] if nan.any() else value


@dataclass(frozen=True, slots=True)
class PerturbTransform:
    """Random errors of a Fourier transform, which are as large as the whole of its result makes them.

    Its terms are products with roots of unity, so that where they cancel one library leaves 0 and another one
    what rounding left of it: the error is one of the norm, whatever the element (Higham, "Accuracy and
    Stability of Numerical Algorithms", section 24.1).

    Attributes:
        noise: which execution it is.
        error: how large, relative to the root mean square of a transform.
        rank: dimensions that are transformed, the last ones.
    """

    noise: Noise
    error: Error
    rank: int

    def __call__(self, value: Any) -> Any:
        if self.noise.member.seed is None or not self.error.relative or not value.size:
            return value
        axes = tuple(range(-self.rank, 0))
        with np.errstate(all="ignore"):
            magnitudes = np.abs(value).astype(np.float64)
            # Relative to the largest one, so that squares neither overflow nor vanish.
            largest = np.maximum(magnitudes.max(axis=axes, keepdims=True), np.finfo(np.float64).tiny)
            size = largest * np.sqrt(np.mean(np.square(magnitudes / largest), axis=axes, keepdims=True))
            parts = [self._drawn(value.shape) for _ in range(2 if value.dtype.kind == "c" else 1)]
            off = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
            changed = value + size * off
        return np.where(np.isfinite(changed), changed, value).astype(value.dtype)

    def _drawn(self, shape: tuple[int, ...]) -> Any:
        return self.noise.perturbed(np.ones(shape), self.error.relative, 0) - 1


@dataclass(frozen=True, slots=True)
class RoundToNarrow:
    """Results of a narrow type, which are held in f32, rounded to it or not.

    Attributes:
        noise: which execution it is.
        error: what a result may be off by before it is rounded.
        kind: the narrow type.
        keeps: not rounded; None leaves that to the execution.
    """

    noise: Noise
    error: Error
    kind: ElementType
    keeps: bool | None = None

    def __call__(self, value: Any) -> Any:
        value = with_sign_of_nan(value, self.noise.member.signs)
        if self.noise.coin() if self.keeps is None else self.keeps:
            return value
        rounded = widen(narrow(value, self.kind), self.kind)
        if self.noise.member.seed is None or not self.error.relative:
            return rounded
        off = self.noise.perturbed(value, self.error.relative, 0)
        # What the type holds exactly is not rounded in any execution, unless nothing is exact but zero.
        exact = np.equal(rounded, value) if self.error.zeros else np.equal(value, 0)
        return np.where(exact, rounded, widen(narrow(off, self.kind), self.kind))[()]


@dataclass(frozen=True, slots=True)
class VarianceOfSquares:
    """The results of a batch normalisation whose variance is the mean of squares less the square of the mean.

    That is how XLA expands it (xla/service/batchnorm_expander.cc). Both means are rounded before they are
    subtracted: where a feature's deviation is small beside its mean, nothing of its variance may be left.

    Attributes:
        noise: which execution it is.
        relative: what the means may be off by.
        epsilon: added to variances.
        axis: the dimension of features.
    """

    noise: Noise
    relative: float
    epsilon: float
    axis: int

    def __call__(self, results: tuple[Any, ...], offset: Any) -> tuple[Any, ...]:
        """Output, mean and variance, from those of the plain execution and what was added to its output."""
        output, mean, variance = results
        if self.noise.member.seed is None or not output.size:
            return results
        with np.errstate(all="ignore"):
            plain = variance.astype(np.float64)
            squares = np.square(mean.astype(np.float64)) + plain
            varied = plain + (self.noise.perturbed(squares, self.relative, 0) - squares)
            factor = np.sqrt((plain + self.epsilon) / (varied + self.epsilon))
            factors, added = (_spread(feature, self.axis, output.ndim) for feature in (factor, offset))
            changed = np.where(added == output, output, (output - added) * factors + added)
        return changed.astype(output.dtype), mean, varied.astype(variance.dtype)


@dataclass(frozen=True, slots=True)
class NormalisationOfTerms:
    """A normalisation by a given mean and variance, whose terms are rounded before they cancel.

    It is `(x - mean) · factor + offset`, or `x · factor + (offset - mean · factor)`, as XLA expands it
    (xla/service/batchnorm_expander.cc): what is left where they cancel is as far off as its terms are.

    Attributes:
        noise: which execution it is.
        relative: what a term may be off by.
        epsilon: added to variances.
        axis: the dimension of features.
    """

    noise: Noise
    relative: float
    epsilon: float
    axis: int

    def __call__(self, output: Any, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        """The output from that of the plain execution and the operands."""
        if self.noise.member.seed is None or not output.size:
            return output
        with np.errstate(all="ignore"):
            factor = np.abs(scale) / np.sqrt(variance.astype(np.float64) + self.epsilon)
            fixed = np.abs(mean) * factor + np.abs(offset)
            factors, added = (_spread(feature, self.axis, output.ndim) for feature in (factor, fixed))
            size = np.abs(x) * factors + added
            changed = output + (self.noise.perturbed(size, self.relative, 0) - size)
        return np.where(np.isfinite(changed), changed, output).astype(output.dtype)


@dataclass(frozen=True, slots=True)
class ProductOfParts:
    """Products of complex numbers: each part is a sum of two products, of which one need not be rounded.

    The real part is `ac - bd`, and where that is 0 code that fuses one product with the subtraction (FMA)
    leaves what the other one lost as it was rounded. So a part is off by an ulp of both products together.

    Attributes:
        noise: which execution it is.
        kernel: multiplies.
        relative: what the products may be off by.
        zeros: products whose last so many bits are zero are exact.
    """

    noise: Noise
    kernel: Callable[..., Any]
    relative: float
    zeros: int

    def __call__(self, one: Any, other: Any) -> Any:
        result = self.kernel(one, other)
        if self.noise.member.seed is None or not result.size:
            return result
        sizes = [_of_parts(np.abs(x.real), np.abs(x.imag), x.dtype) for x in (one, other)]
        with np.errstate(all="ignore"):
            terms = self.kernel(sizes[0], np.conj(sizes[1])).real, self.kernel(*sizes).imag
            parts = [self._off(part, size) for part, size in zip((result.real, result.imag), terms)]
            return _of_parts(parts[0], parts[1], result.dtype)[()]

    def _off(self, part: Any, size: Any) -> Any:
        wide = size.astype(np.float64)
        off = wide * (self.noise.perturbed(np.ones(np.shape(size)), self.relative, 0) - 1)
        # One sum of 16 ends in four zeros by chance: those of whole numbers end in more.
        more = self.zeros + _MORE_ZEROS if self.zeros else 0
        stays = _ends_in_zeros(part, size, self.zeros) & _ends_in_zeros(size, size, more) | (size == 0)
        return np.where(stays | ~np.isfinite(part + off), part, part + off)


def _of_parts(real: Any, imag: Any, dtype: Any) -> Any:
    """Complex numbers; infinite parts and the signs of zeros stay, which arithmetic would not let them."""
    whole = np.empty(np.shape(real), dtype)
    whole.real, whole.imag = real, imag
    return whole


def _ends_in_zeros(value: Any, size: Any, zeros: int) -> Any:
    """Whether the last so many bits of numbers are zero, counted from the last one of `size`; not for 0 bits.

    What is left of a cancellation ends in zeros of its own.
    """
    unit = np.ldexp(1.0, np.frexp(size)[1] - np.finfo(size.dtype).nmant - 1 + zeros)
    return (zeros > 0) & (np.fmod(value, unit) == 0)


def _spread(feature: Any, axis: int, rank: int) -> Any:
    """One number for each feature, in the shape of an array whose dimension `axis` is that of features."""
    return feature.reshape([-1 if d == axis else 1 for d in range(rank)])


@dataclass(frozen=True, slots=True)
class SumOfZeros:
    """Sums of two numbers, of which some executions leave zeros out.

    -0 + 0 is 0, but simplifiers take `x + 0` for `x`, which is -0 where x is: that of StableHLO, on the way
    in, and XLA's algebraic simplifier.

    Attributes:
        noise: which execution it is.
        kernel: adds.
    """

    noise: Noise
    kernel: Callable[..., Any]

    def __call__(self, one: Any, other: Any) -> Any:
        result = self.kernel(one, other)
        if not self.noise.member.signs or np.all(result):
            return result
        both = (one == 0) & (other == 0) & (np.signbit(one) | np.signbit(other))
        return np.where(both, -np.abs(result), result).astype(result.dtype)[()]


@dataclass(frozen=True, slots=True)
class SumOfOneTerm:
    """Sums over one term each, which some executions take as it is.

    A sum begins with 0, and 0 + -0 is 0. XLA's algebraic simplifier makes a product of such a dot, and a
    reshape of such a reduction, so that the term keeps its sign.

    Attributes:
        noise: which execution it is.
        kernel: sums the terms.
        factors: its first so many operands are factors of the terms.
    """

    noise: Noise
    kernel: Callable[..., Any]
    factors: int

    def __call__(self, *values: Any) -> Any:
        result = self.kernel(*values)
        if not self.noise.member.signs or np.all(result):
            return result
        signs = [np.copysign(np.ones_like(value), value) for value in values[: self.factors]]
        term = self.kernel(*signs, *values[self.factors :])
        return np.where(result == 0, np.copysign(result, term), result).astype(result.dtype)[()]
